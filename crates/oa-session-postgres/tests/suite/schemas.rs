//! New, newer, damaged and foreign schemas.

use std::thread;

use oa_session::contract::block_on;
use oa_session::{ErrorKind, List, SessionStore};
use oa_session_postgres::PostgresStore;

use crate::{Place, append, at, create, id, kind, turn};

#[test]
fn newer_versions_are_left_unchanged() {
    let Some(place) = Place::new() else { return };
    let open = place.open().unwrap();
    create(&open, "a");
    place.execute(
        "UPDATE store_version SET version = 2; ALTER TABLE sessions ADD COLUMN later text",
    );
    let error = place.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NewerVersion);
    let said = "the schema has version 2; this program supports up to 1";
    assert_eq!(error.to_string(), format!("schema {}: {said}", place.schema));
    let columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'sessions'::regclass \
                   AND attname = 'later'";
    assert_eq!(place.connect().column(columns), ["1"]);
    place.execute("UPDATE store_version SET version = 1");
    assert!(block_on(place.open().unwrap().load(&id("a"))).is_ok());
}

#[test]
fn new_connections_check_the_version() {
    let Some(place) = Place::new() else { return };
    let store = block_on(PostgresStore::connect_with(place.named("ended"))).unwrap();
    create(&store, "a");
    let sql = place.connect();
    sql.execute("UPDATE store_version SET version = 2");
    sql.column(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ended'",
    );
    // The pool may not have noticed yet that its connection is gone.
    let error = block_on(store.load(&id("a"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NewerVersion, "{error}");
}

#[test]
fn foreign_schemas_are_left_unchanged() {
    let Some(place) = Place::new() else { return };
    let schema = &place.schema;
    for sql in ["CREATE TABLE sessions (id text)", "CREATE VIEW one AS SELECT 1 AS a"] {
        place.execute(&format!("CREATE SCHEMA {schema}; {sql}"));
        let error = place.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let said = format!("schema {schema}: the schema belongs to another program");
        assert_eq!(error.to_string(), said);
        let count =
            format!("SELECT count(*) FROM pg_class WHERE relnamespace = '{schema}'::regnamespace");
        assert_eq!(place.connect().column(&count), ["1"]);
        place.execute(&format!("DROP SCHEMA {schema} CASCADE"));
    }
    // An empty one was made for us, by somebody with more rights.
    place.execute(&format!("CREATE SCHEMA {schema}"));
    create(&place.open().unwrap(), "a");
}

#[test]
fn wrong_tables_are_rejected() {
    for sql in [
        "DROP TABLE messages",
        "DROP INDEX sessions_by_time",
        "DROP SEQUENCE revisions",
        "DELETE FROM store_version",
        "ALTER TABLE sessions DROP COLUMN pending",
        "ALTER TABLE messages RENAME COLUMN body TO text",
    ] {
        let Some(place) = Place::new() else { return };
        create(&place.open().unwrap(), "a");
        place.execute(sql);
        let error = place.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{sql}: {error:?}");
        let said = "the tables are not those of a session store";
        assert!(error.to_string().ends_with(said), "{error}");
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
        let Some(place) = Place::new() else { return };
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
    let Some(place) = Place::new() else { return };
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
fn concurrent_first_opens_succeed() {
    for _ in 0..5 {
        let Some(place) = Place::new() else { return };
        thread::scope(|scope| {
            for number in 0..8 {
                let place = &place;
                scope.spawn(move || create(&place.open().unwrap(), &number.to_string()));
            }
        });
        let page = block_on(place.open().unwrap().list(List::new(10))).unwrap();
        assert_eq!(page.sessions.len(), 8);
        assert_eq!(place.connect().column("SELECT version FROM store_version"), ["1"]);
    }
}

#[test]
fn existing_store_needs_no_create_privilege() {
    let Some(place) = Place::new() else { return };
    create(&place.open().unwrap(), "a");
    let schema = &place.schema;
    place.execute(&format!(
        "CREATE ROLE {schema}_user LOGIN PASSWORD 'p'; \
         GRANT USAGE ON SCHEMA {schema} TO {schema}_user; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {schema}_user; \
         GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO {schema}_user"
    ));
    let (_, server) = place.url.split_once('@').unwrap();
    let url = format!("postgresql://{schema}_user:p@{server}");
    let user = Place { url: url.clone(), schema: schema.clone() };
    let store = user.open().unwrap();
    let info = block_on(store.load(&id("a"))).unwrap().info;
    append(&store, &info, turn(0)).unwrap();

    let other = Place { url, schema: format!("{schema}_other") };
    let error = other.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("permission denied for database"), "{error}");
}

#[test]
fn deletes_cascade_to_messages() {
    let Some(place) = Place::new() else { return };
    let store = place.open().unwrap();
    let info = create(&store, "a");
    append(&store, &info, turn(0)).unwrap();
    let count = "SELECT count(*) FROM messages";
    assert_eq!(place.connect().column(count), ["2"]);
    block_on(store.delete(&info.id)).unwrap();
    assert_eq!(place.connect().column(count), ["0"]);
    let fork = oa_session::NewSession::new(id("b"), at(1));
    assert_eq!(kind(block_on(store.fork(&info.id, 0, fork))), ErrorKind::NotFound);
}

/// Revisions begin again with new tables, so a writer from before could replace what it has never seen.
#[test]
fn replaced_schema_takes_no_writes() {
    let Some(place) = Place::new() else { return };
    let store = place.open().unwrap();
    let info = create(&store, "a");
    place.execute(&format!("DROP SCHEMA {} CASCADE", place.schema));
    for is_replaced in [false, true] {
        if is_replaced {
            assert_eq!(create(&place.open().unwrap(), "a").revision, info.revision);
        }
        let errors = [
            append(&store, &info, turn(0)).unwrap_err(),
            block_on(store.load(&id("a"))).unwrap_err(),
            block_on(store.list(List::new(1))).unwrap_err(),
            block_on(store.create(oa_session::NewSession::new(id("b"), at(1)))).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Io);
            let said = "was dropped or replaced: open the store again";
            assert_eq!(error.to_string(), format!("schema {} {said}", place.schema));
        }
    }
    assert_eq!(block_on(place.open().unwrap().load(&id("a"))).unwrap().messages, []);
}
