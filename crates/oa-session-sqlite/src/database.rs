use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use oa_session::rules::{
    check_keep, check_messages, check_pending, check_size, merge_metadata, open_calls,
};
use oa_session::{
    Append, Error, ErrorKind, Limits, List, NewSession, Pending, Revision, Session, SessionId,
    SessionInfo, SessionPage, Timestamp, UnreadableSession,
};
use oa_types::{Message, MessageRole};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};
use serde_json::{Map, Value};

use crate::error::{corrupt, failed};
use crate::files::{self, DatabaseFile};
use crate::row::{COLUMNS, Found, read};
use crate::schema;

/// The connection of a store. Everything here blocks.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    file: DatabaseFile,
    limits: Limits,
}

/// The longest timeout that SQLite knows, 24 days.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// The pause before opening a busy database again.
const PAUSE: Duration = Duration::from_millis(5);

impl Database {
    pub(crate) fn open(path: &Path, limits: Limits) -> Result<Self, Error> {
        let file = files::prepare(path)?;
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // On other systems, the path may contain links.
        flags.set(OpenFlags::SQLITE_OPEN_NOFOLLOW, cfg!(unix));
        let open = || -> Result<Connection, Error> {
            let mut connection = Connection::open_with_flags(&file, flags).map_err(failed)?;
            connection.busy_timeout(limits.timeout.min(LONGEST)).map_err(failed)?;
            schema::prepare(&mut connection)?;
            Ok(connection)
        };
        let since = Instant::now();
        loop {
            match open() {
                Ok(connection) => {
                    files::close_to_others(&file);
                    return Ok(Self { connection, file: DatabaseFile::new(file), limits });
                }
                // SQLite's busy timeout does not cover a change of the journal mode while others open the
                // database: it fails immediately.
                Err(error)
                    if error.kind() == ErrorKind::Busy && since.elapsed() < limits.timeout =>
                {
                    thread::sleep(PAUSE);
                }
                Err(error) => return Err(error.located(path.display())),
            }
        }
    }

    pub(crate) fn create(&mut self, mut session: NewSession) -> Result<SessionInfo, Error> {
        session.metadata = merge_metadata(Map::new(), session.metadata, &self.limits)?;
        self.change(|transaction, _| Ok(insert(transaction, session)?.info))
    }

    pub(crate) fn append(&mut self, id: &SessionId, append: Append) -> Result<SessionInfo, Error> {
        let Append { revision, messages, at, keep, .. } = append;
        let json = check_messages(&messages, &self.limits)?;
        self.change(|transaction, limits| {
            let mut found = find_at(transaction, id, revision)?;
            let count = found.info.message_count;
            let keep = keep.unwrap_or(count);
            // Only the first removed message matters: the conversation may end before it unless it is a
            // result.
            check_keep(keep, count, role_at(transaction, &found, keep)?)?;
            let gone = bytes_from(transaction, found.number, keep)?;
            let new: u64 = json.iter().map(|json| json.len() as u64).sum();
            // The stored sum may be wrong in a damaged database, so it is not relied upon to be large enough.
            found.bytes = found.bytes.saturating_sub(gone).saturating_add(new);
            found.info.message_count = keep + messages.len();
            check_size(found.info.message_count, found.bytes, limits)?;
            if keep < count {
                let sql = "DELETE FROM messages WHERE session = ? AND place >= ?";
                transaction.execute(sql, (found.number, keep)).map_err(failed)?;
            }
            insert_messages(transaction, found.number, keep, &messages, &json)?;
            settle(transaction, &mut found, at)?;
            Ok(found.info)
        })
    }

