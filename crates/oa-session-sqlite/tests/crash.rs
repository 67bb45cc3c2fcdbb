//! A database whose writers are killed. No harness, because the program starts itself as the writers.

use std::io::{self, Write};

use oa_session::contract;
use oa_session_sqlite::SqliteStore;

fn main() {
    let folder = || tempfile::tempdir().expect("there is room for files");
    let turns = contract::survive(folder, 100, |folder| {
        SqliteStore::open(folder.join("sessions.db")).expect("the store opens")
    });
    let told = writeln!(
        io::stdout(),
        "{turns} turns were acknowledged before their writers were killed, and all are there\n\
         test result: ok. 1 passed; 0 failed; 0 ignored"
    );
    told.expect("somebody reads it");
}
