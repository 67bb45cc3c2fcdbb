//! The time that a program waits for `SavedSession::save` after a turn, in PostgreSQL and in SQLite.
//!
//! Both write to the disk of this machine and wait for it. PostgreSQL is reached through the loopback interface. One run
//! measures both in turns, so that what else the machine does meets both.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use oa_session::contract::block_on;
use oa_session::{NewSession, SavedSession, SessionId, SessionStore, Timestamp};
use oa_session_postgres::PostgresStore;
use oa_session_sqlite::SqliteStore;
use oa_types::{Message, TextBlock};
use services::{Postgres, or_skip};

/// Rounds, each of which measures all stores.
const ROUNDS: usize = 5;
/// Saves of all writers together in a round.
const SAVES: usize = 800;
/// Turns of a session before the next one is begun.
const TURNS: usize = 20;
const WRITERS: [usize; 2] = [1, 8];

fn main() {
    let Some(server) = or_skip(Postgres::start_with(&[], &[])) else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let sqlite: Arc<dyn SessionStore> =
        Arc::new(SqliteStore::open(folder.path().join("sessions.db")).expect("it opens"));
    let postgres: Arc<dyn SessionStore> =
        Arc::new(block_on(PostgresStore::connect(&server.url())).expect("it opens"));
    let stores = [("SQLite", sqlite), ("PostgreSQL", postgres)];

    say("writers  store          p50 ms    p99 ms    max ms   saves/s");
    for writers in WRITERS {
        let mut results = stores.each_ref().map(|_| (Vec::new(), Duration::ZERO));
        for round in 0..ROUNDS {
            for ((name, store), (times, total)) in stores.iter().zip(&mut results) {
                let since = Instant::now();
                times.extend(measure(store, &format!("{name} {writers} {round}"), writers));
                *total += since.elapsed();
            }
        }
        for ((name, _), (mut times, total)) in stores.iter().zip(results) {
            times.sort_unstable();
            let at = |share: f64| {
                let place = ((times.len() - 1) as f64 * share) as usize;
                times[place].as_secs_f64() * 1_000.0
            };
            let rate = times.len() as f64 / total.as_secs_f64();
            say(&format!(
                "{writers:>7}  {name:<10} {:>10.2} {:>9.2} {:>9.2} {rate:>9.0}",
                at(0.5),
                at(0.99),
                at(1.0)
            ));
        }
    }
}

/// Lets each writer save to sessions of its own, and returns the time of each save.
fn measure(store: &Arc<dyn SessionStore>, name: &str, writers: usize) -> Vec<Duration> {
    thread::scope(|scope| {
        let write = |writer: usize| {
            let store = Arc::clone(store);
            let name = format!("{name} {writer}");
            scope.spawn(move || block_on(save(store, &name, SAVES / writers)))
        };
        let writers: Vec<_> = (0..writers).map(write).collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("it saves")).collect()
    })
}

async fn save(store: Arc<dyn SessionStore>, name: &str, saves: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for session in 0..saves / TURNS {
        let id = SessionId::new(format!("{name} {session}")).expect("it is an id");
        let new = NewSession::new(id, Timestamp::now());
        let mut saved =
            SavedSession::open_or_create(Arc::clone(&store), new).await.expect("it is new");
        let mut history = Vec::new();
        for number in 0..TURNS {
            // About 2 KiB, as an answer with a tool's result has.
            let answer = TextBlock::new(format!("answer {number} ").repeat(150));
            history.push(Message::user(format!("prompt {number}")));
            history.push(Message::assistant(vec![answer.into()]));
            let since = Instant::now();
            saved.save_now(&history).await.expect("it is saved");
            times.push(since.elapsed());
        }
    }
    times
}

fn say(line: &str) {
    writeln!(io::stdout(), "{line}").expect("somebody reads it");
}
