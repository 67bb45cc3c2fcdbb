//! Connections: their number, their settings, and failures to open them.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use oa_session::contract::block_on;
use oa_session::{Append, ErrorKind, Limits, SessionStore};
use oa_session_postgres::PostgresStore;

use crate::{Place, append, at, create, id, kind, turn};

#[test]
fn connections_are_limited() {
    let Some(place) = Place::new() else { return };
    let options = place.named("bounded").connections(3);
    let store = Arc::new(block_on(PostgresStore::connect_with(options)).unwrap());
    let sql = place.connect();
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bounded'";
    // One for the tables, and no other before it is needed.
    assert_eq!(sql.column(count), ["1"]);
    thread::scope(|scope| {
        for number in 0..16 {
            let store = &store;
            scope.spawn(move || {
                let mut info = create(&**store, &number.to_string());
                for number in 0..10 {
                    info = append(&**store, &info, turn(number)).unwrap();
                }
            });
        }
        for _ in 0..20 {
            let open: usize = sql.column(count)[0].parse().unwrap();
            assert!((1..=3).contains(&open), "{open}");
        }
    });
    drop(store);
    // They say goodbye, on a thread of their own.
    for _ in 0..200 {
        if sql.column(count) == ["0"] {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("connections of a dropped store stay open");
}

#[test]
fn waiting_for_a_writer_ends_as_busy() {
    let Some(place) = Place::new() else { return };
    let mut limits = Limits::default();
    limits.timeout = Duration::from_millis(50);
    let store = place.open_with(limits.clone());
    let (info, other) = (create(&store, "a"), create(&store, "b"));
    let sql = place.connect();
    sql.execute("BEGIN; SELECT 1 FROM sessions WHERE id = 'a' FOR UPDATE");
    let error = append(&store, &info, turn(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(error.to_string(), "the database is in use");
    // Readers do not wait, and neither do writers of other sessions.
    assert_eq!(block_on(store.load(&id("a"))).unwrap().info, info);
    append(&store, &other, turn(0)).unwrap();
    sql.execute("COMMIT");
    let info = append(&store, &info, turn(0)).unwrap();

    // The only connection is in use by somebody who waits.
    sql.execute("BEGIN; SELECT 1 FROM sessions WHERE id = 'a' FOR UPDATE");
    let options = place.named("single").limits(limits).connections(1);
    let single = Arc::new(block_on(PostgresStore::connect_with(options)).unwrap());
    let waiting = Arc::clone(&single);
    let waiter = thread::spawn(move || kind(append(&*waiting, &info, turn(1))));
    let active = "SELECT count(*) FROM pg_stat_activity \
                  WHERE application_name = 'single' AND wait_event_type = 'Lock'";
    let mut errors = Vec::new();
    while !waiter.is_finished() {
        if sql.column(active) == ["1"] {
            errors.extend(block_on(single.load(&id("b"))).err());
        }
    }
    assert_eq!(waiter.join().unwrap(), ErrorKind::Busy);
    assert!(errors.iter().all(|error| error.kind() == ErrorKind::Busy), "{errors:?}");
    sql.execute("COMMIT");
    block_on(single.load(&id("a"))).unwrap();
}

#[test]
fn dropped_futures_write_all_or_nothing() {
    let Some(place) = Place::new() else { return };
    let options = place.named("dropping").connections(1);
    let store = block_on(PostgresStore::connect_with(options)).unwrap();
    let info = create(&store, "a");
    let sql = place.connect();
    sql.execute("BEGIN; SELECT 1 FROM sessions WHERE id = 'a' FOR UPDATE");
    let mut cx = Context::from_waker(Waker::noop());
    let begun = Append::new(info.revision, turn(0), at(2));
    let mut begun = store.append(&info.id, begun);
    assert!(begun.as_mut().poll(&mut cx).is_pending());
    let waits = "SELECT count(*) FROM pg_stat_activity \
                 WHERE application_name = 'dropping' AND wait_event_type = 'Lock'";
    while sql.column(waits) != ["1"] {}
    // This one has no connection yet.
    let mut queued = store.delete(&info.id);
    assert!(queued.as_mut().poll(&mut cx).is_pending());
    drop((begun, queued));
    // This one was never polled.
    drop(store.delete(&info.id));
    sql.execute("COMMIT");
    // The next operation has its turn behind both.
    assert_eq!(block_on(store.load(&info.id)).unwrap().messages, turn(0));
}

#[test]
fn server_defaults_do_not_weaken_a_store() {
    let Some(place) = Place::new() else { return };
    let schema = &place.schema;
    place.execute(&format!(
        "CREATE ROLE {schema}_weak LOGIN SUPERUSER PASSWORD 'p'; \
         ALTER ROLE {schema}_weak SET synchronous_commit = off; \
         ALTER ROLE {schema}_weak SET default_transaction_isolation = 'serializable'; \
         ALTER ROLE {schema}_weak SET default_transaction_read_only = on; \
         ALTER ROLE {schema}_weak SET search_path = nowhere"
    ));
    let (_, server) = place.url.split_once('@').unwrap();
    let url = format!("postgresql://{schema}_weak:p@{server}");
    let store = Place { url, schema: schema.clone() }.open().unwrap();
    let info = create(&store, "a");
    append(&store, &info, turn(0)).unwrap();
    // The trigger runs in the transaction of the store.
    place.execute(
        "CREATE TABLE seen (setting text); \
         CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         INSERT INTO seen VALUES (current_setting('synchronous_commit')), \
         (current_setting('transaction_isolation')); RETURN NEW; END $$; \
         CREATE TRIGGER look BEFORE INSERT ON sessions EXECUTE FUNCTION look()",
    );
    create(&store, "b");
    let seen = place.connect().column("SELECT setting FROM seen");
    assert_eq!(seen, ["on", "read committed"]);
}

#[test]
fn connect_errors_name_the_server() {
    // Nobody listens at the port of a listener that is gone.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgresql://ada:secret@127.0.0.1:{port}/a");
    let error = block_on(PostgresStore::connect(&url)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let said = error.to_string();
    assert!(
        said.starts_with(&format!("cannot connect to PostgreSQL at 127.0.0.1:{port}: ")),
        "{said}"
    );
    assert!(said.contains("refused") && !format!("{error:?}").contains("secret"), "{error:?}");

    let Some(place) = Place::new() else { return };
    let (_, server) = place.url.split_once('@').unwrap();
    let url = format!("postgresql://open_agent:wrong-secret@{server}");
    let error = block_on(PostgresStore::connect(&url)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("password authentication failed"), "{error}");
    assert!(!format!("{error:?}").contains("wrong-secret"), "{error:?}");

    place.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'");
    let url = place.url.replace("/postgres", "/latin");
    let error = block_on(PostgresStore::connect(&url)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("has the encoding LATIN1"), "{error}");
    let sockets = block_on(PostgresStore::connect_with(place.options().schema("a-b")));
    assert_eq!(kind(sockets), ErrorKind::InvalidInput);
}

#[test]
fn full_servers_are_waited_for() {
    let Some(server) = services::or_skip(services::Postgres::start_with(
        &["fsync=off", "max_connections=6", "superuser_reserved_connections=0"],
        &[],
    )) else {
        return;
    };
    let place = Place::on(server.url());
    drop(place.open().unwrap());
    let mut others: Vec<_> = (0..5).map(|_| place.connect()).collect();
    // The connection of the store above may take a moment to end.
    while others[0].column("SELECT count(*) FROM pg_stat_activity WHERE usename IS NOT NULL AND backend_type = 'client backend'") != ["5"] {}
    others.push(place.connect());
    let mut limits = Limits::default();
    limits.timeout = Duration::from_millis(200);
    let open = PostgresStore::connect_with(place.options().limits(limits));
    let error = block_on(open).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(error.to_string().contains("too many clients"), "{error}");
    let waiting = thread::scope(|scope| {
        let waiting = scope.spawn(|| place.open());
        drop(others.pop());
        waiting.join().unwrap()
    });
    create(&waiting.unwrap(), "a");
}
