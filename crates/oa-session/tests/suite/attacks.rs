//! Names taken by an attacker, and permissions that are too loose.

use std::error::Error as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use oa_session::contract::block_on;
use oa_session::{Append, Error, ErrorKind, JsonlStore, List, NewSession, SessionStore};
use oa_types::Message;
use tempfile::TempDir;

use crate::{Files, append, at, create, folder_of, id, kind, load, turn, turns};

/// Something an attacker places under a name of the store's.
#[derive(Clone, Copy, Debug)]
enum Trap {
    Fifo,
    Folder,
    Link,
    LinkToNothing,
    LinkToZero,
}

const TRAPS: [Trap; 5] =
    [Trap::Fifo, Trap::Folder, Trap::Link, Trap::LinkToNothing, Trap::LinkToZero];

impl Trap {
    fn set(self, path: &Path, victim: &Path) {
        let _ = fs::remove_file(path);
        match self {
            Self::Fifo => fifo(path),
            Self::Folder => fs::create_dir(path).expect("nothing fails here"),
            Self::Link => symlink(victim, path).expect("nothing fails here"),
            Self::LinkToNothing => {
                symlink(victim.with_extension("none"), path).expect("nothing fails here");
            }
            Self::LinkToZero => symlink("/dev/zero", path).expect("nothing fails here"),
        }
    }
}

/// A session that the store must neither read nor change through a link.
struct Victim(TempDir);

impl Victim {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("nothing fails here");
        let store = JsonlStore::open(folder.path()).expect("nothing fails here");
        let info = create(&store, "b");
        append(&store, &info, turn(7)).expect("nothing fails here");
        Self(folder)
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("session-b.jsonl")
    }
}

#[test]
fn only_regular_files_are_sessions() {
    for trap in TRAPS {
        let (files, victim) = (Files::new(2), Victim::new());
        let before = fs::read(victim.path()).unwrap();
        trap.set(&files.folder.path().join("session-b.jsonl"), &victim.path());
        within_seconds(trap, {
            let store = files.open();
            move || {
                let (b, revision) =
                    (id("b"), block_on(store.load(&id("a"))).unwrap().info.revision);
                refused(trap, block_on(store.load(&b)));
                refused(trap, block_on(store.append(&b, Append::new(revision, turn(0), at(2)))));
                refused(trap, block_on(store.set_metadata(&b, serde_json::Map::new(), at(2))));
                refused(trap, block_on(store.set_pending(&b, revision, None, at(2))));
                refused(trap, block_on(store.fork(&b, 0, NewSession::new(id("c"), at(2)))));
                let new = NewSession::new(b, at(2));
                assert_eq!(kind(block_on(store.create(new))), ErrorKind::AlreadyExists, "{trap:?}");
                // The other sessions are listed, with this one among the unreadable.
                let page = block_on(store.list(List::new(10))).unwrap();
                assert_eq!(page.sessions.len(), 1, "{trap:?}");
                assert_eq!(page.unreadable[0].name, "session-b.jsonl", "{trap:?}");
                assert_eq!(load(&store, "a").unwrap(), turns(2));
            }
        });
        assert_eq!(fs::read(victim.path()).unwrap(), before, "{trap:?}");
        assert_eq!(folder_of(victim.0.path()), [".lock", "session-b.jsonl"], "{trap:?}");
    }
}

#[test]
fn deleting_a_link_keeps_its_target() {
    let (files, victim) = (Files::new(1), Victim::new());
    symlink(victim.path(), files.folder.path().join("session-b.jsonl")).unwrap();
    let store = files.open();
    block_on(store.delete(&id("b"))).unwrap();
    assert!(victim.path().exists());
    create(&store, "b");
    assert_eq!(load(&store, "b").unwrap(), []);
}

