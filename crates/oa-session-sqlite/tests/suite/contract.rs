//! The store keeps what every store has to.

use oa_session::contract;
use oa_session_sqlite::SqliteStore;

#[test]
fn the_store_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    contract::block_on(contract::check(|| SqliteStore::open(&path).unwrap()));
}
