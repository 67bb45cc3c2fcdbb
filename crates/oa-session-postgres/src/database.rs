//! The statements of each operation. They run in a transaction; writers lock the session first.

use std::future::poll_fn;
use std::pin::pin;

use futures_core::Stream;
use oa_session::rules::{check_keep, check_size, merge_metadata};
use oa_session::{
    Append, Error, Limits, List, NewSession, Revision, SessionId, SessionInfo, SessionPage,
    Timestamp, UnreadableSession,
};
use oa_types::MessageRole;
use serde_json::{Map, Value};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use crate::error::{Failure, corrupt};
use crate::row::{COLUMNS, Found, Parameter, get, read, revision_of, signed};

/// A stored session. Its JSON is parsed by the caller, not on the thread shared by all connections.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) info: SessionInfo,
    pub(crate) messages: Vec<String>,
    pub(crate) pending: Option<String>,
}

pub(crate) async fn create(client: &Client, session: NewSession) -> Result<SessionInfo, Failure> {
    Ok(insert(client, session).await?.info)
}

/// Appends messages, whose JSON is `json`.
pub(crate) async fn append(
    client: &Client,
    limits: &Limits,
    id: &SessionId,
    append: &Append,
    json: &[String],
) -> Result<SessionInfo, Failure> {
    let mut found = find_at(client, id, append.revision).await?;
    let count = found.info.message_count;
    let keep = append.keep.unwrap_or(count);
    check_keep(keep, count, role_at(client, &found, keep).await?)?;
    let gone = match keep < count {
        true => bytes_from(client, found.number, keep).await?,
        false => 0,
    };
    let new: u64 = json.iter().map(|json| json.len() as u64).sum();
    found.bytes = found.bytes.saturating_sub(gone).saturating_add(new);
    found.info.message_count = keep + json.len();
    check_size(found.info.message_count, found.bytes, limits)?;
    if keep < count {
        let sql = "DELETE FROM messages WHERE session = $1 AND place >= $2";
        let keep = signed(keep);
        execute(client, sql, &[(&found.number, Type::INT8), (&keep, Type::INT8)]).await?;
    }
    if !json.is_empty() {
        let roles: Vec<&str> =
            append.messages.iter().map(|message| message.role.as_str()).collect();
        let sql = "INSERT INTO messages (session, place, role, body) \
                   SELECT $1, $2 + ordinality - 1, role, body \
                   FROM unnest($3, $4) WITH ORDINALITY AS new (role, body, ordinality)";
        let first = signed(keep);
        let parameters: &[Parameter<'_>] = &[
            (&found.number, Type::INT8),
            (&first, Type::INT8),
            (&roles, Type::TEXT_ARRAY),
            (&json, Type::TEXT_ARRAY),
        ];
        execute(client, sql, parameters).await?;
    }
    settle(client, &mut found, append.at, None).await?;
    Ok(found.info)
}

pub(crate) async fn load(
    client: &Client,
    limits: &Limits,
    id: &SessionId,
) -> Result<Stored, Failure> {
    // Without `FOR UPDATE`: a reader has a snapshot, and neither waits for writers nor makes them wait.
    let sql = format!("SELECT {COLUMNS}, pending FROM sessions WHERE id = $1");
    let row = one(client, &sql, &[(&id.as_str(), Type::TEXT)]).await?;
    let row = row.ok_or_else(|| Error::not_found(id))?;
    let found = read(&row)?.1?;
    let broken = |failure: Failure| match failure {
        Failure::Store(error) => Failure::Store(error.located(format_args!("session {id}"))),
        other => other,
    };
    check_size(found.info.message_count, found.bytes, limits)
        .map_err(|error| broken(error.into()))?;
    let messages = read_messages(client, &found, limits).await.map_err(broken)?;
    Ok(Stored { info: found.info, messages, pending: get(&row, 9)? })
}

