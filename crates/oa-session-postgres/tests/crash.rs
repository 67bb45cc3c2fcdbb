//! A database whose writers are killed. No harness, because the program starts itself as the writers.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use oa_session::contract::{self, block_on};
use oa_session_postgres::PostgresStore;
use services::{Postgres, or_skip};

fn main() {
    let folder = tempfile::tempdir().expect("there is room for files");
    // The writers find the server of whoever started them.
    let is_writer = std::env::args().any(|argument| argument.starts_with("--write"));
    let server = if is_writer { None } else { or_skip(Postgres::start()) };
    let mut turns = 0;
    if let Some(server) = &server {
        fs::write(folder.path().join("url"), server.url()).expect("there is room for files");
    }
    if is_writer || server.is_some() {
        turns = contract::survive(folder.path(), 50, open);
    }
    let told = match turns {
        0 => writeln!(io::stdout(), "test result: ok. 0 passed; 0 failed; 1 ignored"),
        turns => writeln!(
            io::stdout(),
            "{turns} turns were acknowledged before their writers were killed, and all are there\n\
             test result: ok. 1 passed; 0 failed; 0 ignored"
        ),
    };
    told.expect("somebody reads it");
}

fn open(folder: &Path) -> PostgresStore {
    let url = fs::read_to_string(folder.join("url")).expect("the server's address is there");
    block_on(PostgresStore::connect(&url)).expect("the store opens")
}
