//! Files of which the writers are killed. No harness: the program starts itself as the writers.

use oa_session::{JsonlStore, contract};

fn main() {
    let folder = tempfile::tempdir().expect("there is room for files");
    contract::survive(folder.path(), 100, |folder| {
        JsonlStore::open(folder).expect("the store opens")
    });
}