pub(crate) async fn list(client: &Client, list: &List) -> Result<SessionPage, Failure> {
    // One more than requested, to know whether there is another page.
    let more = signed(list.limit.saturating_add(1));
    let sql = list_sql(list);
    let rows = match &list.after {
        None => client.query_typed(&sql, &[(&more, Type::INT8)]).await?,
        Some(after) => {
            let (at, id) = (after.updated_at().as_millis(), after.id().as_str());
            let parameters: &[Parameter<'_>] =
                &[(&more, Type::INT8), (&at, Type::INT8), (&id, Type::TEXT)];
            client.query_typed(&sql, parameters).await?
        }
    };
    let mut page = SessionPage::default();
    let mut last = None;
    for row in rows.iter().take(list.limit) {
        let (cursor, found) = read(row)?;
        match found {
            Ok(found) => page.sessions.push(found.info),
            Err(error) => {
                page.unreadable.push(UnreadableSession::new(cursor.id().as_str(), error));
            }
        }
        last = Some(cursor);
    }
    page.next = last.filter(|_| rows.len() > list.limit);
    Ok(page)
}

pub(crate) async fn delete(client: &Client, id: &SessionId) -> Result<(), Failure> {
    let sql = "DELETE FROM sessions WHERE id = $1";
    match execute(client, sql, &[(&id.as_str(), Type::TEXT)]).await? {
        0 => Err(Error::not_found(id).into()),
        _ => Ok(()),
    }
}

pub(crate) async fn fork(
    client: &Client,
    limits: &Limits,
    id: &SessionId,
    keep: usize,
    mut fork: NewSession,
) -> Result<SessionInfo, Failure> {
    // Locked, so that no writer shortens it while its messages are copied.
    let source = find(client, id).await?;
    let next = role_at(client, &source, keep).await?;
    check_keep(keep, source.info.message_count, next)?;
    fork.metadata = merge_metadata(source.info.metadata, fork.metadata, limits)?;
    let at = fork.at;
    let mut found = insert(client, fork).await?;
    let sql = "INSERT INTO messages (session, place, role, body) \
               SELECT $1, place, role, body FROM messages WHERE session = $2 AND place < $3";
    let kept = signed(keep);
    let parameters: &[Parameter<'_>] =
        &[(&found.number, Type::INT8), (&source.number, Type::INT8), (&kept, Type::INT8)];
    execute(client, sql, parameters).await?;
    found.info.message_count = keep;
    found.bytes = bytes_from(client, found.number, 0).await?;
    settle(client, &mut found, at, None).await?;
    Ok(found.info)
}

pub(crate) async fn set_metadata(
    client: &Client,
    limits: &Limits,
    id: &SessionId,
    members: Map<String, Value>,
    at: Timestamp,
) -> Result<SessionInfo, Failure> {
    let Found { number, mut info, .. } = find(client, id).await?;
    info.metadata = merge_metadata(info.metadata, members, limits)?;
    info.updated_at = at;
    let sql = "UPDATE sessions SET metadata = $2, updated_at = $3 WHERE number = $1";
    let (metadata, at) = (json_of(&info.metadata), at.as_millis());
    let parameters: &[Parameter<'_>] =
        &[(&number, Type::INT8), (&metadata, Type::TEXT), (&at, Type::INT8)];
    execute(client, sql, parameters).await?;
    Ok(info)
}

/// Sets the pending call, whose JSON is `pending`.
pub(crate) async fn set_pending(
    client: &Client,
    id: &SessionId,
    revision: Revision,
    pending: Option<&str>,
    at: Timestamp,
) -> Result<SessionInfo, Failure> {
    let mut found = find_at(client, id, revision).await?;
    settle(client, &mut found, at, pending).await?;
    Ok(found.info)
}

pub(crate) fn list_sql(list: &List) -> String {
    let place = match list.after {
        None => "",
        // The first condition follows from the second, but only it lets the server search the index from
        // there.
        Some(_) => "WHERE updated_at <= $2 AND (updated_at < $2 OR id > $3)",
    };
    format!("SELECT {COLUMNS} FROM sessions {place} ORDER BY updated_at DESC, id LIMIT $1")
}

/// Finds a session and locks it: other writers of it wait until the transaction ends.
async fn find(client: &Client, id: &SessionId) -> Result<Found, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = $1 FOR UPDATE");
    let row = one(client, &sql, &[(&id.as_str(), Type::TEXT)]).await?;
    let row = row.ok_or_else(|| Error::not_found(id))?;
    Ok(read(&row)?.1?)
}

/// Finds and locks a session at the revision that a writer knows.
async fn find_at(client: &Client, id: &SessionId, expected: Revision) -> Result<Found, Failure> {
    let found = find(client, id).await?;
    if found.info.revision == expected {
        return Ok(found);
    }
    Err(Error::conflict(id, expected, found.info.revision).into())
}

/// Inserts a session without messages.
async fn insert(client: &Client, session: NewSession) -> Result<Found, Failure> {
    let sql = "INSERT INTO sessions \
               (id, created_at, updated_at, metadata, message_count, bytes, revision) \
               VALUES ($1, $2, $2, $3, 0, 0, nextval('revisions')) ON CONFLICT (id) DO NOTHING \
               RETURNING number, revision";
    let (id, at) = (session.id.as_str(), session.at.as_millis());
    let metadata = json_of(&session.metadata);
    let parameters: &[Parameter<'_>] =
        &[(&id, Type::TEXT), (&at, Type::INT8), (&metadata, Type::TEXT)];
    // If another transaction is inserting the same id, the server waits for it, and returns no row once it is
    // committed.
    let Some(row) = one(client, sql, parameters).await? else {
        return Err(Error::already_exists(&session.id).into());
    };
    let (number, revision) = (get(&row, 0)?, revision_of(get(&row, 1)?));
    Ok(Found { number, bytes: 0, info: SessionInfo::new(session, revision) })
}

/// Updates the session itself after a write, with a revision never used before in this schema.
async fn settle(
    client: &Client,
    found: &mut Found,
    at: Timestamp,
    pending: Option<&str>,
) -> Result<(), Failure> {
    let sql = "UPDATE sessions SET updated_at = $2, message_count = $3, bytes = $4, \
               revision = nextval('revisions'), pending = $5 WHERE number = $1 RETURNING revision";
    let (millis, count) = (at.as_millis(), found.count());
    let bytes = i64::try_from(found.bytes).unwrap_or(i64::MAX);
    let parameters: &[Parameter<'_>] = &[
        (&found.number, Type::INT8),
        (&millis, Type::INT8),
        (&count, Type::INT8),
        (&bytes, Type::INT8),
        (&pending, Type::TEXT),
    ];
    let row = one(client, sql, parameters).await?;
    // It is locked.
    let row = row.ok_or_else(|| corrupt("the session is gone"))?;
    found.info.updated_at = at;
    found.info.is_pending = pending.is_some();
    found.info.revision = revision_of(get(&row, 0)?);
    Ok(())
}

/// Returns the role of a message; `None` behind the last.
async fn role_at(
    client: &Client,
    found: &Found,
    place: usize,
) -> Result<Option<MessageRole>, Failure> {
    if place >= found.info.message_count {
        return Ok(None);
    }
    let sql = "SELECT role FROM messages WHERE session = $1 AND place = $2";
    let at = signed(place);
    let row = one(client, sql, &[(&found.number, Type::INT8), (&at, Type::INT8)]).await?;
    let role = row.map(|row| get::<String>(&row, 0)).transpose()?;
    let role = role.and_then(|role| serde_json::from_value(Value::String(role)).ok());
    let missing = || corrupt(format!("message {place} is missing or has no role"));
    Ok(Some(role.ok_or_else(missing)?))
}

/// Returns the size in bytes of the messages from this index on.
async fn bytes_from(client: &Client, session: i64, place: usize) -> Result<u64, Failure> {
    let sql = "SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM messages \
               WHERE session = $1 AND place >= $2";
    let place = signed(place);
    let row = one(client, sql, &[(&session, Type::INT8), (&place, Type::INT8)]).await?;
    let bytes = row.map(|row| get::<i64>(&row, 0)).transpose()?;
    Ok(bytes.unwrap_or(0).unsigned_abs())
}

/// Reads the JSON of the messages as it arrives.
async fn read_messages(
    client: &Client,
    found: &Found,
    limits: &Limits,
) -> Result<Vec<String>, Failure> {
    let sql = "SELECT place, body FROM messages WHERE session = $1 ORDER BY place";
    let parameters: [Parameter<'_>; 1] = [(&found.number, Type::INT8)];
    let rows = client.query_typed_raw(sql, parameters).await?;
    // Row by row, so that a session beyond the limits is given up before all of it is in memory.
    let mut rows = pin!(rows);
    let mut messages: Vec<String> = Vec::new();
    let mut bytes = 0;
    while let Some(row) = poll_fn(|cx| rows.as_mut().poll_next(cx)).await {
        let row = row?;
        let place: i64 = get(&row, 0)?;
        if place != signed(messages.len()) || place >= found.count() {
            return Err(corrupt(format!("message {place} is out of order")).into());
        }
        let body: String = get(&row, 1)?;
        bytes += body.len() as u64;
        // The recorded count may be wrong.
        check_size(messages.len(), bytes, limits)?;
        messages.push(body);
    }
    if messages.len() != found.info.message_count {
        return Err(corrupt(format!("message {} is missing", messages.len())).into());
    }
    Ok(messages)
}

async fn one(
    client: &Client,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<Option<Row>, Failure> {
    Ok(client.query_typed(sql, parameters).await?.into_iter().next())
}

async fn execute(client: &Client, sql: &str, parameters: &[Parameter<'_>]) -> Result<u64, Failure> {
    Ok(client.execute_typed(sql, parameters).await?)
}

fn json_of(metadata: &Map<String, Value>) -> String {
    Value::Object(metadata.clone()).to_string()
}
