//! New, old, newer, damaged and foreign databases.

use std::fs;
use std::thread;
use std::time::Duration;

use oa_session::contract::block_on;
use oa_session::{ErrorKind, Limits, List, SessionStore};

use crate::{Place, append, at, create, id, kind, turn};

#[test]
fn newer_versions_are_left_unchanged() {
    let (ours, place) = (Place::new(), Place::new());
    create(&ours.open().unwrap(), "a");
    ours.execute(&format!("VACUUM INTO '{}'", place.path().display()));
    place.execute("PRAGMA user_version = 3");
    let before = fs::read(place.path()).unwrap();
    let error = place.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NewerVersion);
    let said = "the database has version 3; this program supports up to 2";
    assert_eq!(error.to_string(), format!("{}: {said}", place.path().display()));
    assert_eq!(fs::read(place.path()).unwrap(), before);
    place.execute("PRAGMA user_version = 2");
    assert!(block_on(place.open().unwrap().load(&id("a"))).is_ok());
}

#[test]
fn foreign_databases_are_left_unchanged() {
    let foreign: [&[u8]; 2] =
        [b"These are notes, and no database of any kind. ".as_slice(), &[7; 4_096]];
    for bytes in foreign {
        let place = Place::new();
        fs::write(place.path(), bytes).unwrap();
        assert_eq!(kind(place.open()), ErrorKind::Corrupt);
        assert_eq!(fs::read(place.path()).unwrap(), bytes);
    }
    for sql in
        ["CREATE TABLE sessions (id)", "PRAGMA user_version = 1", "PRAGMA application_id = 9"]
    {
        let place = Place::new();
        place.execute(sql);
        let before = fs::read(place.path()).unwrap();
        let error = place.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().ends_with("the database belongs to another program"), "{error}");
        assert_eq!(fs::read(place.path()).unwrap(), before);
    }
    let place = Place::new();
    assert_eq!(kind(oa_session_sqlite::SqliteStore::open(place.0.path())), ErrorKind::Io);
    let nowhere = place.0.path().join("nowhere").join("a.db");
    assert_eq!(kind(oa_session_sqlite::SqliteStore::open(nowhere)), ErrorKind::Io);
}

#[test]
fn wrong_tables_are_rejected() {
    for sql in [
        "DROP TABLE messages",
        "DROP INDEX sessions_by_time",
        "ALTER TABLE sessions DROP COLUMN pending",
        "ALTER TABLE messages RENAME COLUMN body TO text",
    ] {
        let place = Place::new();
        create(&place.open().unwrap(), "a");
        place.execute(sql);
        let error = place.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{sql}");
        assert!(
            error.to_string().ends_with("the tables are not those of a session store"),
            "{error}"
        );
    }
}

#[test]
fn unreadable_rows_hide_no_others() {
    for (sql, said) in [
        ("UPDATE messages SET body = '{' WHERE place = 1", "session a: message 1 is damaged"),
        ("DELETE FROM messages WHERE place = 1", "session a: message 2 is out of order"),
        ("DELETE FROM messages WHERE place = 3", "session a: message 3 is missing"),
        (
            "UPDATE sessions SET pending = '[]' WHERE id = 'a'",
            "session a: the pending call is damaged",
        ),
        (
            "UPDATE sessions SET metadata = '[]' WHERE id = 'a'",
            "the metadata of session a is damaged",
        ),
        (
            "UPDATE messages SET role = 'tool', body = '{\"role\":\"tool\",\"content\":[]}'",
            "session a: message 0 has the role tool but no result",
        ),
    ] {
        let place = Place::new();
        let store = place.open().unwrap();
        let info = create(&store, "a");
        let info = append(&store, &info, turn(0)).unwrap();
        append(&store, &info, turn(1)).unwrap();
        create(&store, "b");
        place.execute(sql);
        let error = block_on(store.load(&id("a"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(error.to_string(), said);
        let page = block_on(store.list(List::new(10))).unwrap();
        assert_eq!(page.sessions.len() + page.unreadable.len(), 2, "{page:?}");
        assert!(page.sessions.iter().any(|session| session.id == id("b")));
        block_on(store.delete(&id("a"))).unwrap();
    }
}

#[test]
fn paging_continues_after_unreadable_rows() {
    let place = Place::new();
    let store = place.open().unwrap();
    for name in ["a", "b", "c"] {
        create(&store, name);
    }
    place.execute("UPDATE sessions SET metadata = '' WHERE id = 'b'");
    let mut list = List::new(1);
    let mut seen = Vec::new();
    loop {
        let page = block_on(store.list(list)).unwrap();
        seen.extend(page.sessions.iter().map(|session| session.id.to_string()));
        seen.extend(page.unreadable.iter().map(|found| format!("not {}", found.name)));
        let Some(next) = page.next else { break };
        list = List::new(1).after(next);
    }
    assert_eq!(seen, ["a", "not b", "c"]);
}

#[test]
fn an_error_behind_a_page_is_not_its_end() {
    let place = Place::new();
    let store = place.open().unwrap();
    for name in ["a", "b", "c"] {
        create(&store, name);
    }
    // SQLite fails when it steps to row b, as it does for a damaged page of the file.
    place.execute("ALTER TABLE sessions RENAME TO rows");
    place.execute(
        "CREATE VIEW sessions AS SELECT number, id, created_at, updated_at, metadata, \
         message_count, iif(id = 'b', abs(-9223372036854775807 - 1), bytes) AS bytes, revision, \
         pending FROM rows",
    );
    let page = block_on(store.list(List::new(1)));
    assert_eq!(kind(page), ErrorKind::Io);
}

#[test]
fn concurrent_first_opens_succeed() {
    for _ in 0..20 {
        let place = Place::new();
        thread::scope(|scope| {
            for number in 0..8 {
                let place = &place;
                scope.spawn(move || create(&place.open().unwrap(), &number.to_string()));
            }
        });
        let page = block_on(place.open().unwrap().list(List::new(10))).unwrap();
        assert_eq!(page.sessions.len(), 8);
    }
}

#[test]
fn waiting_for_a_writer_ends_as_busy() {
    let place = Place::new();
    let mut limits = Limits::default();
    limits.timeout = Duration::from_millis(20);
    let store = place.open_with(limits);
    let info = create(&store, "a");
    let other = place.connect();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(kind(append(&store, &info, turn(0))), ErrorKind::Busy);
    // Readers do not block each other.
    assert_eq!(block_on(store.load(&id("a"))).unwrap().info, info);
    other.execute_batch("COMMIT").unwrap();
    append(&store, &info, turn(0)).unwrap();
}

#[test]
fn wal_mode_is_on_and_deletes_cascade() {
    let place = Place::new();
    let store = place.open().unwrap();
    let info = create(&store, "a");
    append(&store, &info, turn(0)).unwrap();
    let one =
        |sql: &str| place.connect().query_row(sql, (), |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(one("PRAGMA journal_mode"), "wal");
    assert_eq!(one("SELECT CAST(count(*) AS TEXT) FROM messages"), "2");
    block_on(store.delete(&info.id)).unwrap();
    assert_eq!(one("SELECT CAST(count(*) AS TEXT) FROM messages"), "0");
    let fork = oa_session::NewSession::new(id("b"), at(1));
    assert_eq!(kind(block_on(store.fork(&info.id, 0, fork))), ErrorKind::NotFound);
}
