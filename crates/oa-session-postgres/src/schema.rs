//! The tables, in every version.

use oa_session::{Error, ErrorKind};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::error::{Failure, NOT_OURS, corrupt};
use crate::row::{Parameter, get};

/// Identifies our advisory locks: "oase" in ASCII. The other half is the schema.
const LOCK: i32 = 0x6f61_7365;

/// The table with the version, which makes a schema ours.
const VERSION_TABLE: &str = "store_version";

/// Each entry migrates a schema from the version equal to its index to the next. Released entries never change.
const MIGRATIONS: &[&str] = &[
    // 1: sessions and their messages. Revisions come from a sequence, which never returns to an earlier value and does
    // not make writers of different sessions wait for each other. Ids are ordered by their bytes, as in every store.
    "CREATE TABLE store_version (version integer NOT NULL);
     INSERT INTO store_version VALUES (0);
     CREATE SEQUENCE revisions AS bigint;
     CREATE TABLE sessions (
         number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
         id text COLLATE \"C\" NOT NULL UNIQUE,
         created_at bigint NOT NULL,
         updated_at bigint NOT NULL,
         metadata text NOT NULL,
         message_count bigint NOT NULL,
         bytes bigint NOT NULL,
         revision bigint NOT NULL,
         pending text
     );
     CREATE INDEX sessions_by_time ON sessions (updated_at DESC, id);
     CREATE TABLE messages (
         session bigint NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
         place bigint NOT NULL,
         role text NOT NULL,
         body text NOT NULL,
         PRIMARY KEY (session, place)
     );",
];

/// Statements that are valid in a schema of our version.
const PROBES: [&str; 3] = [
    "SELECT last_value FROM revisions LIMIT 0",
    "SELECT number, id, created_at, updated_at, metadata, message_count, bytes, revision, pending \
     FROM sessions LIMIT 0",
    "SELECT session, place, role, body FROM messages LIMIT 0",
];

/// Checks that the schema is ours and migrates it; anything else is left unchanged.
pub(crate) async fn prepare(client: &Client, schema: &str) -> Result<(), Failure> {
    migrate(client, schema, MIGRATIONS).await?;
    for probe in PROBES {
        client.query_typed(probe, &[]).await?;
    }
    // The probes do not name an index, and without it lists would be correct but slow.
    let index = "SELECT 1 FROM pg_catalog.pg_indexes \
                 WHERE schemaname = $1 AND tablename = 'sessions' AND indexname = 'sessions_by_time'";
    match client.query_typed_opt(index, &[(&schema, Type::TEXT)]).await? {
        Some(_) => Ok(()),
        None => Err(corrupt(NOT_OURS).into()),
    }
}

/// Runs a statement, and returns the number of the table of sessions, which no later table has; `None` if it is gone.
pub(crate) async fn table_after(client: &Client, sql: &str) -> Result<Option<String>, Failure> {
    // In one round trip.
    let sql = format!("{sql}; SELECT to_regclass('sessions')::oid");
    let answers = client.simple_query(&sql).await?;
    Ok(answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

/// Checks on a new connection that the schema was not migrated since the store was opened.
pub(crate) async fn check_version(client: &Client) -> Result<(), Failure> {
    let version = read_version(client).await?;
    match supported(version, MIGRATIONS.len())? {
        version if version == MIGRATIONS.len() => Ok(()),
        _ => Err(corrupt("the schema was replaced by an older one").into()),
    }
}

async fn migrate(client: &Client, schema: &str, migrations: &[&str]) -> Result<(), Failure> {
    let newest = migrations.len();
    // If the schema is current, neither a lock nor rights on the database are needed.
    if inspect(client, schema, newest).await? == Some(newest) {
        return Ok(());
    }
    // After an error, the connection is closed, which rolls everything back.
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE").await?;
    // Processes that open a new store at once take turns. The lock ends with the transaction.
    let lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
    client.query_typed(lock, &[(&LOCK, Type::INT4), (&schema, Type::TEXT)]).await?;
    // Another process may have migrated it first.
    let version = inspect(client, schema, newest).await?;
    if version.is_none() {
        // The name was validated: it contains no character that needs escaping.
        client.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
    }
    for migration in migrations.iter().skip(version.unwrap_or(0)) {
        client.batch_execute(migration).await?;
    }
    let newest = i32::try_from(newest).unwrap_or(i32::MAX);
    let update = "UPDATE store_version SET version = $1";
    client.execute_typed(update, &[(&newest, Type::INT4)]).await?;
    client.batch_execute("COMMIT").await?;
    Ok(())
}

/// Returns the version of the schema: 0 if it is empty, `None` if it does not exist. Fails if it is not ours.
async fn inspect(client: &Client, schema: &str, newest: usize) -> Result<Option<usize>, Failure> {
    // With the outer join, an empty schema is one row with a count of 0, and a missing one is no row. A
    // schema that has other relations but not our table is another program's.
    let sql = "SELECT count(relname), coalesce(bool_or(relname = $2), false) \
               FROM pg_catalog.pg_namespace LEFT JOIN pg_catalog.pg_class ON relnamespace = pg_namespace.oid \
               WHERE nspname = $1 GROUP BY nspname";
    let parameters: &[Parameter<'_>] = &[(&schema, Type::TEXT), (&VERSION_TABLE, Type::TEXT)];
    let Some(row) = client.query_typed_opt(sql, parameters).await? else {
        return Ok(None);
    };
    let (relations, has_version): (i64, bool) = (get(&row, 0)?, get(&row, 1)?);
    if relations == 0 {
        return Ok(Some(0));
    }
    if !has_version {
        return Err(corrupt("the schema belongs to another program").into());
    }
    Ok(Some(supported(read_version(client).await?, newest)?))
}

async fn read_version(client: &Client) -> Result<i32, Failure> {
    let rows = client.query_typed("SELECT version FROM store_version", &[]).await?;
    match rows.as_slice() {
        [row] => get(row, 0),
        _ => Err(corrupt(NOT_OURS).into()),
    }
}

fn supported(version: i32, newest: usize) -> Result<usize, Error> {
    match usize::try_from(version) {
        Ok(version) if version > newest => Err(Error::new(
            ErrorKind::NewerVersion,
            format!("the schema has version {version}; this program supports up to {newest}"),
        )),
        Ok(version) => Ok(version),
        Err(_) => Err(corrupt("the version of the schema is negative")),
    }
}