    pub(crate) fn load(&mut self, id: &SessionId) -> Result<Session, Error> {
        self.file.check()?;
        let broken = |error: Error| error.located(format_args!("session {id}"));
        // One transaction, so that both statements see the same state.
        let transaction = self.connection.transaction().map_err(failed)?;
        let found = find(&transaction, id)?;
        // Before any message is read, so that a session beyond the limits costs no memory.
        check_size(found.info.message_count, found.bytes, &self.limits).map_err(broken)?;
        let messages = read_messages(&transaction, &found).map_err(broken)?;
        let pending = "SELECT pending FROM sessions WHERE number = ?";
        let pending: Option<String> =
            transaction.query_row(pending, [found.number], |row| row.get(0)).map_err(failed)?;
        let pending = pending.map(|pending| from_json(&pending, "the pending call")).transpose();
        Ok(Session::new(found.info, messages, pending.map_err(broken)?))
    }

    pub(crate) fn list(&self, list: &List) -> Result<SessionPage, Error> {
        list.check(&self.limits)?;
        self.file.check()?;
        let mut statement = self.connection.prepare(&list_sql(list)).map_err(failed)?;
        // One more than requested, to know whether there is another page.
        let more = i64::try_from(list.limit.saturating_add(1)).unwrap_or(i64::MAX);
        let mut rows = match &list.after {
            None => statement.query([more]),
            Some(after) => {
                statement.query((more, after.updated_at().as_millis(), after.id().as_str()))
            }
        }
        .map_err(failed)?;
        let mut page = SessionPage::default();
        let mut last = None;
        for _ in 0..list.limit {
            let Some(row) = rows.next().map_err(failed)? else {
                return Ok(page);
            };
            let (cursor, found) = read(row)?;
            match found {
                Ok(found) => page.sessions.push(found.info),
                Err(error) => {
                    page.unreadable.push(UnreadableSession::new(cursor.id().as_str(), error));
                }
            }
            last = Some(cursor);
        }
        // The row behind the page is stepped to, but not read: it may be unreadable, and is reported on its
        // own page.
        if rows.next().map_err(failed)?.is_some() {
            page.next = last;
        }
        Ok(page)
    }

    pub(crate) fn delete(&mut self, id: &SessionId) -> Result<(), Error> {
        self.change(|transaction, _| {
            let sql = "DELETE FROM sessions WHERE id = ?";
            match transaction.execute(sql, [id.as_str()]).map_err(failed)? {
                0 => Err(Error::not_found(id)),
                _ => Ok(()),
            }
        })
    }

    pub(crate) fn fork(
        &mut self,
        id: &SessionId,
        keep: usize,
        mut fork: NewSession,
    ) -> Result<SessionInfo, Error> {
        self.change(|transaction, limits| {
            let source = find(transaction, id)?;
            check_keep(keep, source.info.message_count, role_at(transaction, &source, keep)?)?;
            fork.metadata = merge_metadata(source.info.metadata, fork.metadata, limits)?;
            let at = fork.at;
            let mut found = insert(transaction, fork)?;
            let sql = "INSERT INTO messages (session, place, role, body) \
                       SELECT ?, place, role, body FROM messages WHERE session = ? AND place < ?";
            transaction.execute(sql, (found.number, source.number, keep)).map_err(failed)?;
            found.info.message_count = keep;
            found.bytes = bytes_from(transaction, found.number, 0)?;
            settle(transaction, &mut found, at)?;
            Ok(found.info)
        })
    }

    pub(crate) fn set_metadata(
        &mut self,
        id: &SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> Result<SessionInfo, Error> {
        self.change(|transaction, limits| {
            let Found { number, mut info, .. } = find(transaction, id)?;
            info.metadata = merge_metadata(info.metadata, members, limits)?;
            info.updated_at = at;
            let sql = "UPDATE sessions SET metadata = ?, updated_at = ? WHERE number = ?";
            let metadata = json_of(&info.metadata);
            transaction.execute(sql, (metadata, at.as_millis(), number)).map_err(failed)?;
            Ok(info)
        })
    }

    pub(crate) fn set_pending(
        &mut self,
        id: &SessionId,
        revision: Revision,
        pending: Option<&Pending>,
        at: Timestamp,
    ) -> Result<SessionInfo, Error> {
        let json = pending.map(|pending| check_pending(pending, &self.limits)).transpose()?;
        self.change(|transaction, _| {
            let mut found = find_at(transaction, id, revision)?;
            settle(transaction, &mut found, at)?;
            let sql = "UPDATE sessions SET pending = ? WHERE number = ?";
            transaction.execute(sql, (&json, found.number)).map_err(failed)?;
            found.info.is_pending = json.is_some();
            Ok(found.info)
        })
    }

    /// Makes all changes or none.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>, &Limits) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.file.check()?;
        // Lock for writing from the start: a transaction that has read first may be refused the lock later.
        let immediate = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(immediate).map_err(failed)?;
        let changed = change(&transaction, &self.limits)?;
        transaction.commit().map_err(failed)?;
        Ok(changed)
    }
}

