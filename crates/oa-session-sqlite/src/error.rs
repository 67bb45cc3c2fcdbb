use oa_session::{Error, ErrorKind};
use rusqlite::ErrorCode;

/// Converts an SQLite error.
pub(crate) fn failed(error: rusqlite::Error) -> Error {
    let (kind, message) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::Busy, "the database is in use")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            (ErrorKind::Corrupt, "the file is not a database, or is damaged")
        }
        Some(ErrorCode::TooBig) => (ErrorKind::Limit, "the data is too large for the database"),
        Some(_) => (ErrorKind::Io, "the database has failed"),
        // A column contains something other than what was stored.
        None => (ErrorKind::Corrupt, "the database contains invalid data"),
    };
    Error::new(kind, message).with_source(error)
}

pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}
