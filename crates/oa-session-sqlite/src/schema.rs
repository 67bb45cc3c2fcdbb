//! The tables, in every version.

use oa_session::{Error, ErrorKind};
use rusqlite::{Connection, TransactionBehavior};

use crate::error::{corrupt, failed};

/// Identifies our databases: "oase" in ASCII.
const APPLICATION: i32 = 0x6f61_7365;

/// Each entry migrates a database from the version equal to its index to the next. Released entries never
/// change.
const MIGRATIONS: &[&str] = &[
    // 1: sessions and their messages. The counter is the last revision used by any session.
    "CREATE TABLE revisions (last INTEGER NOT NULL) STRICT;
     INSERT INTO revisions VALUES (0);
     CREATE TABLE sessions (
         number INTEGER PRIMARY KEY,
         id TEXT NOT NULL UNIQUE,
         created_at INTEGER NOT NULL,
         updated_at INTEGER NOT NULL,
         metadata TEXT NOT NULL,
         message_count INTEGER NOT NULL,
         bytes INTEGER NOT NULL,
         revision INTEGER NOT NULL
     ) STRICT;
     CREATE INDEX sessions_by_time ON sessions (updated_at DESC, id);
     CREATE TABLE messages (
         session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
         place INTEGER NOT NULL,
         role TEXT NOT NULL,
         body TEXT NOT NULL,
         UNIQUE (session, place)
     ) STRICT;",
    // 2: calls waiting for permission.
    "ALTER TABLE sessions ADD COLUMN pending TEXT;",
];

/// One statement per table, valid in a database of our version.
const PROBES: [&str; 3] = [
    "SELECT last FROM revisions",
    "SELECT number, id, created_at, updated_at, metadata, message_count, bytes, revision, pending \
     FROM sessions INDEXED BY sessions_by_time",
    "SELECT session, place, role, body FROM messages",
];

/// Checks that the database is ours and migrates it; anything else is left unchanged.
pub(crate) fn prepare(connection: &mut Connection) -> Result<(), Error> {
    // Before anything that writes: the journal mode is part of the file, and a database of another program is
    // left unchanged.
    version(connection)?;
    let mode: String =
        connection.query_row("PRAGMA journal_mode", (), |row| row.get(0)).map_err(failed)?;
    if mode != "wal" {
        // Returns the resulting mode: file systems without shared memory keep the old one.
        let set = connection.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(()));
        set.map_err(failed)?;
    }
    connection
        // Settings of the connection, not of the file. `foreign_keys` would be ignored within a transaction;
        // deleting a session relies on it to delete the messages.
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
        .map_err(failed)?;
    migrate(connection, MIGRATIONS)?;
    for probe in PROBES {
        // Compiling is enough to check the names of tables, columns and index; nothing is read.
        connection.prepare(probe).map_err(|error| {
            corrupt("the tables are not those of a session store").with_source(error)
        })?;
    }
    Ok(())
}

/// Returns the version, read in one transaction because another process may be creating the tables.
fn version(connection: &mut Connection) -> Result<usize, Error> {
    let transaction = connection.transaction().map_err(failed)?;
    inspect(&transaction)
}

/// Returns the version of the database, or why it is not ours.
fn inspect(connection: &Connection) -> Result<usize, Error> {
    let number = |sql| connection.query_row(sql, (), |row| row.get::<_, i32>(0)).map_err(failed);
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    // An empty file. Tables alone make it another program's: most programs set no application id.
    if (application, version, tables) == (0, 0, 0) {
        return Ok(0);
    }
    if application != APPLICATION {
        return Err(corrupt("the database belongs to another program"));
    }
    let newest = MIGRATIONS.len();
    match usize::try_from(version) {
        Ok(version) if version > newest => Err(Error::new(
            ErrorKind::NewerVersion,
            format!("the database has version {version}; this program supports up to {newest}"),
        )),
        Ok(version) => Ok(version),
        Err(_) => Err(corrupt("the version of the database is negative")),
    }
}

fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<(), Error> {
    if version(connection)? == migrations.len() {
        return Ok(());
    }
    // For writing from the start, so that two processes that open an old database migrate one after the
    // other.
    let immediate = TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(immediate).map_err(failed)?;
    // Another process may have migrated it first.
    let version = inspect(&transaction)?;
    for migration in migrations.iter().skip(version) {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    // Both are in the header of the file and part of the transaction, so a killed migration leaves the old
    // version.
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    transaction.pragma_update(None, "user_version", migrations.len()).map_err(failed)?;
    transaction.commit().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_older_version_is_migrated() {
        for version in 0..MIGRATIONS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate(&mut connection, &MIGRATIONS[..version]).unwrap();
            if version > 0 {
                connection
                    .execute_batch(
                        "INSERT INTO sessions
                             (id, created_at, updated_at, metadata, message_count, bytes, revision)
                             VALUES ('old', 1, 2, '{}', 1, 40, 1);
                         INSERT INTO messages (session, place, role, body)
                             VALUES (1, 0, 'user', '{\"role\":\"user\",\"content\":[]}')",
                    )
                    .unwrap();
            }
            prepare(&mut connection).unwrap();
            assert_eq!(inspect(&connection).unwrap(), MIGRATIONS.len());
            let count = "SELECT count(*) FROM sessions JOIN messages ON session = number \
                         WHERE pending IS NULL";
            let found: usize = connection.query_row(count, (), |row| row.get(0)).unwrap();
            assert_eq!(found, version.min(1));
        }
    }
}
