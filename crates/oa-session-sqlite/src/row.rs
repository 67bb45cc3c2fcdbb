//! Conversion of rows.

use oa_session::{Cursor, Error, NewSession, Revision, SessionId, SessionInfo, Timestamp};
use rusqlite::Row;

use crate::error::{corrupt, failed};

/// The columns that [`read`] expects, in order.
pub(crate) const COLUMNS: &str = "number, id, created_at, updated_at, metadata, message_count, bytes, revision, pending IS NOT NULL";

/// A session without its messages.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) number: i64,
    pub(crate) bytes: u64,
    pub(crate) info: SessionInfo,
}

/// Returns the session's position in lists, which must be readable, and the content of the row.
pub(crate) fn read(row: &Row<'_>) -> Result<(Cursor, Result<Found, Error>), Error> {
    let id: String = row.get(1).map_err(failed)?;
    let id = SessionId::new(id)
        .map_err(|error| corrupt("a session has an invalid id").with_source(error))?;
    let updated_at = Timestamp::from_millis(row.get(3).map_err(failed)?);
    let cursor = Cursor::new(updated_at, id);
    let found = read_rest(row, &cursor);
    Ok((cursor, found))
}

fn read_rest(row: &Row<'_>, cursor: &Cursor) -> Result<Found, Error> {
    let id = cursor.id();
    let metadata: String = row.get(4).map_err(failed)?;
    let metadata = serde_json::from_str(&metadata).map_err(|error| {
        corrupt(format!("the metadata of session {id} is damaged")).with_source(error)
    })?;
    let created_at = Timestamp::from_millis(row.get(2).map_err(failed)?);
    let session = NewSession::new(id.clone(), created_at).with_metadata(metadata);
    let revision: i64 = row.get(7).map_err(failed)?;
    let mut info = SessionInfo::new(session, Revision::from_bits(revision.cast_unsigned()));
    info.updated_at = cursor.updated_at();
    info.message_count = row.get(5).map_err(failed)?;
    info.is_pending = row.get(8).map_err(failed)?;
    Ok(Found { number: row.get(0).map_err(failed)?, bytes: row.get(6).map_err(failed)?, info })
}
