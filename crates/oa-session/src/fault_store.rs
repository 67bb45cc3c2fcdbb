//! A store whose operations fail when a test says so.

use std::fmt;
use std::pin::Pin;

use serde_json::{Map, Value};

use crate::append::Append;
use crate::error::Error;
use crate::id::SessionId;
use crate::list::{List, SessionPage};
use crate::pending::Pending;
use crate::revision::Revision;
use crate::session::{NewSession, Session, SessionInfo};
use crate::store::{SessionStore, StoreFuture};
use crate::timestamp::Timestamp;

/// A store around another one, whose operations fail or wait when a test says so: for testing what your program does
/// when the disk is full, the database restarts, or a stored write is never confirmed.
///
/// ```
/// use oa_session::contract::block_on;
/// use oa_session::{
///     Error, ErrorKind, FaultPoint, FaultStore, MemoryStore, NewSession, Operation, SessionId, SessionStore, Timestamp,
/// };
///
/// let store = FaultStore::new(MemoryStore::new(), async |point| match point {
///     FaultPoint::After(Operation::Create) => Err(Error::new(ErrorKind::Io, "the connection broke")),
///     _ => Ok(()),
/// });
/// let id = SessionId::new("ada")?;
/// let session = NewSession::new(id.clone(), Timestamp::from_millis(0));
/// let error = block_on(store.create(session)).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Io);
/// // It was stored all the same.
/// assert!(block_on(store.load(&id)).is_ok());
/// # Ok::<(), Error>(())
/// ```
pub struct FaultStore<S> {
    inner: S,
    fault: Box<dyn Fn(FaultPoint) -> Fault + Send + Sync>,
}

type Fault = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// A point at which an operation of a [`FaultStore`] may fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FaultPoint {
    /// Before the operation. After an error, the inner store is not called.
    Before(Operation),
    /// After the operation has succeeded. An error replaces its result: the caller does not learn that it succeeded.
    After(Operation),
}

/// An operation of a store: a method of [`SessionStore`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Operation {
    /// [`append`](SessionStore::append).
    Append,
    /// [`append_once`](SessionStore::append_once).
    AppendOnce,
    /// [`create`](SessionStore::create).
    Create,
    /// [`delete`](SessionStore::delete).
    Delete,
    /// [`fork`](SessionStore::fork).
    Fork,
    /// [`list`](SessionStore::list).
    List,
    /// [`load`](SessionStore::load).
    Load,
    /// [`rewind`](SessionStore::rewind).
    Rewind,
    /// [`set_metadata`](SessionStore::set_metadata).
    SetMetadata,
    /// [`set_pending`](SessionStore::set_pending).
    SetPending,
}

impl<S: SessionStore> FaultStore<S> {
    /// Wraps a store. `fault` is called before each operation and after each success: the operation goes on once its
    /// future returns `Ok`, so a future that waits makes the operation wait.
    pub fn new<F, Fut>(inner: S, fault: F) -> Self
    where
        F: Fn(FaultPoint) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Error>> + Send + 'static,
    {
        Self { inner, fault: Box::new(move |point| Box::pin(fault(point))) }
    }

    /// Returns the inner store, whose operations do not fail.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn run<'a, T: Send + 'a>(
        &'a self,
        operation: Operation,
        work: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            (self.fault)(FaultPoint::Before(operation)).await?;
            let result = work.await?;
            (self.fault)(FaultPoint::After(operation)).await?;
            Ok(result)
        })
    }
}

impl<S: SessionStore> SessionStore for FaultStore<S> {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionInfo> {
        self.run(Operation::Create, self.inner.create(session))
    }

    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo> {
        self.run(Operation::Append, self.inner.append(id, append))
    }

    fn append_once<'a>(
        &'a self,
        id: &'a SessionId,
        message_count: usize,
        append: Append,
    ) -> StoreFuture<'a, SessionInfo> {
        self.run(Operation::AppendOnce, self.inner.append_once(id, message_count, append))
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session> {
        self.run(Operation::Load, self.inner.load(id))
    }

    fn list(&self, list: List) -> StoreFuture<'_, SessionPage> {
        self.run(Operation::List, self.inner.list(list))
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()> {
        self.run(Operation::Delete, self.inner.delete(id))
    }

    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo> {
        self.run(Operation::Fork, self.inner.fork(id, keep, fork))
    }

    fn rewind<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        keep: usize,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.run(Operation::Rewind, self.inner.rewind(id, revision, keep, at))
    }

    fn set_metadata<'a>(
        &'a self,
        id: &'a SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.run(Operation::SetMetadata, self.inner.set_metadata(id, members, at))
    }

    fn set_pending<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.run(Operation::SetPending, self.inner.set_pending(id, revision, pending, at))
    }
}

impl<S: fmt::Debug> fmt::Debug for FaultStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}
