use std::path::{Path, PathBuf};

use oa_session::{
    Append, Error, Limits, List, NewSession, Pending, Revision, Session, SessionId, SessionInfo,
    SessionPage, SessionStore, StoreFuture, Timestamp, Worker,
};
use serde_json::{Map, Value};

use crate::database::Database;

/// A store in an SQLite database.
///
/// Each has a connection and a thread of its own; any number of them, of several processes too, may
/// have the same file open. Whoever finds another writing waits for it, as long as the
/// [`Limits`] say.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    worker: Worker<Database>,
}

impl SqliteStore {
    /// Opens the database at this path, or creates it; the folder has to exist. Blocks while an older database
    /// is brought up to date.
    ///
    /// On Unix only the owner can read a new database, and an older one has its permissions tightened to that.
    ///
    /// # Errors
    ///
    /// `NewerVersion` for a database of a newer version, `Corrupt` for one of another program and for
    /// what is no database, `Busy` if somebody else is at it for too long, `Io`, which includes anything under this name
    /// that is not a regular file. None of them changes what is in the file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open_with(path, Limits::default())
    }

    /// Opens the database with limits of your own.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(path: impl Into<PathBuf>, limits: Limits) -> Result<Self, Error> {
        let path = path.into();
        let database = Database::open(&path, limits)?;
        Ok(Self { path, worker: Worker::spawn("oa-session-sqlite", database)? })
    }

    /// Returns where the database is.
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
