use std::sync::Arc;

use oa_types::{Message, TextBlock, ToolResultBlock, ToolUseBlock};
use serde_json::{Map, Value, json};

use crate::append::Append;
use crate::contract::expect;
use crate::contract::fixture::{at, create, id};
use crate::error::ErrorKind;
use crate::revision::Revision;
use crate::session::{NewSession, SessionInfo};
use crate::store::SessionStore;

/// A prompt, a call, its result and an answer.
pub(super) fn turn(number: usize) -> Vec<Message> {
    let call_id = format!("call_{number}");
    let call = ToolUseBlock::new(&call_id, "add", json!({"a": number, "b": 1}));
    vec![
        Message::user(format!("What is {number} + 1?")),
        Message::assistant(vec![call.into()]),
        Message::tool(ToolResultBlock::new(call_id, json!(number + 1))),
        Message::assistant(vec![TextBlock::new(format!("{}.", number + 1)).into()]),
    ]
}

pub(super) async fn check(open: &mut dyn FnMut() -> Arc<dyn SessionStore>) {
    what_is_not_there(&*open()).await;
    messages(open).await;
    refusals(&*open()).await;
    rewinds(&*open()).await;
    replacements(&*open()).await;
    metadata(open).await;
    deletion(open).await;
}

async fn what_is_not_there(store: &dyn SessionStore) {
    let nobody = id("turns/nobody");
    let revision = Revision::from_bits(1);
    let append = Append::new(revision, turn(0), at(1));
    let missing = ErrorKind::NotFound;
    expect::kind("load", missing, store.load(&nobody).await);
    expect::kind("append", missing, store.append(&nobody, append).await);
    expect::kind("rewind", missing, store.rewind(&nobody, revision, 0, at(1)).await);
    expect::kind("pending", missing, store.set_pending(&nobody, revision, None, at(1)).await);
    expect::kind("metadata", missing, store.set_metadata(&nobody, Map::new(), at(1)).await);
    expect::kind("delete", missing, store.delete(&nobody).await);
    let fork = NewSession::new(id("turns/somebody"), at(1));
    expect::kind("fork", missing, store.fork(&nobody, 0, fork).await);
    expect::kind("fork", missing, store.load(&id("turns/somebody")).await);
}

async fn messages(open: &mut dyn FnMut() -> Arc<dyn SessionStore>) {
    let store = open();
    let info = create(&*store, "turns/Messages ☂").await;
    assert_eq!((info.created_at, info.updated_at, info.message_count), (at(1), at(1), 0));
    assert!(!info.is_pending && info.metadata.is_empty(), "a new session has nothing: {info:?}");
    expect::stored(&*open(), &info).await;
    let again = NewSession::new(info.id.clone(), at(2)).with_title("other");
    expect::kind("create", ErrorKind::AlreadyExists, store.create(again).await);
    expect::stored(&*open(), &info).await;
    // Ids are case-sensitive.
    create(&*store, "turns/messages ☂").await;

    let first = append(&*store, &info, turn(1)).await;
    assert_ne!(first.revision, info.revision, "an append changes the revision");
    assert_eq!((first.message_count, first.updated_at), (4, at(2)));
    let second = append(&*open(), &first, turn(2)).await;
    let nothing = append(&*store, &second, Vec::new()).await;
    let expected: Vec<Message> = turn(1).into_iter().chain(turn(2)).collect();
    assert_eq!(expect::stored(&*open(), &nothing).await.messages, expected);

    for known in [&info, &first] {
        let late = Append::new(known.revision, turn(3), at(9));
        expect::kind("late append", ErrorKind::Conflict, store.append(&info.id, late).await);
        let rewind = store.rewind(&info.id, known.revision, 0, at(9)).await;
        expect::kind("late rewind", ErrorKind::Conflict, rewind);
    }
    assert_eq!(expect::stored(&*open(), &nothing).await.messages, expected);
}

async fn refusals(store: &dyn SessionStore) {
    let info = create(store, "turns/refusals").await;
    let info = append(store, &info, turn(1)).await;
    let [prompt, call, result, answer] = &turn(2)[..] else {
        unreachable!("a turn has four messages");
    };
    let twice = [call.content.clone(), call.content.clone()].concat();
    let refused = [
        vec![prompt.clone(), call.clone()],
        vec![prompt.clone(), call.clone(), answer.clone()],
        vec![prompt.clone(), result.clone()],
        vec![call.clone(), prompt.clone(), result.clone()],
        vec![call.clone(), result.clone(), result.clone()],
        vec![Message::assistant(twice), result.clone()],
        vec![Message::new(oa_types::MessageRole::Tool, Vec::new())],
    ];
    for messages in refused {
        let what = format!("{messages:?}");
        let append = Append::new(info.revision, messages, at(9));
        expect::kind(&what, ErrorKind::InvalidInput, store.append(&info.id, append).await);
    }
    let deep = (0..150).fold(Value::Null, |inner, _| json!([inner]));
    let deep = Message::tool(ToolResultBlock::new("call_2", deep));
    let append = Append::new(info.revision, vec![call.clone(), deep], at(9));
    expect::kind("a deep value", ErrorKind::Limit, store.append(&info.id, append).await);
    assert_eq!(expect::stored(store, &info).await.messages, turn(1));
}

