//! A list of 100,000 sessions, in a separate process, to measure the memory of the list alone.

use std::fs;

use oa_session::contract::block_on;
use oa_session::{Cursor, List, SessionStore};
use oa_session_postgres::PostgresStore;
use services::{Postgres, or_skip};

const SESSIONS: usize = 100_000;
const PAGE: usize = 500;

/// Growth that is not explained by a page; a list that is held as a whole takes ten times as much.
const MOST_KIB: usize = 6 << 10;

/// Returns the largest amount of memory that this process has had.
fn peak_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is told");
    line.trim().trim_end_matches(" kB").parse().expect("it is a number")
}

#[test]
fn paging_many_sessions_has_bounded_memory() {
    let Some(server) = or_skip(Postgres::start()) else { return };
    let store = block_on(PostgresStore::connect(&server.url())).unwrap();
    fill(&server.url());

    let (mut seen, mut list, mut before) = (0, List::new(PAGE), None);
    let mut last: Option<Cursor> = None;
    loop {
        let page = block_on(store.list(list)).unwrap();
        assert!(page.unreadable.is_empty());
        for session in &page.sessions {
            // Most recent first, then by id.
            let cursor = Cursor::of(session);
            if let Some(last) = &last {
                let key = |cursor: &Cursor| (-cursor.updated_at().as_millis(), cursor.id().clone());
                assert!(key(last) < key(&cursor), "{last:?} before {cursor:?}");
            }
            last = Some(cursor);
            seen += 1;
        }
        // The first pages allocate what all later ones use.
        if seen >= 10 * PAGE && before.is_none() {
            before = Some(peak_kib());
        }
        let Some(next) = page.next else { break };
        list = List::new(PAGE).after(next);
    }
    assert_eq!(seen, SESSIONS);
    let grown = peak_kib() - before.unwrap();
    assert!(grown < MOST_KIB, "{grown} KiB more after {SESSIONS} sessions");
}

/// Fills the tables, faster than a store would.
fn fill(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let connecting = tokio_postgres::connect(url, tokio_postgres::NoTls);
    let (client, connection) = runtime.block_on(connecting).expect("the server runs");
    runtime.spawn(connection);
    let sql = format!(
        "SET search_path TO oa_session; \
         INSERT INTO sessions (id, created_at, updated_at, metadata, message_count, bytes, revision) \
         SELECT 'session ' || number, 1, number / 7, '{{\"title\":\"' || repeat('t', 300) || '\"}}', 0, 0, number \
         FROM generate_series(1, {SESSIONS}) AS number; ANALYZE sessions"
    );
    runtime.block_on(client.batch_execute(&sql)).expect("it is SQL");

    // Every page is read from the index, without sorting: the server's memory is bounded as well.
    for place in ["", "WHERE updated_at <= 7000 AND (updated_at < 7000 OR id > 'session 9')"] {
        let sql = format!(
            "EXPLAIN SELECT number, id, metadata FROM sessions {place} ORDER BY updated_at DESC, id LIMIT 501"
        );
        let plan = runtime.block_on(client.simple_query(&sql)).expect("it is SQL");
        let lines: Vec<&str> = plan
            .iter()
            .filter_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            })
            .collect();
        let plan = lines.join("\n");
        assert!(
            plan.contains("Index Scan using sessions_by_time") && !plan.contains("Sort"),
            "{plan}"
        );
    }
}
