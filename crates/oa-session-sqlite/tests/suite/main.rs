//! The store through its public interface, without a runtime.

use oa_session::contract::block_on;
use oa_session::{
    Append, Error, ErrorKind, Limits, NewSession, SessionId, SessionInfo, SessionStore, Timestamp,
};
use oa_session_sqlite::SqliteStore;
use oa_types::{Message, TextBlock};
use rusqlite::Connection;
use tempfile::TempDir;

mod contract;
mod databases;
#[cfg(unix)]
mod files;
mod limits;

fn id(text: &str) -> SessionId {
    SessionId::new(text).expect("it is an id")
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A prompt and an answer.
fn turn(number: usize) -> Vec<Message> {
    let answer = TextBlock::new(format!("answer {number}"));
    vec![Message::user(format!("prompt {number}")), Message::assistant(vec![answer.into()])]
}

fn create(store: &dyn SessionStore, text: &str) -> SessionInfo {
    block_on(store.create(NewSession::new(id(text), at(1)))).expect("it is new")
}

fn append(
    store: &dyn SessionStore,
    known: &SessionInfo,
    messages: Vec<Message>,
) -> Result<SessionInfo, Error> {
    block_on(store.append(&known.id, Append::new(known.revision, messages, at(2))))
}

#[track_caller]
fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.expect_err("it is an error").kind()
}

/// A folder with a database.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room"))
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("sessions.db")
    }

    fn open(&self) -> Result<SqliteStore, Error> {
        SqliteStore::open(self.path())
    }

    fn open_with(&self, limits: Limits) -> SqliteStore {
        SqliteStore::open_with(self.path(), limits).expect("it opens")
    }

    /// Another connection to the database.
    fn connect(&self) -> Connection {
        Connection::open(self.path()).expect("it can be opened")
    }

    fn execute(&self, sql: &str) {
        self.connect().execute_batch(sql).expect("it is SQL");
    }
}
