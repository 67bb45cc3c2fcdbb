//! Conversations that are kept: a program stops, starts again, and goes on.
//!
//! [`SessionStore`] is the trait of a store, [`MemoryStore`] one that forgets, [`JsonlStore`] one of text
//! files in a folder; a database is in `oa-session-sqlite`. [`SavedSession`] does what a program has to:
//! it opens a session and writes what is new in its history.
//!
//! ```
//! # oa_session::contract::block_on(async {
//! use std::sync::Arc;
//!
//! use oa_session::{JsonlStore, NewSession, SavedSession, SessionId, Timestamp};
//! use oa_types::Message;
//!
//! # let folder = tempfile::tempdir().expect("there is room");
//! # let folder = folder.path();
//! let store = Arc::new(JsonlStore::open(folder)?);
//! let session = NewSession::new(SessionId::new("rain")?, Timestamp::now()).with_title("About rain");
//! let mut saved = SavedSession::open_or_create(store.clone(), session).await?;
//!
//! // With a client: Client::with_history(options, saved.session().messages.clone())
//! let mut history = saved.session().messages.clone();
//! history.extend([Message::user("Why does it rain?"), Message::assistant(vec![])]);
//! // After each turn: saved.save_now(client.history())
//! saved.save_now(&history).await?;
//! # Ok::<(), oa_session::Error>(())
//! # }).unwrap();
//! ```
//!
//! # What every store promises
//!
//! - What was acknowledged is there, whatever is killed afterwards; a turn is there wholly or not at all.
//! - A conversation is valid: no call without its result. A turn that waits for somebody's permission is
//!   kept beside it ([`Pending`]).
//! - Two writers of one session cannot mix their words: each change names the [`Revision`] it follows, and
//!   the later one is told of a conflict.
//! - Nothing that cannot be read, or was written by a newer version, is ever written over.
//! - Everything is bounded ([`Limits`]), and times are the caller's ([`Timestamp`]).
//!
//! `contract::check` (feature `contract`) puts any store to that.
//!
//! # Who needs this crate alone
//!
//! Whoever writes a store, or keeps conversations of a loop of their own. To run an agent, take the facade
//! `open-agent`.
//!
//! # Not in it
//!
//! No runtime: files are read and written by a thread of each store, and its futures may be polled
//! anywhere. No randomness: ids come from the caller. No clock in any store: times come from the caller, too.
//! [`Timestamp::now`], and [`SavedSession::save_now`] and its like which call it, are the one place that asks the
//! system's clock.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;

mod id;
mod revision;
mod timestamp;

mod append;
mod limits;
mod list;
mod pending;
mod session;

mod saved;
mod store;

pub mod rules;

mod ledger;
mod memory;

mod jsonl;
mod record;
mod worker;

#[cfg(feature = "contract")]
pub mod contract;

pub use crate::append::Append;
pub use crate::error::{Error, ErrorKind};
pub use crate::id::SessionId;
pub use crate::jsonl::JsonlStore;
pub use crate::limits::Limits;
pub use crate::list::{Cursor, List, SessionPage, Unreadable};
pub use crate::memory::MemoryStore;
pub use crate::pending::Pending;
pub use crate::revision::Revision;
pub use crate::saved::SavedSession;
pub use crate::session::{NewSession, Session, SessionInfo};
pub use crate::store::{SessionStore, StoreFuture};
pub use crate::timestamp::Timestamp;
pub use crate::worker::Worker;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
