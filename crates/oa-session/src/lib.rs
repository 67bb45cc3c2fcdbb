//! Stores for conversations, so that a program can stop and continue later.
//!
//! [`SessionStore`] is the trait. [`MemoryStore`] keeps sessions in memory, and [`JsonlStore`] in text files in a
//! folder; `oa-session-sqlite` adds a database. Most programs use [`SavedSession`]: it opens a session and saves new
//! messages of its history, or [follows](SavedSession::follow) a turn and saves after each step.
//!
//! ```
//! # oa_session::contract::block_on(async {
//! use std::sync::Arc;
//!
//! use oa_session::{JsonlStore, NewSession, SavedSession};
//! use oa_types::Message;
//!
//! # let folder = tempfile::tempdir().expect("there is room");
//! # let folder = folder.path();
//! let store = Arc::new(JsonlStore::open(folder)?);
//! let session = NewSession::now("rain")?.with_title("About rain");
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
//! # Guarantees of every store
//!
//! - Acknowledged writes survive a killed process, and a turn is stored completely or not at all.
//! - Conversations are valid: no call without its result. A turn waiting for permission is stored separately
//!   ([`Pending`]).
//! - Two writers of one session cannot interleave: each change names the [`Revision`] that it is based on, and the
//!   later change gets a conflict.
//! - Damaged data and data from newer versions are never overwritten.
//! - Everything is bounded ([`Limits`]), and the caller supplies all times ([`Timestamp`]).
//!
//! `contract::check` (feature `contract`) tests these guarantees for any store.
//!
//! # When to use this crate directly
//!
//! To implement a store, or to save conversations of your own agent loop. To run an agent, use the facade
//! `open-agent`.
//!
//! # Not included
//!
//! No runtime: each store reads and writes files on its own thread, and its futures may be polled anywhere. No
//! randomness: ids come from the caller. No clock in any store: times come from the caller too. Only
//! [`Timestamp::now`], and the methods that call it, such as [`NewSession::now`] and [`SavedSession::save_now`], read the
//! system clock.

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

mod follow;
mod saved;
mod store;

pub mod rules;

mod fault_store;
mod ledger;
mod memory;

mod jsonl;
mod record;
mod worker;

#[cfg(feature = "contract")]
pub mod contract;

pub use crate::append::Append;
pub use crate::error::{Error, ErrorKind};
pub use crate::fault_store::{FaultPoint, FaultStore, Operation};
pub use crate::follow::{Follow, FollowError, FollowProgress, Following};
pub use crate::id::SessionId;
pub use crate::jsonl::{JsonlStore, LockedFile};
pub use crate::limits::Limits;
pub use crate::list::{Cursor, List, SessionPage, UnreadableSession};
pub use crate::memory::MemoryStore;
pub use crate::pending::Pending;
pub use crate::revision::Revision;
pub use crate::saved::SavedSession;
pub use crate::session::{NewSession, Session, SessionInfo};
pub use crate::store::{SessionStore, StoreFuture};
pub use crate::timestamp::Timestamp;
pub use crate::worker::Worker;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
