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
        Some(_) => {
            // Many programs show only the message, and an operator has to know that the disk is full.
            let message = format!("the database has failed: {error}");
            return Error::new(ErrorKind::Io, message).with_source(error);
        }
        // A column contains something other than what was stored.
        None => (ErrorKind::Corrupt, "the database contains invalid data"),
    };
    Error::new(kind, message).with_source(error)
}

pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_tell_their_cause() {
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let error = failed(rusqlite::Error::SqliteFailure(full, None));
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().starts_with("the database has failed: "), "{error}");
        assert!(error.to_string().contains("full"), "{error}");
    }
}
