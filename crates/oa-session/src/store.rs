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

/// The future returned by the methods of a [`SessionStore`].
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A store for conversations.
///
/// Dyn compatible; passed around as `Arc<dyn SessionStore>`. Each write is atomic, and durable once its future
/// has completed. A writer that has not seen another's changes gets a [`Conflict`](crate::ErrorKind::Conflict).
/// A store contains only valid conversations: each call is followed by its result.
///
/// Implementors find the checks in [`rules`](crate::rules), a thread for blocking work in
/// [`Worker`](crate::Worker), and a test of all guarantees in `contract::check` (feature `contract`).
///
/// # Cancel safety
///
/// A future dropped before its first poll does nothing. Dropped later, its operation happens completely or not
/// at all: load the session to see which.
///
/// # Errors
///
/// In addition to the errors of each method: `Busy`, `Closed` and `Io` if the store does not respond, `Corrupt`
/// and `NewerVersion` if it contains unreadable data, `Limit` if a limit is exceeded.
pub trait SessionStore: fmt::Debug + Send + Sync {
    /// Creates a session without messages.
    ///
    /// # Errors
    ///
    /// `AlreadyExists`, also for a session that cannot be read.
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionInfo>;

    /// Appends messages atomically and returns the updated facts. Clears a pending call.
    ///
    /// # Errors
    ///
    /// `Conflict` if the session is at another revision, `NotFound`, `InvalidInput` for a call without a result
    /// or a result without a call.
    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo>;

    /// Appends messages like [`append`](Self::append), but may be repeated: for a program that did not learn whether
    /// its first attempt succeeded.
    ///
    /// `message_count` is the number of messages at the append's revision; remember both if you may have to repeat the
    /// append. At another revision, the append counts as done if the session has no pending call and its messages from
    /// there on (or from [`keep`](Append::keep) on) equal the appended ones. The session is then as the append would
    /// have left it, and its facts are returned. Neither earlier messages nor the author are compared: if two writers
    /// append equal messages at the same revision, the second is taken for a repetition of the first.
    ///
    /// The default implementation appends, and loads the session after a conflict. This is free of races: a session
    /// never returns to an earlier revision, so a conflict is final.
    ///
    /// # Errors
    ///
    /// The errors of [`append`](Self::append) and [`load`](Self::load). `Conflict` if the session is at another
    /// revision and its messages differ, or if more messages follow the appended ones.
    fn append_once<'a>(
        &'a self,
        id: &'a SessionId,
        message_count: usize,
        append: Append,
    ) -> StoreFuture<'a, SessionInfo> {
        Box::pin(async move {
            // The place where the appended messages begin, whether or not the first attempt was stored.
            let (first, messages) = (append.keep.unwrap_or(message_count), append.messages.clone());
            let conflict = match self.append(id, append).await {
                Err(error) if error.kind() == ErrorKind::Conflict => error,
                result => return result,
            };
            let session = self.load(id).await?;
            // `get(first..)` has no end, so messages that someone added behind the appended ones are a
            // conflict, too: whoever repeats an append must not miss them.
            let is_done = session.pending.is_none()
                && session.messages.get(first..).is_some_and(|tail| tail == messages);
            if is_done { Ok(session.info) } else { Err(conflict) }
        })
    }

    /// Loads a session with all its messages.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session>;

    /// Lists a page of sessions, without reading their messages.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a page size of zero.
    fn list(&self, list: List) -> StoreFuture<'_, SessionPage>;

    /// Deletes a session, even an unreadable one.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()>;

    /// Creates a session from the first `keep` messages and the metadata of another; the new session's own
    /// metadata takes precedence. A pending call is not copied.
    ///
    /// # Errors
    ///
    /// `NotFound`, `AlreadyExists`, `InvalidInput` if there are fewer messages, or the next one is the result
    /// of a call.
    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo>;

    /// Removes all but the first `keep` messages, and a pending call.
    ///
    /// # Errors
    ///
    /// `Conflict` if the session is at another revision, `NotFound`, `InvalidInput` if there are fewer
    /// messages, or the first removed one is the result of a call.
    fn rewind<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        keep: usize,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.append(id, Append::new(revision, Vec::new(), at).keeping(keep))
    }

    /// Merges members into the metadata; null removes a member. The revision does not change.
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

    /// Saves the call waiting for permission, replacing any other; `None` clears it.
    ///
    /// # Errors
    ///
    /// `Conflict` if the session is at another revision, `NotFound`, `InvalidInput` if the call is not open at
    /// the end of its turn.
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

    fn append_once<'a>(
        &'a self,
        id: &'a SessionId,
        message_count: usize,
        append: Append,
    ) -> StoreFuture<'a, SessionInfo> {
        (**self).append_once(id, message_count, append)
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

/// Errors with the same words in every store.
impl Error {
    /// Creates an error for a session that already exists.
    #[must_use]
    pub fn already_exists(id: &SessionId) -> Self {
        Self::new(ErrorKind::AlreadyExists, format!("session {id} already exists"))
    }

    /// Creates an error for a writer with an outdated revision.
    #[must_use]
    pub fn conflict(id: &SessionId, expected: Revision, found: Revision) -> Self {
        let message = format!(
            "session {id} was changed by another writer: load it again, or save this conversation as another session \
             (revision {found}, not {expected})"
        );
        Self::new(ErrorKind::Conflict, message)
    }

    /// Creates an error for a session that does not exist.
    #[must_use]
    pub fn not_found(id: &SessionId) -> Self {
        Self::new(ErrorKind::NotFound, format!("session {id} does not exist"))
    }
}
