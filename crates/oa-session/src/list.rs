use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};
use crate::id::SessionId;
use crate::limits::Limits;
use crate::session::SessionInfo;
use crate::timestamp::Timestamp;

/// A query for a page of sessions, most recently updated first, then by id.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct List {
    /// The end of the previous page.
    pub after: Option<Cursor>,
    /// The largest number of sessions on this page.
    pub limit: usize,
}

impl List {
    /// Creates a query for the first page, with up to `limit` sessions.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { after: None, limit }
    }

    /// Continues after another page.
    #[must_use]
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Checks the page size; for implementors of stores.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is zero, `Limit` if it is too large.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        match self.limit {
            0 => Err(Error::invalid_input("the page size must be at least 1")),
            limit if limit > limits.page => {
                let message = format!("the page size must be at most {}, not {limit}", limits.page);
                Err(Error::new(ErrorKind::Limit, message))
            }
            _ => Ok(()),
        }
    }
}

/// A position in a list. It stays valid when sessions are added, changed and removed: a session updated in the
/// meantime has moved to the front and does not reappear.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Cursor {
    updated_at: Timestamp,
    id: SessionId,
}

impl Cursor {
    /// Creates the position of a session with this update time.
    #[must_use]
    pub fn new(updated_at: Timestamp, id: SessionId) -> Self {
        Self { updated_at, id }
    }

    /// Creates the position of this session.
    #[must_use]
    pub fn of(session: &SessionInfo) -> Self {
        Self::new(session.updated_at, session.id.clone())
    }

    /// Returns the id of the session at this position.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the update time of that session.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn key(&self) -> (Reverse<Timestamp>, &SessionId) {
        (Reverse(self.updated_at), &self.id)
    }
}

/// A page of a list.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// The position of the next page; `None` on the last page.
    pub next: Option<Cursor>,
    /// Sessions that could not be read, each listed on one page, without hiding others.
    pub unreadable: Vec<UnreadableSession>,
}

impl SessionPage {
    /// Creates the page for a query from all sessions, in any order.
    #[must_use]
    pub fn of(list: &List, mut sessions: Vec<SessionInfo>) -> Self {
        fn key(session: &SessionInfo) -> (Reverse<Timestamp>, &SessionId) {
            (Reverse(session.updated_at), &session.id)
        }

        if let Some(after) = &list.after {
            sessions.retain(|session| key(session) > after.key());
        }
        sessions.sort_by(|a, b| key(a).cmp(&key(b)));
        let has_more = sessions.len() > list.limit;
        sessions.truncate(list.limit);
        let next = sessions.last().filter(|_| has_more).map(Cursor::of);
        Self::new(sessions, next)
    }

    /// Creates a page with these sessions; for implementors of stores.
    #[must_use]
    pub fn new(sessions: Vec<SessionInfo>, next: Option<Cursor>) -> Self {
        Self { sessions, next, unreadable: Vec::new() }
    }
}

/// A session that could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct UnreadableSession {
    /// Its id, or the name of its file.
    pub name: String,
    /// The error.
    pub error: Error,
}

impl UnreadableSession {
    /// Creates a report for a session that could not be read.
    #[must_use]
    pub fn new(name: impl Into<String>, error: Error) -> Self {
        Self { name: name.into(), error }
    }
}
