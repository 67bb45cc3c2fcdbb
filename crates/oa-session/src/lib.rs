//! stub

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
