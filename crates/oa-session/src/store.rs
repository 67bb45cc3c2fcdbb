use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::append::Append;
use crate::error::{Error, ErrorKind};
use crate::id::SessionId;
use crate::list::{List, SessionPage};
use crate::pending::Pending;
use crate::revision::Revision;
use crate::session::{NewSession, Session, SessionInfo};
use crate::timestamp::Timestamp;

/// What the methods of a [`SessionStore`] return.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A place where conversations are kept.
///
/// It is object safe, and passed around as `Arc<dyn SessionStore>`. What is written is there for good
/// once its future has completed, all of it or nothing. Of two writers of one session, the one that has
/// not seen what the other wrote gets a [`Conflict`](crate::ErrorKind::Conflict). A store
/// holds valid conversations only: each call has its result behind it.
///
/// Whoever implements it finds the checks in [`rules`](crate::rules), a thread for blocking work in
/// [`Worker`](crate::Worker), and a test of all that is promised here in `contract::check` (feature
/// `contract`).
///
/// # Cancel safety
///
/// A future that is dropped before it was polled does nothing. One that is dropped later has happened
/// wholly or not at all: load the session to see.
///
/// # Errors
///
/// Beside what each method names: `Busy`, `Closed` and `Io` if the store does not answer, `Corrupt` and
/// `NewerVersion` if it holds what cannot be read, `Limit` for whatever is too large.
pub trait SessionStore: fmt::Debug + Send + Sync {
    /// Creates a session without messages.
    ///
    /// # Errors
    ///
    /// `AlreadyExists`, also for a session that cannot be read.
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionInfo>;

    /// Appends messages, all or none, and returns the new facts about the session. A call that waited for permission waits no more.
    ///
    /// # Errors
    ///
    /// `Conflict` if the session is at another revision, `NotFound`, `InvalidInput` if a call has no
    /// result or a result no call.
    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo>;

    /// Reads a session with all its messages.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session>;

    /// Lists sessions without reading their messages, page by page.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a page of nothing.
    fn list(&self, list: List) -> StoreFuture<'_, SessionPage>;

    /// Removes a session, also one that cannot be read.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()>;

    /// Creates a session that begins with the first `keep` messages of another, and with its metadata;
    /// the new one's own members replace those of the same name. What waits for permission stays behind.
    ///
    /// # Errors
    ///
    /// `NotFound`, `AlreadyExists`, `InvalidInput` if there are fewer messages, or the next one is the
    /// result of a call.
    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo>;

    /// Takes back all but the first `keep` messages, and what waits for permission.
    ///
    /// # Errors
    ///
    /// `Conflict` if the session is at another revision, `NotFound`, `InvalidInput` if there are fewer
    /// messages, or the first to go is the result of a call.
    fn rewind<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        keep: usize,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.append(id, Append::new(revision, Vec::new(), at).keeping(keep))
    }

    /// Sets members of the metadata; the others stay, and those set to null go. The revision stays.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    fn set_metadata<'a>(
        &'a self,
        id: &'a SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo>;

    /// Saves the call that waits for permission, in place of any other; `None` says that no call waits any more.
    ///
    /// # Errors
    ///
    /// `Conflict` if the session is at another revision, `NotFound`, `InvalidInput` if the call is not
    /// open at the end of its turn.
    fn set_pending<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo>;
}

impl<S: SessionStore + ?Sized> SessionStore for Arc<S> {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionInfo> {
        (**self).create(session)
    }

    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo> {
        (**self).append(id, append)
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session> {
        (**self).load(id)
    }

    fn list(&self, list: List) -> StoreFuture<'_, SessionPage> {
        (**self).list(list)
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()> {
        (**self).delete(id)
    }

    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo> {
        (**self).fork(id, keep, fork)
    }

    fn rewind<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        keep: usize,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        (**self).rewind(id, revision, keep, at)
    }

    fn set_metadata<'a>(
        &'a self,
        id: &'a SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        (**self).set_metadata(id, members, at)
    }

    fn set_pending<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        (**self).set_pending(id, revision, pending, at)
    }
}

/// Errors that every store tells in the same words.
impl Error {
    /// Creates the error of a session that is there already.
    #[must_use]
    pub fn already_exists(id: &SessionId) -> Self {
        Self::new(ErrorKind::AlreadyExists, format!("there is a session {id} already"))
    }

    /// Creates the error of a writer whose session has gone on without it.
    #[must_use]
    pub fn conflict(id: &SessionId, expected: Revision, found: Revision) -> Self {
        let message = format!("session {id} is at revision {found}, and not at {expected}");
        Self::new(ErrorKind::Conflict, message)
    }

    /// Creates the error of a session that is not there.
    #[must_use]
    pub fn not_found(id: &SessionId) -> Self {
        Self::new(ErrorKind::NotFound, format!("there is no session {id}"))
    }
}
