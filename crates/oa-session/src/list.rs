use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};
use crate::id::SessionId;
use crate::limits::Limits;
use crate::session::SessionInfo;
use crate::timestamp::Timestamp;

/// Which sessions to list: those that were written to last come first, and equally old ones by id.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct List {
    /// Where the page before this one ended.
    pub after: Option<Cursor>,
    /// Most sessions of this page.
    pub limit: usize,
}

impl List {
    /// Creates a first page of up to `limit` sessions.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { after: None, limit }
    }

    /// Goes on where another page ended.
    #[must_use]
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Checks that a page of this size may be asked for, for those who write a store.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a page of nothing, `Limit` for one that is too long.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        match self.limit {
            0 => Err(Error::invalid_input("a page of no sessions lists nothing")),
            limit if limit > limits.page => {
                let message =
                    format!("a page has {} sessions at the most, not {limit}", limits.page);
                Err(Error::new(ErrorKind::Limit, message))
            }
            _ => Ok(()),
        }
    }
}

/// A place in a list. It stays good when sessions come, go and change: a session that was written to in
/// the meantime has moved to the front, and is not met again behind it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Cursor {
    updated_at: Timestamp,
    id: SessionId,
}

impl Cursor {
    /// Creates the place of a session that was written to then.
    #[must_use]
    pub fn new(updated_at: Timestamp, id: SessionId) -> Self {
        Self { updated_at, id }
    }

    /// Creates the place of this session.
    #[must_use]
    pub fn of(session: &SessionInfo) -> Self {
        Self::new(session.updated_at, session.id.clone())
    }

    /// Returns the id of the session at this place.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns when that session had been written to.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn key(&self) -> (Reverse<Timestamp>, &SessionId) {
        (Reverse(self.updated_at), &self.id)
    }
}

/// One page of a list.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// Where the next page goes on; `None` if this was the last.
    pub next: Option<Cursor>,
    /// Sessions that are there and cannot be read, each on one page: they hide no other.
    pub unreadable: Vec<Unreadable>,
}

impl SessionPage {
    /// Creates the page that `list` asks for out of all sessions, in any order.
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

    /// Creates a page of these sessions, for those who write a store.
    #[must_use]
    pub fn new(sessions: Vec<SessionInfo>, next: Option<Cursor>) -> Self {
        Self { sessions, next, unreadable: Vec::new() }
    }
}

/// A session that is there and cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unreadable {
    /// Its id, or the name of its file.
    pub name: String,
    /// What is wrong with it.
    pub error: Error,
}

impl Unreadable {
    /// Creates the report of a session that cannot be read.
    #[must_use]
    pub fn new(name: impl Into<String>, error: Error) -> Self {
        Self { name: name.into(), error }
    }
}
