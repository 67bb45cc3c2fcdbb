mod chain;
mod end;
mod folder;
mod fresh;
mod lines;
mod lock;
mod locked;
mod log;
mod name;
mod private;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::append::Append;
use crate::error::Error;
use crate::id::SessionId;
use crate::limits::Limits;
use crate::list::{List, SessionPage};
use crate::pending::Pending;
use crate::revision::Revision;
use crate::session::{NewSession, Session, SessionInfo};
use crate::store::{SessionStore, StoreFuture};
use crate::timestamp::Timestamp;
use crate::worker::Worker;

use self::folder::Folder;

pub use self::locked::LockedFile;

/// A store with one text file per session, in its own folder.
///
/// Several stores, also in several processes, may share a folder, which is locked during each read or write.
/// Writes are synced to disk (`fdatasync`) before they are acknowledged. A record cut short by a crash is
/// ignored; everything acknowledged before it is kept.
///
/// # Privacy
///
/// On Unix, folders are created with mode 0700 and files with 0600. Looser permissions from an older store are
/// tightened: the folder's when the store is opened, unless it contains anything but sessions, and a file's
/// when it is next opened. Elsewhere the folder's own access rules apply.
///
/// Only regular files are opened. A symbolic link, FIFO or anything else with a session's file name is an `Io`
/// error for that session and listed as unreadable; it is neither followed nor waited for. Links in the path of
/// the folder itself are followed.
///
/// # The files
///
/// `session-ID.jsonl`, where bytes of the id other than `a-z`, `0-9`, `-` and `_` are written as `%` and two
/// hexadecimal digits. Each line is one change: a JSON object with the format version `v`, the `op`, the time
/// `at` in milliseconds, and a checksum `sum` over the file up to and including the line.
///
/// | `op` | members | |
/// | --- | --- | --- |
/// | `create` | `id`, `metadata` | the first line |
/// | `append` | `messages`, `keep`? | keeps the first `keep` of the existing messages |
/// | `metadata` | `metadata` | the complete metadata |
/// | `pending` | `pending` | a call waiting for permission, or null |
/// | `state` | `revision`, `pending` | in a compacted file |
///
/// A file is compacted when more than half of it, and more than a megabyte, is no longer needed. This is
/// version 1. Files with one bare message per line (version 0) are read too and continued. A line of a newer version or
/// a damaged line is an error; such a file is neither changed nor read in part.
///
/// ```
/// # oa_session::contract::block_on(async {
/// use oa_session::{Append, JsonlStore, NewSession, SessionId, SessionStore, Timestamp};
/// use oa_types::Message;
///
/// # let folder = tempfile::tempdir().expect("there is room");
/// # let folder = folder.path();
/// let (id, now) = (SessionId::new("chat-1")?, Timestamp::from_millis(0));
/// let store = JsonlStore::open(folder)?;
/// let session = store.create(NewSession::new(id.clone(), now)).await?;
/// let turn = vec![Message::user("Hi"), Message::assistant(vec![])];
/// store.append(&id, Append::new(session.revision, turn.clone(), now)).await?;
/// drop(store);
///
/// let store = JsonlStore::open(folder)?; // another day
/// assert_eq!(store.load(&id).await?.messages, turn);
/// # Ok::<(), oa_session::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct JsonlStore {
    path: PathBuf,
    worker: Worker<Folder>,
}

impl JsonlStore {
    /// Opens the store in this folder, creating it if needed.
    ///
    /// # Errors
    ///
    /// `Io` if the folder cannot be created or written.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open_with(folder, Limits::default())
    }

    /// Opens the store with custom limits.
    ///
    /// # Errors
    ///
    /// The same as [`open`](Self::open).
    pub fn open_with(folder: impl Into<PathBuf>, limits: Limits) -> Result<Self, Error> {
        let path = folder.into();
        let folder = Folder::open(path.clone(), limits)?;
        Ok(Self { path, worker: Worker::spawn("oa-session-jsonl", folder)? })
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl SessionStore for JsonlStore {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionInfo> {
        self.worker.run(|folder| folder.create(session))
    }

    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo> {
        let id = id.clone();
        self.worker.run(move |folder| folder.append(&id, append))
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session> {
        let id = id.clone();
        self.worker.run(move |folder| folder.load(&id))
    }

    fn list(&self, list: List) -> StoreFuture<'_, SessionPage> {
        self.worker.run(move |folder| folder.list(&list))
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()> {
        let id = id.clone();
        self.worker.run(move |folder| folder.delete(&id))
    }

    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo> {
        let id = id.clone();
        self.worker.run(move |folder| folder.fork(&id, keep, fork))
    }

    fn set_metadata<'a>(
        &'a self,
        id: &'a SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        let id = id.clone();
        self.worker.run(move |folder| folder.set_metadata(&id, members, at))
    }

    fn set_pending<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        let id = id.clone();
        self.worker.run(move |folder| folder.set_pending(&id, revision, pending.as_ref(), at))
    }
}