fn list_sql(list: &List) -> String {
    let place = match list.after {
        None => "",
        // The first condition follows from the second, but only it lets SQLite search the index from there.
        // Row values, `(updated_at, id) < (..)`, do not help: the two columns have opposite directions.
        Some(_) => "WHERE updated_at <= ?2 AND (updated_at < ?2 OR id > ?3)",
    };
    format!("SELECT {COLUMNS} FROM sessions {place} ORDER BY updated_at DESC, id LIMIT ?1")
}

fn find(transaction: &Transaction<'_>, id: &SessionId) -> Result<Found, Error> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?");
    let mut statement = transaction.prepare(&sql).map_err(failed)?;
    let mut rows = statement.query([id.as_str()]).map_err(failed)?;
    match rows.next().map_err(failed)? {
        Some(row) => read(row)?.1,
        None => Err(Error::not_found(id)),
    }
}

/// Finds a session at the revision that a writer knows.
fn find_at(
    transaction: &Transaction<'_>,
    id: &SessionId,
    expected: Revision,
) -> Result<Found, Error> {
    let found = find(transaction, id)?;
    if found.info.revision == expected {
        return Ok(found);
    }
    Err(Error::conflict(id, expected, found.info.revision))
}

/// Inserts a session without messages.
fn insert(transaction: &Transaction<'_>, session: NewSession) -> Result<Found, Error> {
    let sql = "INSERT INTO sessions \
               (id, created_at, updated_at, metadata, message_count, bytes, revision) \
               VALUES (?1, ?2, ?2, ?3, 0, 0, ?4) ON CONFLICT (id) DO NOTHING";
    let revision = next_revision(transaction)?;
    let (id, at) = (session.id.as_str(), session.at.as_millis());
    let metadata = json_of(&session.metadata);
    let row = (id, at, metadata, revision.to_bits().cast_signed());
    if transaction.execute(sql, row).map_err(failed)? == 0 {
        return Err(Error::already_exists(&session.id));
    }
    let number = transaction.last_insert_rowid();
    Ok(Found { number, bytes: 0, info: SessionInfo::new(session, revision) })
}

fn insert_messages(
    transaction: &Transaction<'_>,
    session: i64,
    first: usize,
    messages: &[Message],
    json: &[String],
) -> Result<(), Error> {
    let sql = "INSERT INTO messages (session, place, role, body) VALUES (?, ?, ?, ?)";
    let mut statement = transaction.prepare(sql).map_err(failed)?;
    for (place, (message, body)) in (first..).zip(messages.iter().zip(json)) {
        statement.execute((session, place, message.role.as_str(), body)).map_err(failed)?;
    }
    Ok(())
}

/// Updates the session itself after an append, and clears the pending call.
fn settle(transaction: &Transaction<'_>, found: &mut Found, at: Timestamp) -> Result<(), Error> {
    let Found { number, bytes, info } = found;
    info.updated_at = at;
    info.is_pending = false;
    info.revision = next_revision(transaction)?;
    let revision = info.revision.to_bits().cast_signed();
    let sql = "UPDATE sessions SET updated_at = ?, message_count = ?, bytes = ?, revision = ?, \
               pending = NULL WHERE number = ?";
    let row = (at.as_millis(), info.message_count, *bytes, revision, *number);
    transaction.execute(sql, row).map_err(failed)?;
    Ok(())
}