async fn rewinds(store: &dyn SessionStore) {
    let info = create(store, "turns/rewinds").await;
    let info = append(store, &info, turn(1)).await;
    let info = append(store, &info, turn(2)).await;
    for keep in [2, 6, 9, usize::MAX] {
        let rewind = store.rewind(&info.id, info.revision, keep, at(9)).await;
        expect::kind(&format!("rewind to {keep}"), ErrorKind::InvalidInput, rewind);
    }
    expect::stored(store, &info).await;
    let mut expected: Vec<Message> = turn(1).into_iter().chain(turn(2)).collect();
    let mut known = info;
    for keep in [8, 7, 5, 4, 0] {
        let info = store.rewind(&known.id, known.revision, keep, at(3)).await;
        let info = expect::ok("rewind", info);
        assert_eq!((info.message_count, info.updated_at), (keep, at(3)));
        assert_ne!(info.revision, known.revision, "a rewind changes the revision");
        expected.truncate(keep);
        assert_eq!(expect::stored(store, &info).await.messages, expected);
        known = info;
    }
    let info = append(store, &known, turn(3)).await;
    assert_eq!(expect::stored(store, &info).await.messages, turn(3));
}

async fn replacements(store: &dyn SessionStore) {
    let info = create(store, "turns/replacements").await;
    let info = append(store, &info, turn(1)).await;
    let change = Append::new(info.revision, turn(2), at(3)).keeping(2);
    expect::kind("append", ErrorKind::InvalidInput, store.append(&info.id, change).await);
    let change = Append::new(info.revision, turn(2), at(3)).keeping(3);
    let info = expect::ok("append", store.append(&info.id, change).await);
    let mut expected = turn(1);
    expected.truncate(3);
    expected.extend(turn(2));
    assert_eq!(expect::stored(store, &info).await.messages, expected);
}

async fn metadata(open: &mut dyn FnMut() -> Arc<dyn SessionStore>) {
    let store = open();
    let members = |value: Value| value.as_object().cloned().unwrap_or_default();
    let session = NewSession::new(id("turns/metadata"), at(1))
        .with_title("A title")
        .with_metadata(members(json!({"model": "any", "gone": null, "deep": {"null": null}})));
    let info = expect::ok("create", store.create(session).await);
    assert_eq!(info.title(), Some("A title"));
    assert_eq!(
        Value::Object(info.metadata.clone()),
        json!({"title": "A title", "model": "any", "deep": {"null": null}})
    );
    expect::stored(&*open(), &info).await;
    let change = members(json!({"title": "Другой ☂", "model": null, "new": [1, 2.5]}));
    let changed = store.set_metadata(&info.id, change, at(5)).await;
    let changed = expect::ok("set_metadata", changed);
    assert_eq!(
        Value::Object(changed.metadata.clone()),
        json!({"title": "Другой ☂", "deep": {"null": null}, "new": [1, 2.5]})
    );
    assert_eq!((changed.created_at, changed.updated_at), (at(1), at(5)));
    expect::stored(&*open(), &changed).await;
    // A new title does not disturb the writer of the conversation.
    assert_eq!(changed.revision, info.revision, "metadata changes the revision");
    let info = append(&*store, &info, turn(1)).await;
    assert_eq!(info.metadata, changed.metadata);
    expect::stored(&*open(), &info).await;
}

async fn deletion(open: &mut dyn FnMut() -> Arc<dyn SessionStore>) {
    let (store, other) = (open(), open());
    let info = create(&*store, "turns/deletion").await;
    let info = append(&*other, &info, turn(1)).await;
    expect::ok("delete", store.delete(&info.id).await);
    let late = Append::new(info.revision, turn(2), at(9));
    expect::kind("append", ErrorKind::NotFound, other.append(&info.id, late.clone()).await);
    expect::kind("load", ErrorKind::NotFound, other.load(&info.id).await);
    // A new session with the same id is a different session.
    let again = create(&*store, "turns/deletion").await;
    let again = append(&*store, &again, turn(3)).await;
    expect::kind("append", ErrorKind::Conflict, other.append(&info.id, late).await);
    assert_eq!(expect::stored(&*other, &again).await.messages, turn(3));
}

/// Appends at time 2.
pub(super) async fn append(
    store: &dyn SessionStore,
    known: &SessionInfo,
    messages: Vec<Message>,
) -> SessionInfo {
    let append = Append::new(known.revision, messages, at(2));
    expect::ok("append", store.append(&known.id, append).await)
}
