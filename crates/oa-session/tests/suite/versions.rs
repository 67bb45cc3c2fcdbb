//! Files of other versions.

use oa_session::contract::block_on;
use oa_session::{ErrorKind, JsonlStore, Limits, List, NewSession, Pending, SessionStore};
use oa_types::{Message, ToolResultBlock, ToolUseBlock};
use serde_json::json;

use crate::{Files, append, at, id, kind, turn, turns};

#[test]
fn newer_versions_are_left_unchanged() {
    let files = Files::new(2);
    let known = block_on(files.open().load(&id("a"))).unwrap().info;
    let newer = "{\"v\":2,\"op\":\"append\",\"at\":1,\"words\":[]}";
    // Complete, and cut short by a crash.
    for end in ["\n", ""] {
        files.write(&[&files.read()[..], newer.as_bytes(), end.as_bytes()].concat());
        let before = files.read();
        let store = files.open();
        let error = files.load().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NewerVersion);
        let said = "the line has format version 2; this program supports up to 1";
        assert_eq!(error.to_string(), format!("{}, line 4: {said}", files.path().display()));
        assert_eq!(kind(append(&store, &known, turn(2))), ErrorKind::NewerVersion);
        let rewind = block_on(store.rewind(&known.id, known.revision, 0, at(1)));
        assert_eq!(kind(rewind), ErrorKind::NewerVersion);
        let fork = NewSession::new(id("b"), at(1));
        assert_eq!(kind(block_on(store.fork(&known.id, 0, fork))), ErrorKind::NewerVersion);
        let page = block_on(store.list(List::new(5))).unwrap();
        assert_eq!(page.unreadable[0].error.kind(), ErrorKind::NewerVersion);
        assert_eq!(files.read(), before);
        files.write(&before[..before.len() - newer.len() - end.len()]);
    }
    assert_eq!(files.load().unwrap(), turns(2));
}

#[test]
fn bare_message_files_are_continued() {
    let files = Files::new(0);
    let lines = |messages: &[Message]| {
        let lines = messages.iter().map(|message| serde_json::to_string(message).unwrap() + "\n");
        lines.collect::<String>()
    };
    files.write(lines(&turns(2)).as_bytes());
    assert_eq!(files.load().unwrap(), turns(2));
    let info = block_on(files.open().load(&id("a"))).unwrap().info;
    assert_eq!((info.created_at, info.message_count), (at(0), 4));
    files.go_on(2);
    files.go_on(3);
    assert_eq!(files.load().unwrap(), turns(4));
    assert!(files.read().starts_with(lines(&turns(2)).as_bytes()), "what was there stays");
    // A bare message among records is an error.
    let mixed = [&files.read()[..], lines(&turn(4)).as_bytes()].concat();
    files.write(&mixed);
    assert_eq!(kind(files.load()), ErrorKind::Corrupt);

    // A file that ends with an open call is not a valid conversation.
    let call = ToolUseBlock::new("call_1", "add", json!({}));
    files.write(lines(&[Message::assistant(vec![call.into()])]).as_bytes());
    let error = files.load().unwrap_err();
    assert!(error.to_string().ends_with("the conversation ends without the result of call call_1"));
}

#[test]
fn file_format_is_pinned() {
    let files = Files::new(1);
    let store = files.open();
    let info = block_on(store.load(&id("a"))).unwrap().info;
    let info = block_on(store.rewind(&info.id, info.revision, 1, at(3))).unwrap();
    let title = json!({"title": "A \"title\""}).as_object().cloned().unwrap();
    let info = block_on(store.set_metadata(&info.id, title, at(4))).unwrap();
    let call = ToolUseBlock::new("call_1", "delete", json!({"path": "a"}));
    let pending = Some(Pending::new(call, at(5)).with_reason("it deletes"));
    let info = block_on(store.set_pending(&info.id, info.revision, pending, at(5))).unwrap();
    block_on(store.set_pending(&info.id, info.revision, None, at(6))).unwrap();
    insta::assert_snapshot!(String::from_utf8(files.read()).unwrap(), @r#"
    {"v":1,"op":"create","at":1,"id":"a","metadata":{},"sum":"b79f9928a881e1e5"}
    {"v":1,"op":"append","at":2,"messages":[{"role":"user","content":[{"type":"text","text":"prompt 0"}]},{"role":"assistant","content":[{"type":"text","text":"answer 0"}]}],"sum":"f7f5b6445fe2ce90"}
    {"v":1,"op":"append","at":3,"keep":1,"messages":[],"sum":"ebd874dd92b09892"}
    {"v":1,"op":"metadata","at":4,"metadata":{"title":"A \"title\""},"sum":"9166142dafee2942"}
    {"v":1,"op":"pending","at":5,"pending":{"call":{"id":"call_1","name":"delete","input":{"path":"a"}},"asked_at":5,"reason":"it deletes"},"sum":"9c3c67c66770b267"}
    {"v":1,"op":"pending","at":6,"pending":null,"sum":"2a918e87ddc88e25"}
    "#);
}

/// A store must not write records that it cannot read.
#[test]
fn too_long_exchanges_are_not_rewritten() {
    // Each has its own line in the old file, and they share one in the new.
    let calls: Vec<_> =
        (0..4).map(|call| ToolUseBlock::new(format!("c{call}"), "read", json!({}))).collect();
    let results = calls
        .iter()
        .map(|call| Message::tool(ToolResultBlock::new(&*call.id, json!("x".repeat(20_000)))));
    let answer = Message::assistant(calls.iter().cloned().map(Into::into).collect());
    let messages: Vec<Message> =
        [Message::user("Go."), answer].into_iter().chain(results).collect();
    let lines = messages.iter().map(|message| serde_json::to_string(message).unwrap() + "\n");
    let files = Files::new(0);
    files.write(lines.collect::<String>().as_bytes());
    let mut limits = Limits::default();
    limits.record_bytes = 40_000;
    let store = JsonlStore::open_with(files.path().parent().unwrap(), limits).unwrap();
    assert_eq!(block_on(store.load(&id("a"))).unwrap().messages, messages);
    let fork = block_on(store.fork(&id("a"), 6, NewSession::new(id("b"), at(1))));
    assert_eq!(kind(fork), ErrorKind::Limit);
    assert_eq!(kind(block_on(store.load(&id("b")))), ErrorKind::NotFound);
    assert!(block_on(store.fork(&id("a"), 1, NewSession::new(id("b"), at(1)))).is_ok());
    assert_eq!(block_on(store.load(&id("b"))).unwrap().messages, messages[..1]);
}
