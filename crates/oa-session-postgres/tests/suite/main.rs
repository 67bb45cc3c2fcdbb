//! The store through its public interface, without a runtime, on a separate server.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use oa_session::contract::block_on;
use oa_session::{
    Append, Error, ErrorKind, Limits, NewSession, SessionId, SessionInfo, SessionStore, Timestamp,
};
use oa_session_postgres::{PostgresOptions, PostgresStore};
use oa_types::{Message, TextBlock};
use services::{Postgres, or_skip};

mod connections;
mod contract;
mod foreign_text;
mod limits;
mod network;
mod proxy;
mod restart;
mod schemas;
mod sql;
#[cfg(feature = "tls")]
mod tls;

use sql::Sql;

/// One server for all tests, each of which has a schema of its own. It ends with the process.
static SERVER: LazyLock<Option<Postgres>> = LazyLock::new(|| or_skip(Postgres::start()));

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

/// A schema that nobody else uses.
struct Place {
    url: String,
    schema: String,
}

impl Place {
    /// Returns `None` where there is no server.
    fn new() -> Option<Self> {
        SERVER.as_ref().map(|server| Self::on(server.url()))
    }

    fn on(url: String) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);

        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { url, schema: format!("place_{number}") }
    }

    fn options(&self) -> PostgresOptions {
        let options = PostgresOptions::new(&self.url).expect("it is a connection string");
        options.schema(&self.schema)
    }

    /// Options of connections with an application name of their own, by which a test finds them.
    fn named(&self, name: &str) -> PostgresOptions {
        let url = format!("{}?application_name={name}", self.url);
        let options = PostgresOptions::new(&url).expect("it is a connection string");
        options.schema(&self.schema)
    }

    fn open(&self) -> Result<PostgresStore, Error> {
        block_on(PostgresStore::connect_with(self.options()))
    }

    fn open_with(&self, limits: Limits) -> PostgresStore {
        let opened = PostgresStore::connect_with(self.options().limits(limits));
        block_on(opened).expect("it opens")
    }

    /// Another connection, whose statements find the tables of this place.
    fn connect(&self) -> Sql {
        Sql::connect(&self.url, &self.schema)
    }

    fn execute(&self, sql: &str) {
        self.connect().execute(sql);
    }
}
