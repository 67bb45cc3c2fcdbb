use oa_session::{Error, ErrorKind};
use rusqlite::ErrorCode;

/// Sorts an error of SQLite.
pub(crate) fn failed(error: rusqlite::Error) -> Error {
    let (kind, message) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::Busy, "the database is in use")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            (ErrorKind::Corrupt, "the file is no database, or a broken one")
        }
        Some(ErrorCode::TooBig) => (ErrorKind::Limit, "it is too large for the database"),
        Some(_) => (ErrorKind::Io, "the database has failed"),
        // What stands in a column is not what was put there.
        None => (ErrorKind::Corrupt, "the database holds what cannot be read"),
    };
    Error::new(kind, message).with_source(error)
}

pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}
