use std::path::{Path, PathBuf};

use oa_session::{
    Append, Error, Limits, List, NewSession, Pending, Revision, Session, SessionId, SessionInfo,
    SessionPage, SessionStore, StoreFuture, Timestamp, Worker,
};
use serde_json::{Map, Value};

use crate::database::Database;

/// A session store in an SQLite database.
///
/// Each store has its own connection and thread; any number of stores, also in several processes, may open the
/// same file. A writer waits for others up to the timeout in [`Limits`].
///
/// If the file is removed or replaced while a store is open, each operation of the store is an `Io` error, because its
/// writes would be lost. Open it again.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    worker: Worker<Database>,
}

impl SqliteStore {
    /// Opens the database at this path, or creates it; the folder must exist. Blocks while an older database is
    /// migrated.
    ///
    /// On Unix, only the owner can read the database; the permissions of an older one are tightened.
    ///
    /// # Errors
    ///
    /// `NewerVersion` for a database of a newer version, `Corrupt` for one of another program or a file that is
    /// not a database, `Busy` if another process locks it for too long, `Io`, including anything under this
    /// name that is not a regular file. None of these change the file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open_with(path, Limits::default())
    }

    /// Opens the database with custom limits.
    ///
    /// # Errors
    ///
    /// The same as [`open`](Self::open).
    pub fn open_with(path: impl Into<PathBuf>, limits: Limits) -> Result<Self, Error> {
        let path = path.into();
        let database = Database::open(&path, limits)?;
        Ok(Self { path, worker: Worker::spawn("oa-session-sqlite", database)? })
    }

    /// Returns the path of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl SessionStore for SqliteStore {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionInfo> {
        self.worker.run(|database| database.create(session))
    }

    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo> {
        let id = id.clone();
        self.worker.run(move |database| database.append(&id, append))
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session> {
        let id = id.clone();
        self.worker.run(move |database| database.load(&id))
    }

    fn list(&self, list: List) -> StoreFuture<'_, SessionPage> {
        self.worker.run(move |database| database.list(&list))
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()> {
        let id = id.clone();
        self.worker.run(move |database| database.delete(&id))
    }

    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo> {
        let id = id.clone();
        self.worker.run(move |database| database.fork(&id, keep, fork))
    }

    fn set_metadata<'a>(
        &'a self,
        id: &'a SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        let id = id.clone();
        self.worker.run(move |database| database.set_metadata(&id, members, at))
    }

    fn set_pending<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        let id = id.clone();
        self.worker.run(move |database| database.set_pending(&id, revision, pending.as_ref(), at))
    }
}
