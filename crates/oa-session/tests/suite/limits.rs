//! Every limit is reached.

use std::time::Duration;

use oa_session::contract::block_on;
use oa_session::{
    ErrorKind, JsonlStore, Limits, List, MemoryStore, NewSession, Pending, SessionStore,
};
use oa_types::{Message, ToolUseBlock};
use serde_json::json;

use crate::{append, at, create, id, kind, load, turn, turns};

/// Runs a check with a store of each kind that has these limits.
fn each(limits: &Limits, check: impl Fn(&dyn SessionStore)) {
    check(&MemoryStore::with_limits(limits.clone()));
    let folder = tempfile::tempdir().expect("there is room");
    check(&JsonlStore::open_with(folder.path(), limits.clone()).expect("it opens"));
}

#[test]
fn messages_per_session_are_limited() {
    let mut limits = Limits::default();
    limits.messages = 5;
    each(&limits, |store| {
        let info = create(store, "a");
        let info = append(store, &info, turns(2)).unwrap();
        assert_eq!(kind(append(store, &info, turn(2))), ErrorKind::Limit);
        let info = append(store, &info, vec![Message::user("five")]).unwrap();
        let instead = oa_session::Append::new(info.revision, turn(9), at(2)).keeping(3);
        block_on(store.append(&info.id, instead)).unwrap();
        assert_eq!(load(store, "a").unwrap().len(), 5);
    });
}

#[test]
fn bytes_per_write_are_limited() {
    let mut limits = Limits::default();
    limits.record_bytes = 400;
    each(&limits, |store| {
        let info = create(store, "a");
        assert_eq!(kind(append(store, &info, turns(4))), ErrorKind::Limit);
        let call = ToolUseBlock::new("call_1", "add", json!({"long": "-".repeat(400)}));
        let pending = Some(Pending::new(call, at(1)));
        let pending = block_on(store.set_pending(&info.id, info.revision, pending, at(1)));
        assert_eq!(kind(pending), ErrorKind::Limit);
        append(store, &info, turn(0)).unwrap();
    });
}

#[test]
fn bytes_per_session_are_limited() {
    let mut limits = Limits::default();
    limits.session_bytes = 1_000;
    each(&limits, |store| {
        let mut info = create(store, "a");
        let refused = loop {
            match append(store, &info, turn(0)) {
                Ok(longer) => info = longer,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::Limit);
        assert!((10..16).contains(&info.message_count), "{}", info.message_count);
        block_on(store.rewind(&info.id, info.revision, 2, at(2))).unwrap();
    });
}

#[test]
fn metadata_and_pages_are_limited() {
    let mut limits = Limits::default();
    limits.metadata_bytes = 100;
    limits.page = 3;
    each(&limits, |store| {
        let long = NewSession::new(id("b"), at(1)).with_title("-".repeat(100));
        assert_eq!(kind(block_on(store.create(long.clone()))), ErrorKind::Limit);
        let info = create(store, "a");
        let change = store.set_metadata(&info.id, long.metadata.clone(), at(2));
        assert_eq!(kind(block_on(change)), ErrorKind::Limit);
        assert_eq!(kind(block_on(store.fork(&info.id, 0, long))), ErrorKind::Limit);
        assert_eq!(block_on(store.load(&info.id)).unwrap().info, info);
        assert_eq!(kind(block_on(store.list(List::new(4)))), ErrorKind::Limit);
        assert_eq!(block_on(store.list(List::new(3))).unwrap().sessions, [info]);
    });
}

#[test]
fn lower_limits_lose_no_session() {
    let files = crate::Files::new(4);
    let before = files.read();
    let narrow: [fn(&mut Limits); 3] = [
        |limits| limits.messages = 7,
        |limits| limits.session_bytes = 300,
        |limits| (limits.record_bytes, limits.metadata_bytes) = (1, 1),
    ];
    for (number, narrow) in narrow.into_iter().enumerate() {
        let mut limits = Limits::default();
        narrow(&mut limits);
        let store = JsonlStore::open_with(files.folder.path(), limits).unwrap();
        if number < 2 {
            assert_eq!(kind(load(&store, "a")), ErrorKind::Limit);
        }
        assert_eq!(files.read(), before);
    }
    // A line may be as long as a record, plus a kilobyte for the rest of it.
    let info = block_on(files.open().load(&id("a"))).unwrap().info;
    append(&files.open(), &info, vec![Message::user("-".repeat(2_000))]).unwrap();
    let mut limits = Limits::default();
    (limits.record_bytes, limits.metadata_bytes) = (500, 500);
    let store = JsonlStore::open_with(files.folder.path(), limits).unwrap();
    let error = load(&store, "a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("line 6: the line is longer than 1524 bytes"), "{error}");
    assert_eq!(files.load().unwrap().len(), 9);
}

#[test]
fn maximal_limits_do_not_overflow() {
    let mut limits = Limits::default();
    (limits.messages, limits.session_bytes, limits.page) = (usize::MAX, u64::MAX, usize::MAX);
    (limits.record_bytes, limits.metadata_bytes) = (usize::MAX, usize::MAX);
    limits.timeout = Duration::MAX;
    each(&limits, |store| {
        let info = create(store, "a");
        let info = append(store, &info, turn(0)).unwrap();
        let page = block_on(store.list(List::new(usize::MAX))).unwrap();
        assert_eq!((page.sessions, page.next), (vec![info], None));
    });
}
