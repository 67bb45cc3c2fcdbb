//! The files in the folder, and their compaction.

use std::fs::{self, File};
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use fs4::FileExt;
use oa_session::contract::block_on;
use oa_session::{ErrorKind, JsonlStore, Limits, NewSession, Pending, SessionStore};
use oa_types::{Message, ToolUseBlock};
use serde_json::json;

use crate::{Files, append, at, create, folder_of, id, kind, load, turn, turns};

#[test]
fn each_id_has_its_own_file() {
    let files = Files::new(1);
    let store = files.open();
    let ids = ["A", "..", "a/b", "con", "☂", "%41", "a.jsonl", &"é".repeat(32)];
    for (number, text) in ids.into_iter().enumerate() {
        let info = create(&store, text);
        append(&store, &info, turn(number)).unwrap();
    }
    for (number, text) in ids.into_iter().enumerate() {
        assert_eq!(load(&store, text).unwrap(), turn(number));
    }
    assert_eq!(folder_of(files.folder.path()).len(), ids.len() + 2);
    assert!(files.folder.path().join("session-%2e%2e.jsonl").exists());
}

#[test]
fn file_is_compacted_after_rewinds() {
    let files = Files::new(2);
    let (store, other) = (files.open(), files.open());
    let mut info = block_on(other.load(&id("a"))).unwrap().info;
    let text = "-".repeat(300 << 10);
    let mut longest = 0;
    for _ in 0..12 {
        info = append(&store, &info, vec![Message::user(&text)]).unwrap();
        info = block_on(store.rewind(&info.id, info.revision, 4, at(3))).unwrap();
        longest = longest.max(files.read().len());
    }
    assert!(longest < 2 << 20, "{longest}");
    assert!(files.read().len() < 2 << 20);
    assert!(String::from_utf8(files.read()).unwrap().contains("\"op\":\"state\""));
    // All writers continue.
    assert_eq!(files.load().unwrap(), turns(2));
    assert_eq!(block_on(files.open().load(&id("a"))).unwrap().info, info);
    let info = append(&other, &info, turn(2)).unwrap();
    append(&store, &info, turn(3)).unwrap();
    assert_eq!(files.load().unwrap(), turns(4));
    assert_eq!(folder_of(files.folder.path()), [".lock", "session-a.jsonl"]);
}

/// A crash during compaction leaves a copy of the session, which must not outlive it.
#[test]
fn deleted_sessions_leave_no_copy() {
    let files = Files::new(2);
    let store = files.open();
    let draft = files.folder.path().join("session-a.jsonl.new");
    fs::write(&draft, files.read()).unwrap();
    block_on(store.delete(&id("a"))).unwrap();
    assert_eq!(folder_of(files.folder.path()), [".lock"]);
    // What cannot be removed is reported, and does not keep the session.
    create(&store, "a");
    fs::create_dir(&draft).unwrap();
    assert_eq!(kind(block_on(store.delete(&id("a")))), ErrorKind::Io);
    assert_eq!(folder_of(files.folder.path()), [".lock", "session-a.jsonl.new"]);
}

#[test]
fn compaction_keeps_the_pending_call() {
    let files = Files::new(1);
    let store = files.open();
    let mut info = block_on(store.load(&id("a"))).unwrap().info;
    let call = ToolUseBlock::new("call_1", "add", json!({}));
    let pending = |number: usize| {
        let prompt = Message::user("-".repeat(400 << 10) + &number.to_string());
        let turn = vec![prompt, Message::assistant(vec![call.clone().into()])];
        Some(Pending::new(call.clone(), at(1)).with_turn(turn))
    };
    for number in 0..9 {
        let set = store.set_pending(&info.id, info.revision, pending(number), at(1));
        info = block_on(set).unwrap();
        let session = block_on(files.open().load(&info.id)).unwrap();
        assert_eq!(session.pending, pending(number));
        assert_eq!(session.info, info);
    }
    assert!(files.read().len() < 3 << 20);
}

#[test]
fn long_pending_turns_are_not_compacted_twice() {
    let files = Files::new(1);
    let store = files.open();
    let info = block_on(store.load(&id("a"))).unwrap().info;
    let call = ToolUseBlock::new("call_1", "add", json!({}));
    let prompt = Message::user("-".repeat(2 << 20));
    let turn = vec![prompt, Message::assistant(vec![call.clone().into()])];
    let pending = Pending::new(call, at(1)).with_turn(turn);
    let mut revision = info.revision;
    for _ in 0..2 {
        let set = store.set_pending(&info.id, revision, Some(pending.clone()), at(1));
        revision = block_on(set).unwrap().revision;
    }
    // Half of the file is needed. A compacted file would have a `state` record.
    for (number, store) in [store, files.open()].into_iter().enumerate() {
        for place in 0..3 {
            let title = json!({ "title": format!("{number} {place}") });
            let members = title.as_object().unwrap().clone();
            block_on(store.set_metadata(&info.id, members, at(2))).unwrap();
            assert!(!String::from_utf8(files.read()).unwrap().contains("\"op\":\"state\""));
        }
    }
}

