//! Conversion of rows.

use oa_session::{
    Cursor, Error, ErrorKind, NewSession, Revision, SessionId, SessionInfo, Timestamp,
};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use crate::error::{Failure, corrupt};

/// A parameter of a statement with its type, so that the server is asked once.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The columns that [`read`] expects, in order.
pub(crate) const COLUMNS: &str = "number, id, created_at, updated_at, metadata, message_count, bytes, revision, pending IS NOT NULL";

/// A session without its messages.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) number: i64,
    pub(crate) bytes: u64,
    pub(crate) info: SessionInfo,
}

impl Found {
    /// Returns the number of messages in the type of the database.
    pub(crate) fn count(&self) -> i64 {
        signed(self.info.message_count)
    }
}

/// Returns a column. An unexpected type is an error of kind `Corrupt`.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Failure> {
    row.try_get(column).map_err(|error| {
        let message = "the database contains invalid data";
        Error::new(ErrorKind::Corrupt, message).with_source(error).into()
    })
}

/// Returns the session's position in lists, which must be readable, and the content of the row.
pub(crate) fn read(row: &Row) -> Result<(Cursor, Result<Found, Error>), Failure> {
    let id = SessionId::new(get::<&str>(row, 1)?)
        .map_err(|error| corrupt("a session has an invalid id").with_source(error))?;
    let updated_at = Timestamp::from_millis(get(row, 3)?);
    let cursor = Cursor::new(updated_at, id);
    let found = match read_rest(row, &cursor) {
        Ok(found) => Ok(found),
        Err(Failure::Store(error)) => Err(error),
        Err(other) => return Err(other),
    };
    Ok((cursor, found))
}

fn read_rest(row: &Row, cursor: &Cursor) -> Result<Found, Failure> {
    let id = cursor.id();
    let metadata = serde_json::from_str(get(row, 4)?).map_err(|error| {
        corrupt(format!("the metadata of session {id} is damaged")).with_source(error)
    })?;
    let created_at = Timestamp::from_millis(get(row, 2)?);
    let session = NewSession::new(id.clone(), created_at).with_metadata(metadata);
    let mut info = SessionInfo::new(session, revision_of(get(row, 7)?));
    info.updated_at = cursor.updated_at();
    info.message_count = unsigned(get(row, 5)?)?;
    info.is_pending = get(row, 8)?;
    Ok(Found { number: get(row, 0)?, bytes: unsigned(get(row, 6)?)?, info })
}

pub(crate) fn revision_of(stored: i64) -> Revision {
    Revision::from_bits(stored.cast_unsigned())
}

/// Converts a count for the database. The limits keep all of them far below its largest.
pub(crate) fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn unsigned<T: TryFrom<i64>>(stored: i64) -> Result<T, Error> {
    T::try_from(stored).map_err(|_| corrupt("the database contains a negative count"))
}