/// Returns a revision never used before in this database.
fn next_revision(transaction: &Transaction<'_>) -> Result<Revision, Error> {
    let sql = "UPDATE revisions SET last = last + 1 RETURNING last";
    let last: i64 = transaction.query_row(sql, (), |row| row.get(0)).map_err(failed)?;
    Ok(Revision::from_bits(last.cast_unsigned()))
}

fn role_at(
    transaction: &Transaction<'_>,
    found: &Found,
    place: usize,
) -> Result<Option<MessageRole>, Error> {
    if place >= found.info.message_count {
        return Ok(None);
    }
    let sql = "SELECT role FROM messages WHERE session = ? AND place = ?";
    let role = transaction.query_row(sql, (found.number, place), |row| row.get::<_, String>(0));
    // The count says that there is a message, so a missing row is damage and not the end.
    let role = role.optional().map_err(failed)?.map(Value::String);
    let role = role.and_then(|role| serde_json::from_value(role).ok());
    role.map(Some).ok_or_else(|| corrupt(format!("message {place} is missing or has no role")))
}

/// Returns the size in bytes of the messages from this index on.
fn bytes_from(transaction: &Transaction<'_>, session: i64, place: usize) -> Result<u64, Error> {
    let sql = "SELECT coalesce(sum(octet_length(body)), 0) FROM messages \
               WHERE session = ? AND place >= ?";
    transaction.query_row(sql, (session, place), |row| row.get(0)).map_err(failed)
}

fn read_messages(transaction: &Transaction<'_>, found: &Found) -> Result<Vec<Message>, Error> {
    let sql = "SELECT place, body FROM messages WHERE session = ? ORDER BY place";
    let mut statement = transaction.prepare(sql).map_err(failed)?;
    let mut rows = statement.query([found.number]).map_err(failed)?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let (place, body): (usize, String) = row.try_into().map_err(failed)?;
        if place != messages.len() || place >= found.info.message_count {
            return Err(corrupt(format!("message {place} is out of order")));
        }
        messages.push(from_json(&body, &format!("message {place}"))?);
    }
    if messages.len() != found.info.message_count {
        return Err(corrupt(format!("message {} is missing", messages.len())));
    }
    let open = open_calls(&messages).map_err(|error| corrupt(error.to_string()))?;
    match open.first() {
        None => Ok(messages),
        Some(id) => {
            Err(corrupt(format!("the conversation ends without the result of call {id:.64}")))
        }
    }
}

fn from_json<T: serde::de::DeserializeOwned>(json: &str, what: &str) -> Result<T, Error> {
    serde_json::from_str(json)
        .map_err(|error| corrupt(format!("{what} is damaged")).with_source(error))
}

fn json_of(metadata: &Map<String, Value>) -> String {
    Value::Object(metadata.clone()).to_string()
}

#[cfg(test)]
mod tests {
    use oa_session::Cursor;

    use super::*;

    fn database() -> Database {
        let mut connection = Connection::open_in_memory().expect("there is memory");
        schema::prepare(&mut connection).expect("it is new");
        let file = DatabaseFile::new(":memory:".into());
        Database { connection, file, limits: Limits::default() }
    }

    #[test]
    fn pages_are_read_from_the_index() {
        let database = database();
        let id = SessionId::new("a").unwrap();
        let first = List::new(10);
        let later = first.clone().after(Cursor::new(Timestamp::from_millis(5), id));
        for (list, expected) in [
            (first, "SCAN sessions USING INDEX sessions_by_time"),
            (later, "SEARCH sessions USING INDEX sessions_by_time (updated_at<?)"),
        ] {
            let sql = format!("EXPLAIN QUERY PLAN {}", list_sql(&list));
            let mut statement = database.connection.prepare(&sql).unwrap();
            let plan: String =
                statement.raw_query().next().unwrap().unwrap().get("detail").unwrap();
            assert_eq!(plan, expected);
        }
    }

    #[test]
    fn commits_are_synced_to_disk() {
        let mode = "PRAGMA synchronous";
        let full: i32 = database().connection.query_row(mode, (), |row| row.get(0)).unwrap();
        assert_eq!(full, 2);
    }
}