#[test]
fn forks_are_split_into_bounded_records() {
    let files = Files::new(0);
    let mut limits = Limits::default();
    limits.record_bytes = 1_000;
    let store = JsonlStore::open_with(files.folder.path(), limits).unwrap();
    let mut info = block_on(store.load(&id("a"))).unwrap().info;
    for number in 0..40 {
        info = append(&store, &info, turn(number)).unwrap();
    }
    let fork = NewSession::new(id("b"), at(1));
    block_on(store.fork(&info.id, 79, fork)).unwrap();
    assert_eq!(load(&store, "b").unwrap(), turns(40)[..79]);
    let text = fs::read_to_string(files.folder.path().join("session-b.jsonl")).unwrap();
    let longest = text.lines().map(str::len).max().unwrap();
    assert!(text.lines().count() > 5 && longest < 1_200, "{longest}");
}

#[test]
fn lock_timeout_is_busy_and_stalls_nobody() {
    let files = Files::new(1);
    let mut limits = Limits::default();
    limits.timeout = Duration::from_millis(20);
    let store = JsonlStore::open_with(files.folder.path(), limits).unwrap();
    let lock = File::options().write(true).open(files.folder.path().join(".lock")).unwrap();
    FileExt::lock(&lock).unwrap();
    let (a, patient) = (id("a"), files.open());
    let mut waits = pin!(patient.load(&a));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    assert_eq!(kind(load(&store, "a")), ErrorKind::Busy);
    FileExt::unlock(&lock).unwrap();
    assert_eq!(block_on(waits).unwrap().messages, turns(1));
    assert_eq!(load(&store, "a").unwrap(), turns(1));
}

/// As after a program that removes old files.
#[cfg(unix)]
#[test]
fn removed_lock_file_is_opened_again() {
    let files = Files::new(1);
    let mut limits = Limits::default();
    limits.timeout = Duration::ZERO;
    let store = JsonlStore::open_with(files.folder.path(), limits).unwrap();
    let path = files.folder.path().join(".lock");
    fs::remove_file(&path).unwrap();
    assert_eq!(load(&files.open(), "a").unwrap(), turns(1));
    let lock = File::options().write(true).open(&path).unwrap();
    FileExt::lock(&lock).unwrap();
    assert_eq!(kind(load(&store, "a")), ErrorKind::Busy);
    // Closing it may not be enough: a process that another test has just forked has it open, too.
    FileExt::unlock(&lock).unwrap();
    assert_eq!(load(&store, "a").unwrap(), turns(1));
}

/// As by somebody who puts the sessions away: who opens the folder next makes it anew, and both write there.
#[cfg(unix)]
#[test]
fn renamed_folder_is_locked_anew() {
    let place = tempfile::tempdir().unwrap();
    let (folder, away) = (place.path().join("sessions"), place.path().join("away"));
    let mut limits = Limits::default();
    limits.timeout = Duration::ZERO;
    let store = JsonlStore::open_with(&folder, limits).unwrap();
    create(&store, "a");
    fs::rename(&folder, &away).unwrap();
    assert_eq!(kind(load(&store, "a")), ErrorKind::Io);
    create(&JsonlStore::open(&folder).unwrap(), "b");
    let lock = File::options().write(true).open(folder.join(".lock")).unwrap();
    FileExt::lock(&lock).unwrap();
    assert_eq!(kind(load(&store, "b")), ErrorKind::Busy);
    FileExt::unlock(&lock).unwrap();
    assert_eq!(load(&store, "b").unwrap(), []);
    assert_eq!(kind(load(&store, "a")), ErrorKind::NotFound);
}

/// Its holder puts it away while another writer waits for it, which must not write where nobody looks.
#[cfg(target_os = "linux")]
#[test]
fn locked_file_is_the_one_at_its_path() {
    use std::io::Write;
    use std::thread;

    use oa_session::LockedFile;

    let place = tempfile::tempdir().unwrap();
    let (path, away) = (place.path().join("log"), place.path().join("away"));
    let held = LockedFile::open(&path, Duration::ZERO).unwrap();
    let its_path = path.clone();
    let waits = thread::spawn(move || LockedFile::open(&its_path, Duration::from_secs(60)));
    let is_path = |entry: &fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|it| it == path);
    while fs::read_dir("/proc/self/fd").unwrap().flatten().filter(|fd| is_path(fd)).count() < 2 {
        thread::yield_now();
    }
    fs::rename(&path, &away).unwrap();
    drop(held);
    let file = waits.join().unwrap().unwrap();
    file.get_ref().write_all(b"line").unwrap();
    assert_eq!((fs::read(&path).unwrap(), fs::read(&away).unwrap()), (b"line".to_vec(), vec![]));
}

#[test]
fn uncreatable_folder_is_an_error() {
    let files = Files::new(1);
    let inside = files.path().join("inside");
    let error = JsonlStore::open(&inside).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let cause = std::error::Error::source(&error).expect("it has a cause");
    assert_eq!(error.to_string(), format!("cannot write {}: {cause}", inside.display()));
}
