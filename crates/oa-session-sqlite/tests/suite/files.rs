//! File permissions, and files that are rejected.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use oa_session::contract::block_on;
use oa_session::{ErrorKind, List, SessionStore};
use oa_session_sqlite::SqliteStore;

use crate::{Place, append, create, id, turn};

const BESIDE: [&str; 3] = ["", "-shm", "-wal"];

#[test]
fn database_and_wal_files_are_private() {
    let place = Place::new();
    let store = place.open().unwrap();
    append(&store, &create(&store, "a"), turn(0)).unwrap();
    for suffix in BESIDE {
        assert_eq!(mode(&file(&place, suffix)), 0o600, "{suffix}");
    }
    let names = fs::read_dir(place.0.path()).unwrap().count();
    assert_eq!(names, BESIDE.len(), "drafts are left");
}

#[test]
fn loose_permissions_are_tightened_on_open() {
    let place = Place::new();
    let store = place.open().unwrap();
    append(&store, &create(&store, "a"), turn(0)).unwrap();
    for suffix in BESIDE {
        fs::set_permissions(file(&place, suffix), Permissions::from_mode(0o644)).unwrap();
    }
    let other = place.open().unwrap();
    for suffix in BESIDE {
        assert_eq!(mode(&file(&place, suffix)), 0o600, "{suffix}");
    }
    assert_eq!(block_on(other.load(&id("a"))).unwrap().messages, turn(0));
}

#[test]
fn foreign_files_keep_their_permissions() {
    let foreign = Place::new();
    let other = rusqlite::Connection::open(file(&foreign, "")).unwrap();
    other.execute_batch("CREATE TABLE bookmarks (url TEXT); PRAGMA application_id = 7").unwrap();
    drop(other);
    let text = Place::new();
    fs::write(file(&text, ""), "root:x:0:0:root:/root:/bin/bash\n".repeat(50)).unwrap();
    for place in [foreign, text] {
        fs::set_permissions(file(&place, ""), Permissions::from_mode(0o644)).unwrap();
        place.open().unwrap_err();
        assert_eq!(mode(&file(&place, "")), 0o644);
    }
}

#[test]
fn only_regular_files_are_opened() {
    let victim = Place::new();
    // Stores stay open: one that is dropped closes its database a moment later, and takes files beside it away.
    let victims_store = victim.open().unwrap();
    create(&victims_store, "b");
    for suffix in ["", "-journal", "-shm", "-wal"] {
        for trap in ["fifo", "folder", "link", "link to nothing", "link to zero"] {
            let place = Place::new();
            let path = file(&place, suffix);
            let store = (!suffix.is_empty()).then(|| place.open().unwrap());
            if let Some(store) = &store {
                create(store, "a");
                let _ = fs::remove_file(&path);
            }
            match trap {
                "fifo" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "folder" => fs::create_dir(&path).unwrap(),
                "link" => symlink(victim.path(), &path).unwrap(),
                "link to nothing" => symlink(victim.0.path().join("new"), &path).unwrap(),
                _ => symlink("/dev/zero", &path).unwrap(),
            }
            let before = fs::read(victim.path()).unwrap();
            let error = within_seconds(place.path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{trap} {suffix}");
            let said = format!("sessions.db{suffix} is not a regular file");
            assert!(error.to_string().ends_with(&said), "{trap} {suffix}: {error}");
            assert_eq!(fs::read(victim.path()).unwrap(), before, "{trap} {suffix}");
            assert!(!victim.0.path().join("new").exists(), "{trap} {suffix}");
        }
    }
}

#[test]
fn links_in_the_folder_path_are_followed() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let link = elsewhere.0.path().join("link");
    symlink(place.0.path(), &link).unwrap();
    create(&SqliteStore::open(link.join("sessions.db")).unwrap(), "a");
    assert!(block_on(place.open().unwrap().load(&id("a"))).is_ok());
}

/// Writes to a file without a name would be gone with the process.
#[test]
fn removed_databases_take_no_writes() {
    for replace in [false, true] {
        let place = Place::new();
        let store = place.open().unwrap();
        let info = create(&store, "a");
        fs::rename(place.path(), place.0.path().join("away")).unwrap();
        if replace {
            fs::write(place.path(), "").unwrap();
        }
        let errors = [
            append(&store, &info, turn(0)).unwrap_err(),
            block_on(store.load(&id("a"))).unwrap_err(),
            block_on(store.list(List::new(1))).unwrap_err(),
            block_on(store.delete(&id("a"))).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Io);
            let said = "sessions.db was removed or replaced: open the store again";
            assert!(error.to_string().ends_with(said), "{error}");
        }
        fs::rename(place.0.path().join("away"), place.path()).unwrap();
        append(&store, &info, turn(0)).unwrap();
    }
}

#[test]
fn in_memory_database_has_no_file() {
    let store = SqliteStore::open(":memory:").unwrap();
    create(&store, "a");
    assert!(!Path::new(":memory:").exists());
}

/// Opens a database, failing instead of blocking.
fn within_seconds(path: PathBuf) -> Result<SqliteStore, oa_session::Error> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(SqliteStore::open(path)));
    receive.recv_timeout(Duration::from_secs(20)).expect("it does not block")
}

fn file(place: &Place, suffix: &str) -> PathBuf {
    let mut path = place.path().into_os_string();
    path.push(suffix);
    path.into()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("nothing fails here").permissions().mode() & 0o777
}
