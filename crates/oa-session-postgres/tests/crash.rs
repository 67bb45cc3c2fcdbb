//! A database whose writers are killed. No harness, because the program starts itself as the writers.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use oa_session::contract::{self, block_on};
use oa_session_postgres::PostgresStore;
use services::{Postgres, or_skip};

fn main() {
    // The writers find the server of whoever started them.
    let is_writer = is_writer();
    let server = if is_writer { None } else { or_skip(Postgres::start()) };
    let mut turns = 0;
    let folder = || {
        let folder = tempfile::tempdir().expect("there is room for files");
        let url = server.as_ref().map(Postgres::url).expect("only writers have no server");
        fs::write(folder.path().join("url"), url).expect("there is room for files");
        folder
    };
    if is_writer || server.is_some() {
        turns = contract::survive(folder, 50, open);
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

fn is_writer() -> bool {
    std::env::args().any(|argument| argument.starts_with("--write"))
}

fn open(folder: &Path) -> PostgresStore {
    let url = fs::read_to_string(folder.join("url")).expect("the server's address is there");
    if !is_writer() {
        wait_for_the_dead(&url);
    }
    block_on(PostgresStore::connect(&url)).expect("the store opens")
}

/// Waits until the server has noticed that the writers are dead: until then it may finish what they asked of it.
fn wait_for_the_dead(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let (client, connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("the server is there");
        let connection = tokio::spawn(connection);
        let others = "SELECT count(*) FROM pg_stat_activity \
                      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let all_left = async {
            loop {
                let row = client.query_one(others, &[]).await.expect("the server answers");
                if row.get::<_, i64>(0) == 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), all_left).await;
        waited.expect("the dead leave");
        drop(client);
        drop(connection.await);
    });
}
