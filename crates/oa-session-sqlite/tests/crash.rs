//! A database of which the writers are killed. No harness: the program starts itself as the writers.

use oa_session::contract;
use oa_session_sqlite::SqliteStore;

fn main() {
    let folder = tempfile::tempdir().expect("there is room for files");
    contract::survive(folder.path(), 100, |folder| {
        SqliteStore::open(folder.join("sessions.db")).expect("the store opens")
    });
}
