//! Sessions in an SQLite database: [`SqliteStore`] is an [`oa_session::SessionStore`].
//!
//! All sessions are in one file (plus two that SQLite maintains), lists use an index, and any number of
//! processes may share the database. SQLite is compiled with this crate. For text files in a folder, without a
//! C compiler, use `oa_session::JsonlStore`.
//!
//! ```
//! # oa_session::contract::block_on(async {
//! use oa_session::{Append, NewSession, SessionId, SessionStore, Timestamp};
//! use oa_session_sqlite::SqliteStore;
//! use oa_types::Message;
//!
//! # let folder = tempfile::tempdir().expect("there is room");
//! # let path = folder.path().join("chats.db");
//! let (id, now) = (SessionId::new("chat-1")?, Timestamp::from_millis(0));
//! let store = SqliteStore::open(&path)?;
//! let session = store.create(NewSession::new(id.clone(), now)).await?;
//! let turn = vec![Message::user("Hi"), Message::assistant(vec![])];
//! store.append(&id, Append::new(session.revision, turn.clone(), now)).await?;
//! drop(store);
//!
//! let store = SqliteStore::open(&path)?; // another day
//! assert_eq!(store.load(&id).await?.messages, turn);
//! # Ok::<(), oa_session::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Guarantees
//!
//! Acknowledged writes are on disk (`synchronous = FULL`, write-ahead log). An older database is migrated when it is
//! opened; a database of a newer version or of another program is an error and is left unchanged.
//!
//! # Privacy
//!
//! On Unix, the database and SQLite's additional files have mode 0600; looser permissions are tightened when a database
//! is opened. The folder's permissions are up to the caller. A link, a FIFO or anything else but a regular file under
//! one of these names is an `Io` error. On other systems the folder's access rules apply.

mod store;

mod database;
mod files;
mod row;
mod schema;

mod error;

pub use crate::store::SqliteStore;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