#[test]
fn new_files_are_not_written_through_links() {
    for trap in TRAPS {
        let (files, victim) = (Files::new(1), Victim::new());
        let before = fs::read(victim.path()).unwrap();
        let draft = files.folder.path().join("session-c.jsonl.new");
        trap.set(&draft, &victim.path());
        within_seconds(trap, {
            let store = files.open();
            move || match trap {
                // A folder is not removed.
                Trap::Folder => {
                    let new = NewSession::new(id("c"), at(1));
                    assert_eq!(kind(block_on(store.create(new))), ErrorKind::Io);
                }
                _ => {
                    let info = create(&store, "c");
                    append(&store, &info, turn(1)).unwrap();
                    assert_eq!(load(&store, "c").unwrap(), turn(1));
                }
            }
        });
        assert_eq!(fs::read(victim.path()).unwrap(), before, "{trap:?}");
        assert_eq!(folder_of(victim.0.path()), [".lock", "session-b.jsonl"], "{trap:?}");
    }
}

#[test]
fn lock_must_be_a_regular_file() {
    for trap in TRAPS {
        let (files, victim) = (Files::new(1), Victim::new());
        trap.set(&files.folder.path().join(".lock"), &victim.path());
        let folder = files.folder.path().to_owned();
        within_seconds(trap, move || refused(trap, JsonlStore::open(folder)));
    }
}

#[test]
fn folders_and_files_are_private() {
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("agents").join("sessions");
    let store = JsonlStore::open(&folder).unwrap();
    let mut info = create(&store, "a");
    // Enough to have the file compacted.
    for _ in 0..6 {
        info = append(&store, &info, vec![Message::user("-".repeat(300 << 10))]).unwrap();
        info = block_on(store.rewind(&info.id, info.revision, 0, at(3))).unwrap();
    }
    block_on(store.fork(&info.id, 0, NewSession::new(id("b"), at(2)))).unwrap();
    assert_eq!(mode(&outside.path().join("agents")), 0o700);
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(folder_of(&folder), [".lock", "session-a.jsonl", "session-b.jsonl"]);
    for name in folder_of(&folder) {
        assert_eq!(mode(&folder.join(&name)), 0o600, "{name}");
    }
}

#[test]
fn loose_permissions_are_tightened_on_open() {
    let files = Files::new(1);
    let folder = files.folder.path();
    fs::write(folder.join("session-b.jsonl.new"), "left by a crash").unwrap();
    for path in [folder, &folder.join(".lock"), &files.path()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let store = files.open();
    assert_eq!((mode(folder), mode(&folder.join(".lock"))), (0o700, 0o600));
    block_on(store.list(List::new(1))).unwrap();
    assert_eq!(mode(&files.path()), 0o600);
}

#[test]
fn folders_with_other_files_keep_their_mode() {
    let files = Files::new(1);
    let folder = files.folder.path();
    fs::write(folder.join("notes.txt"), "for everybody").unwrap();
    for path in [folder, &files.path()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(load(&files.open(), "a").unwrap(), turns(1));
    assert_eq!((mode(folder), mode(&files.path())), (0o755, 0o600));
    assert_eq!(mode(&folder.join("notes.txt")) & 0o044, 0o044);
}

#[track_caller]
fn refused<T: std::fmt::Debug>(trap: Trap, result: Result<T, Error>) {
    let error = result.expect_err("it is a trap");
    assert_eq!(error.kind(), ErrorKind::Io, "{trap:?}");
    let cause = error.source().map(ToString::to_string);
    assert_eq!(cause.as_deref(), Some("not a regular file"), "{trap:?}");
}

/// Fails if the body blocks, instead of blocking too.
#[track_caller]
fn within_seconds(trap: Trap, body: impl FnOnce() + Send + 'static) {
    let (send, receive) = mpsc::channel();
    let body = thread::spawn(move || {
        body();
        let _ = send.send(());
    });
    match receive.recv_timeout(Duration::from_secs(20)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{trap:?} blocks"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            body.join().expect("nothing fails here");
        }
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("nothing fails here").success());
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("nothing fails here").permissions().mode() & 0o777
}
