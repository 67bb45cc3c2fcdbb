//! A test suite for session stores (feature `contract`).
//!
//! One line tests your own store; [`survive`] tests it with killed processes:
//!
//! ```
//! use std::sync::Arc;
//!
//! use oa_session::{MemoryStore, contract};
//!
//! let store = Arc::new(MemoryStore::new());
//! contract::block_on(contract::check(|| Arc::clone(&store)));
//! ```
//!
//! Violations panic with a description.

mod block_on;
mod conversation;
mod crash;
mod expect;
mod fixture;
mod forks;
mod lists;
mod pendings;
mod random;
mod repeats;
mod turns;
mod writers;

use std::sync::Arc;

use crate::store::SessionStore;

pub use self::block_on::block_on;
pub use self::conversation::conversation;
pub use self::crash::survive;

/// Checks a store. `open` returns handles to the same store, which must start empty; it is called about fifty
/// times, and handles are dropped in between.
///
/// # Panics
///
/// If the store breaks the contract.
///
/// # Cancel safety
///
/// Dropping the future leaves sessions in the store.
pub async fn check<S: SessionStore + 'static>(mut open: impl FnMut() -> S) {
    let mut open = || -> Arc<dyn SessionStore> { Arc::new(open()) };
    lists::check(&*open()).await;
    turns::check(&mut open).await;
    pendings::check(&*open()).await;
    forks::check(&*open()).await;
    conversation::check(&mut open).await;
    repeats::check(&mut open).await;
    writers::check(&mut open).await;
}
