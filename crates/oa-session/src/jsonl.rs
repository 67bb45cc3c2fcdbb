mod chain;
mod end;
mod folder;
mod fresh;
mod lines;
mod lock;
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

/// A store of one text file per session, in a folder of its own.
///
/// Several stores, of several processes too, may share a folder: it is locked while one of them reads
/// or writes. What is written is on the disk (`fdatasync`) before anybody is told so. A record that was
/// cut short by a crash is passed by, and what was acknowledged before it is there.
///
/// # Privacy
///
/// On Unix, folders are created with mode 0700 and files with 0600. Looser permissions of an older store are
/// tightened: those of the folder when the store is opened, unless the folder holds anything but sessions, and those of a
/// file when it is next opened. Elsewhere the folder's own access rules apply.
///
/// Only regular files are opened. A symbolic link, a FIFO or anything else that is named like a session is an
/// `Io` error for that session, and listed as unreadable; it is neither followed nor waited for. Links in the
/// path of the folder itself are the caller's, and followed.
///
/// # The files
///
/// `session-ID.jsonl`, where bytes of the id other than `a-z`, `0-9`, `-` and `_` are `%` and two
/// hexadecimal digits. Each line is a change: a JSON object with the version `v` of its form, the `op`, the
/// time `at` in milliseconds, and a checksum `sum` over all of the file before it.
///
/// | `op` | members | |
/// | --- | --- | --- |
/// | `create` | `id`, `metadata` | the first line |
/// | `append` | `messages`, `keep`? | of the messages before, the first `keep` stay |
/// | `metadata` | `metadata` | all of it |
/// | `pending` | `pending` | a call that waits, or null |
/// | `state` | `revision`, `pending` | in a file that was written anew |
///
/// A file is written anew, without what was taken back, when more than half of it and a megabyte is
/// that. The version is 1. A file of bare messages, one to a line (version 0), is read too and goes on
/// from there; a line of a newer version is an error, and so is any that cannot be read: a file with
/// such a line is neither changed nor read in part.
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
    /// Opens the store in this folder, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// `Io` if the folder cannot be made or written to.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open_with(folder, Limits::default())
    }

    /// Opens the store with limits of your own.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
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
