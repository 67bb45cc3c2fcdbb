//! Conversations that are kept in an SQLite database: [`SqliteStore`] is an
//! [`oa_session::SessionStore`].
//!
//! All sessions are in one file (and the two that SQLite keeps beside it), lists come from an index, and
//! any number of processes may share it. The database is SQLite's own source, built with this crate.
//! For a folder of text files, and without a C compiler, take `oa_session::JsonlStore`.
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
//! # What is promised
//!
//! What is acknowledged is on the disk (`synchronous = FULL`, write-ahead log). A database of an older
//! version is brought up to date when it is opened; one of a newer version, or of another program, is an
//! error, and is not touched.
//!
//! # Privacy
//!
//! On Unix the database and the files that SQLite keeps beside it have mode 0600, and are tightened to that when an
//! older database is opened; the folder is the caller's. A link, a FIFO or anything else but a regular file under one
//! of their names is an `Io` error. On other systems the folder's access rules apply.

mod store;

mod database;
mod files;
mod row;
mod schema;

mod error;

pub use crate::store::SqliteStore;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
