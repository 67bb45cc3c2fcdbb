//! Our own stores keep what every store has to.

use std::sync::Arc;

use oa_session::{JsonlStore, Limits, MemoryStore, SessionStore, contract};
use proptest::prelude::*;

#[test]
fn the_store_in_memory_keeps_the_contract() {
    let store = Arc::new(MemoryStore::new());
    contract::block_on(contract::check(|| Arc::clone(&store)));
}

#[test]
fn the_store_of_files_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    contract::block_on(contract::check(|| JsonlStore::open(folder.path()).unwrap()));
}
