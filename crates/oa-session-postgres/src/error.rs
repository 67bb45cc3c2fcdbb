use std::time::Duration;

use oa_session::{Error, ErrorKind};
use tokio_postgres::error::{DbError, SqlState};

/// The maximum length of a server's message in an error, in characters.
const EXCERPT: usize = 200;

/// The state of a change when the database failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stage {
    /// The operation changes nothing.
    Read,
    /// `COMMIT` was not sent, so nothing was changed.
    Change,
    /// `COMMIT` was sent, and its result may be unknown.
    Commit,
}

/// A failure, before it is converted to an error for the caller.
#[derive(Debug)]
pub(crate) enum Failure {
    Server(tokio_postgres::Error),
    /// No answer within this time.
    Silent(Duration),
    /// An error in the input or the stored data, not of the server.
    Store(Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// Returns true if the connection cannot be used again.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            // An error that did not come from the server is one of the socket or of the protocol.
            Self::Server(error) => error.as_db_error().is_none_or(ends_connection),
            Self::Silent(_) => true,
            Self::Store(_) => false,
        }
    }

    /// Returns true if the server temporarily accepts no connections.
    pub(crate) fn is_temporary(&self) -> bool {
        const TEMPORARY: [SqlState; 2] =
            [SqlState::CANNOT_CONNECT_NOW, SqlState::TOO_MANY_CONNECTIONS];
        match self {
            Self::Server(error) => error.code().is_some_and(|code| TEMPORARY.contains(code)),
            Self::Silent(_) | Self::Store(_) => false,
        }
    }

    pub(crate) fn into_error(self, stage: Stage) -> Error {
        let what = match &self {
            Self::Silent(time) => {
                format!("the database has not answered for {} s", time.as_secs_f32())
            }
            Self::Server(_) => "the connection to the database was lost".to_owned(),
            Self::Store(_) => String::new(),
        };
        let is_lost = self.is_lost();
        match self {
            Self::Store(error) => error,
            // Answered by the server, so the outcome is known: the transaction failed.
            Self::Server(error) if !is_lost => failed(error),
            lost => {
                let error = Error::new(ErrorKind::Io, what + consequence(stage));
                match lost {
                    Self::Server(source) => error.with_source(source),
                    Self::Silent(_) | Self::Store(_) => error,
                }
            }
        }
    }
}

fn consequence(stage: Stage) -> &'static str {
    match stage {
        Stage::Read => "",
        Stage::Change => "; nothing was changed",
        Stage::Commit => {
            " while a change was committed: load the session to see whether it was made"
        }
    }
}

/// Returns true if the server closes the connection after this error.
fn ends_connection(error: &DbError) -> bool {
    const ENDS: [SqlState; 4] = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::IDLE_SESSION_TIMEOUT,
    ];
    ENDS.contains(error.code()) || matches!(error.severity(), "FATAL" | "PANIC")
}

/// Converts an error of a server that keeps the connection.
pub(crate) fn failed(error: tokio_postgres::Error) -> Error {
    const BUSY: [SqlState; 5] = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::TOO_MANY_CONNECTIONS,
    ];
    const MISSING: [SqlState; 3] =
        [SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_COLUMN, SqlState::UNDEFINED_OBJECT];
    let (kind, message) = match error.code() {
        Some(code) if BUSY.contains(code) => (ErrorKind::Busy, "the database is in use".to_owned()),
        Some(code) if MISSING.contains(code) => (ErrorKind::Corrupt, NOT_OURS.to_owned()),
        Some(&SqlState::PROGRAM_LIMIT_EXCEEDED) => {
            (ErrorKind::Limit, "the data is too large for the database".to_owned())
        }
        _ => (ErrorKind::Io, format!("the database has failed: {}", words(&error))),
    };
    Error::new(kind, message).with_source(error)
}

pub(crate) const NOT_OURS: &str = "the tables are not those of a session store";

/// Returns the message of the server or the driver, without the prefix "db error".
pub(crate) fn words(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;

    let text = match (error.as_db_error(), error.source()) {
        (Some(error), _) => error.message().to_owned(),
        (None, Some(source)) => source.to_string(),
        (None, None) => error.to_string(),
    };
    text.chars().take(EXCERPT).collect()
}

pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
