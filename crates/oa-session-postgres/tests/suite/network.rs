//! A network that fails in the middle of a change.

use std::time::Duration;

use oa_session::contract::block_on;
use oa_session::{Append, Error, ErrorKind, Limits, SessionInfo, SessionStore};
use oa_session_postgres::PostgresStore;

use crate::proxy::{Fault, Proxy};
use crate::{Place, SERVER, append, at, create, id, kind, turn};

/// A store behind a network that can fail, with a session of one turn, and another store that cannot be cut off.
struct Scene {
    proxy: Proxy,
    store: PostgresStore,
    other: PostgresStore,
    place: Place,
    info: SessionInfo,
}

impl Scene {
    fn new() -> Option<Self> {
        let server = SERVER.as_ref()?;
        let place = Place::new()?;
        let other = place.open().expect("the server runs");
        let proxy = Proxy::start(server.port());
        let url = place.url.replace(&server.port().to_string(), &proxy.port().to_string());
        let mut limits = Limits::default();
        limits.timeout = Duration::from_millis(200);
        let options = Place { url, schema: place.schema.clone() }.options();
        let options = options.limits(limits).answer_timeout(Duration::from_millis(300));
        let store = block_on(PostgresStore::connect_with(options)).expect("it opens");
        let info = append(&store, &create(&store, "a"), turn(0)).expect("it is stored");
        Some(Self { proxy, store, other, place, info })
    }

    /// Replaces the turn while the network fails.
    fn replace(&self, marker: &'static str, fault: Fault) -> Result<SessionInfo, Error> {
        self.proxy.arm(marker, fault);
        let append = Append::new(self.info.revision, turn(1), at(2)).keeping(0);
        let replaced = block_on(self.store.append(&self.info.id, append));
        assert!(!self.proxy.is_armed(), "{marker} was not sent");
        replaced
    }

    #[track_caller]
    fn check(&self, turns: &[usize]) {
        let expected: Vec<_> = turns.iter().copied().flat_map(turn).collect();
        for store in [&self.store, &self.other] {
            assert_eq!(
                block_on(store.load(&self.info.id)).expect("it is there").messages,
                expected
            );
        }
    }
}

const NOTHING: &str = "the connection to the database was lost; nothing was changed";
const UNKNOWN: &str = "the connection to the database was lost while a change was committed: load the session to see \
                       whether it was made";

#[test]
fn lost_connection_rolls_a_change_back() {
    for marker in
        ["FOR UPDATE", "SELECT role", "DELETE FROM", "INSERT INTO messages", "UPDATE sessions"]
    {
        for fault in [Fault::Cut, Fault::CutAnswer] {
            let Some(scene) = Scene::new() else { return };
            let error = scene.replace(marker, fault).unwrap_err();
            assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::Io, NOTHING), "{marker}");
            // The session is not locked by what is left of the transaction.
            scene.check(&[0]);
            append(&scene.store, &scene.info, turn(2)).unwrap();
            scene.check(&[0, 2]);
        }
    }
}

#[test]
fn connection_lost_before_begin_is_replaced() {
    let Some(scene) = Scene::new() else { return };
    scene.replace("BEGIN", Fault::Cut).unwrap();
    scene.check(&[1]);
}

/// As after an outage, of which a client hears nothing.
#[test]
fn one_silent_connection_ends_all_idle_ones() {
    let Some(scene) = Scene::new() else { return };
    // Four at once, so that as many connections are idle afterwards.
    std::thread::scope(|scope| {
        let lock = scene.place.connect();
        lock.execute("BEGIN; LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE");
        for _ in 0..4 {
            scope.spawn(|| block_on(scene.store.load(&scene.info.id)));
        }
        std::thread::sleep(Duration::from_millis(100));
        lock.execute("COMMIT");
    });
    scene.proxy.silence();
    append(&scene.store, &scene.info, turn(1)).unwrap();
    assert_eq!(scene.proxy.unheard(), 1);
    scene.check(&[0, 1]);
}

#[test]
fn connection_lost_in_commit_is_unknown() {
    for (fault, turns) in [(Fault::Cut, [0]), (Fault::CutAnswer, [1])] {
        let Some(scene) = Scene::new() else { return };
        let error = scene.replace("COMMIT\0", fault).unwrap_err();
        assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::Io, UNKNOWN));
        scene.check(&turns);
        // Whoever repeats it need not know.
        let append = Append::new(scene.info.revision, turn(1), at(2)).keeping(0);
        let count = scene.info.message_count;
        block_on(scene.store.append_once(&scene.info.id, count, append)).unwrap();
        scene.check(&[1]);
    }
}

#[test]
fn silent_server_times_out_and_frees_session() {
    for (marker, said) in [
        ("INSERT INTO messages", "the database has not answered for 0.5 s; nothing was changed"),
        (
            "COMMIT\0",
            "the database has not answered for 0.5 s while a change was committed: load the session to see whether \
             it was made",
        ),
    ] {
        let Some(scene) = Scene::new() else { return };
        let error = scene.replace(marker, Fault::Silence).unwrap_err();
        assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::Io, said));
        // The server still believes in the connection: it waits for it for as long as it was told to.
        append(&scene.other, &scene.info, turn(2)).unwrap();
        scene.check(&[0, 2]);
    }
}

#[test]
fn lost_connection_fails_a_read() {
    let Some(scene) = Scene::new() else { return };
    scene.proxy.arm("SELECT place", Fault::Cut);
    let error = block_on(scene.store.load(&id("a"))).unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (ErrorKind::Io, "the connection to the database was lost")
    );
    scene.check(&[0]);
}

#[test]
fn tables_are_created_atomically() {
    for marker in ["CREATE SCHEMA", "CREATE TABLE", "UPDATE store_version", "COMMIT\0"] {
        let Some(place) = Place::new() else { return };
        let Some(server) = SERVER.as_ref() else { return };
        let proxy = Proxy::start(server.port());
        let url = place.url.replace(&server.port().to_string(), &proxy.port().to_string());
        let cut_off = Place { url, schema: place.schema.clone() };
        proxy.arm(marker, Fault::Cut);
        assert_eq!(kind(cut_off.open()), ErrorKind::Io, "{marker}");
        let schemas = format!("SELECT 1 FROM pg_namespace WHERE nspname = '{}'", place.schema);
        // What is left of the transaction ends when the server notices.
        create(&place.open().unwrap(), "a");
        assert_eq!(place.connect().column(&schemas), ["1"]);
        cut_off.open().unwrap();
    }
}
