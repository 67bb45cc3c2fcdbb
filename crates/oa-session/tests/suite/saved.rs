//! A program that saves its conversation as it goes.

use std::sync::Arc;

use oa_session::contract::block_on;
use oa_session::{
    Error, ErrorKind, FaultPoint, FaultStore, JsonlStore, MemoryStore, NewSession, Operation,
    Pending, SavedSession, SessionStore, Timestamp,
};
use oa_types::{Message, ToolResultBlock, ToolUseBlock};
use serde_json::json;

use crate::{append, at, id, kind, turn, turns};

fn new() -> NewSession {
    NewSession::new(id("a"), at(1)).with_title("kept")
}

fn call() -> ToolUseBlock {
    ToolUseBlock::new("call_1", "delete", json!({"path": "a"}))
}

#[test]
fn conversation_continues_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || -> Arc<dyn SessionStore> { Arc::new(JsonlStore::open(folder.path()).unwrap()) };
    block_on(async {
        for run in 0..4 {
            let mut saved = SavedSession::open_or_create(open(), new()).await.unwrap();
            assert_eq!(saved.session().info.title(), Some("kept"));
            let mut history = saved.session().messages.clone();
            assert_eq!(history, turns(run));
            history.extend(turn(run));
            saved.save(&history, at(2)).await.unwrap();
            saved.save(&history, at(9)).await.unwrap();
            assert_eq!(saved.session().info.updated_at, at(2), "nothing was new");
        }
    });
}

#[test]
fn changed_history_replaces_saved_messages() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    block_on(async {
        let mut saved = SavedSession::open_or_create(Arc::clone(&store), new()).await.unwrap();
        let result = |text: &str| Message::tool(ToolResultBlock::new("call_1", text.into()));
        let prompt = Message::user("Tidy up.");
        let asked = Message::assistant(vec![call().into()]);
        let first = vec![prompt.clone(), asked.clone(), result("one"), Message::user("And?")];
        saved.save(&first, at(2)).await.unwrap();
        // A change in a result, at the start, at the end, and of everything.
        let mut other = first.clone();
        other[2] = result("two");
        let histories =
            [other.clone(), other[..3].to_vec(), [turns(1), other].concat(), Vec::new(), turns(3)];
        for history in histories {
            saved.save(&history, at(3)).await.unwrap();
            let stored = store.load(&id("a")).await.unwrap();
            assert_eq!(stored.messages, history);
            assert_eq!(*saved.session(), stored);
        }
        let open = vec![prompt, asked];
        assert_eq!(kind(saved.save(&open, at(3)).await), ErrorKind::InvalidInput);
        assert_eq!(store.load(&id("a")).await.unwrap(), *saved.session());
    });
}

#[test]
fn each_stored_state_has_its_key_prefix() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    block_on(async {
        let mut saved = SavedSession::open_or_create(Arc::clone(&store), new()).await.unwrap();
        let mut prefixes = vec![saved.key_prefix()];
        for run in 1..3 {
            saved.save(&turns(run), at(2)).await.unwrap();
            prefixes.push(saved.key_prefix());
            saved.save(&turns(run), at(3)).await.unwrap();
            let other = SavedSession::open(Arc::clone(&store), &id("a")).await.unwrap();
            assert_eq!([saved.key_prefix(), other.key_prefix()], [&*prefixes[run]; 2]);
        }
        prefixes.dedup();
        assert_eq!(prefixes.len(), 3);
        assert!(prefixes.iter().all(|prefix| prefix.starts_with("a@")), "{prefixes:?}");
    });
}

#[test]
fn second_writer_gets_a_conflict() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    block_on(async {
        let open = || SavedSession::open_or_create(Arc::clone(&store), new());
        let (mut one, mut other) = (open().await.unwrap(), open().await.unwrap());
        one.save(&turns(1), at(2)).await.unwrap();
        assert_eq!(kind(other.save(&turns(2), at(2)).await), ErrorKind::Conflict);
        other.reload().await.unwrap();
        assert_eq!(other.session().messages, turns(1));
        other.save(&turns(2), at(2)).await.unwrap();
        assert_eq!(kind(SavedSession::open(store, &id("b")).await), ErrorKind::NotFound);
    });
}

#[test]
fn saves_can_be_repeated() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    block_on(async {
        let open = || SavedSession::open_or_create(Arc::clone(&store), new());
        // The other stands for the attempt that succeeded unnoticed.
        let (mut one, mut other) = (open().await.unwrap(), open().await.unwrap());
        other.save(&turns(2), at(2)).await.unwrap();
        one.save(&turns(2), at(3)).await.unwrap();
        assert_eq!(one.session(), other.session());
        assert_eq!(one.session().info.updated_at, at(2));
        one.save(&turns(3), at(4)).await.unwrap();
        // With a message replaced, with another's messages behind, and with a call that waits.
        assert_eq!(kind(other.save(&turns(1), at(5)).await), ErrorKind::Conflict);
        assert_eq!(kind(other.save(&turns(4), at(5)).await), ErrorKind::Conflict);
        let asked = vec![Message::user("Tidy up."), Message::assistant(vec![call().into()])];
        let pending = Pending::new(call(), at(6)).with_turn(asked);
        one.set_pending(Some(pending), at(6)).await.unwrap();
        assert_eq!(kind(other.save(&turns(3), at(7)).await), ErrorKind::Conflict);
        assert_eq!(store.load(&id("a")).await.unwrap(), *one.session());
    });
}

#[test]
fn pending_approval_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || -> Arc<dyn SessionStore> { Arc::new(JsonlStore::open(folder.path()).unwrap()) };
    block_on(async {
        let mut saved = SavedSession::open_or_create(open(), new()).await.unwrap();
        saved.save(&turns(1), at(2)).await.unwrap();
        let turn = vec![Message::user("Tidy up."), Message::assistant(vec![call().into()])];
        let pending = Pending::new(call(), at(3)).with_turn(turn);
        saved.set_pending(Some(pending.clone()), at(3)).await.unwrap();
        drop(saved);

        let mut saved = SavedSession::open(open(), &id("a")).await.unwrap();
        let pending = saved.session().pending.clone().expect("it waits");
        let mut history = saved.session().messages.clone();
        history.extend(pending.turn);
        history.push(Message::tool(ToolResultBlock::new(pending.call.id, json!("done"))));
        saved.save(&history, at(4)).await.unwrap();
        let stored = open().load(&id("a")).await.unwrap();
        assert_eq!((stored.messages, stored.pending), (history, None));
    });
}

#[test]
fn waiting_turn_is_saved_as_pending() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    block_on(async {
        let mut saved = SavedSession::open_or_create(Arc::clone(&store), new()).await.unwrap();
        let mut history = turns(2);
        let complete = history.len();
        history.extend([Message::user("Tidy up."), Message::assistant(vec![call().into()])]);
        assert_eq!(kind(saved.save(&history, at(2)).await), ErrorKind::InvalidInput);
        saved.save_waiting(&history, at(2)).await.unwrap();
        saved.save_waiting(&history, at(3)).await.unwrap();

        let mut saved = SavedSession::open(store, &id("a")).await.unwrap();
        let session = saved.session();
        assert_eq!((session.messages.len(), session.conversation()), (complete, history.clone()));
        assert_eq!(session.pending.as_ref().unwrap().call, call());
        history.push(Message::tool(ToolResultBlock::new(call().id, json!("done"))));
        saved.save_waiting(&history, at(4)).await.unwrap();
        assert_eq!((&saved.session().messages, &saved.session().pending), (&history, &None));
    });
}

#[test]
fn changed_waiting_turn_keeps_its_extra_data() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let result = |id: &str| Message::tool(ToolResultBlock::new(id, json!("done")));
    block_on(async {
        let mut saved = SavedSession::open_or_create(Arc::clone(&store), new()).await.unwrap();
        let calls = ["c1", "c2"].map(|id| ToolUseBlock::new(id, "delete", json!({})).into());
        let mut history = vec![Message::user("Tidy up."), Message::assistant(calls.to_vec())];
        saved.save_waiting(&history, at(2)).await.unwrap();
        let mut claimed = saved.session().pending.clone().unwrap();
        claimed.extra.insert("claimed".to_owned(), json!(["c2"]));
        saved.set_pending(Some(claimed.clone()), at(3)).await.unwrap();
        history.push(result("c1"));
        saved.save_waiting(&history, at(4)).await.unwrap();
        let pending = store.load(&id("a")).await.unwrap().pending.unwrap();
        assert_eq!((&*pending.call.id, pending.extra), ("c2", claimed.extra));
        history.push(result("c2"));
        saved.save_waiting(&history, at(5)).await.unwrap();
        assert_eq!(store.load(&id("a")).await.unwrap().pending, None);
    });
}

/// The change of an earlier message is a write of its own, which clears the pending turn.
#[test]
fn extra_data_outlives_an_earlier_change() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    block_on(async {
        let mut saved = SavedSession::open_or_create(Arc::clone(&store), new()).await.unwrap();
        let asked = [Message::user("Tidy up."), Message::assistant(vec![call().into()])];
        let waiting = [&turns(2)[..], &asked].concat();
        saved.save_waiting(&waiting, at(2)).await.unwrap();
        let mut claimed = saved.session().pending.clone().unwrap();
        claimed.extra.insert("claimed".to_owned(), json!(["call_1"]));
        saved.set_pending(Some(claimed.clone()), at(3)).await.unwrap();
        let shorter = [&turns(1)[..], &asked].concat();
        saved.save_waiting(&shorter, at(4)).await.unwrap();
        let stored = store.load(&id("a")).await.unwrap();
        assert_eq!(stored.conversation(), shorter);
        assert_eq!(stored.pending.unwrap().extra, claimed.extra);
        // Another turn has its own.
        let call = ToolUseBlock::new("call_2", "delete", json!({}));
        let asked = [Message::user("And here."), Message::assistant(vec![call.into()])];
        saved.save_waiting(&[&turns(2)[..], &asked].concat(), at(5)).await.unwrap();
        assert!(saved.session().pending.as_ref().unwrap().extra.is_empty());
    });
}

#[test]
fn changed_results_are_saved_while_waiting() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let step = |id: &str, result: &str| {
        let call = ToolUseBlock::new(id, "read", json!({}));
        let result = ToolResultBlock::new(id, json!(result));
        [Message::assistant(vec![call.into()]), Message::tool(result)]
    };
    block_on(async {
        let mut saved = SavedSession::open_or_create(Arc::clone(&store), new()).await.unwrap();
        let mut history = [turns(1), vec![Message::user("Tidy up.")]].concat();
        history.extend([step("1", "a long page"), step("2", "two"), step("3", "three")].concat());
        saved.save(&history, at(2)).await.unwrap();
        // The result of a step that was saved is cleared, as a policy for small contexts does it.
        history.splice(3..5, step("1", "cleared"));
        history.push(Message::assistant(vec![call().into()]));
        saved.save_waiting(&history, at(3)).await.unwrap();
        let stored = store.load(&id("a")).await.unwrap();
        assert_eq!((stored.conversation(), &stored), (history.clone(), saved.session()));
        history.push(Message::tool(ToolResultBlock::new(call().id, json!("done"))));
        saved.save_waiting(&history, at(4)).await.unwrap();
        assert_eq!(store.load(&id("a")).await.unwrap().conversation(), history);
    });
}

#[test]
fn waiting_turn_is_written_once_and_cleared() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    block_on(async {
        let mut saved = SavedSession::open_or_create(Arc::clone(&store), new()).await.unwrap();
        let asked = [Message::user("Tidy up."), Message::assistant(vec![call().into()])];
        let waiting = [&turns(1)[..], &asked].concat();
        saved.save_waiting(&waiting, at(2)).await.unwrap();
        saved.save_waiting(&waiting, at(3)).await.unwrap();
        let pending = store.load(&id("a")).await.unwrap().pending.expect("it waits");
        assert_eq!(pending.asked_at, at(2));
        saved.save(&turns(1), at(4)).await.unwrap();
        let stored = store.load(&id("a")).await.unwrap();
        assert_eq!((stored.conversation(), stored.pending), (turns(1), None));
    });
}

#[test]
fn save_uses_given_or_system_time() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    block_on(async {
        let mut saved = SavedSession::open_or_create(Arc::clone(&store), new()).await.unwrap();
        saved.save(&turns(1), at(2)).await.unwrap();
        assert_eq!(saved.session().info.updated_at, at(2));

        let before = Timestamp::now();
        saved.save_now(&turns(2)).await.unwrap();
        let updated = saved.session().info.updated_at;
        assert!((before..=Timestamp::now()).contains(&updated), "{updated:?}");

        let mut history = turns(2);
        history.extend([Message::user("Tidy up."), Message::assistant(vec![call().into()])]);
        saved.save_waiting_now(&history).await.unwrap();
        let session = store.load(&id("a")).await.unwrap();
        assert!(session.info.updated_at >= updated && session.info.is_pending);
        assert_eq!(session.conversation(), history);
    });
}

/// A write that the program did not learn of is its own.
#[test]
fn catching_up_tells_who_has_written() {
    let inner = Arc::new(MemoryStore::new());
    let store = FaultStore::new(Arc::clone(&inner), async |point| match point {
        FaultPoint::After(Operation::Append) => Err(Error::new(ErrorKind::Io, "broken")),
        _ => Ok(()),
    });
    let mut saved = block_on(SavedSession::open_or_create(Arc::new(store), new())).unwrap();
    assert_eq!(kind(block_on(saved.save(&turn(0), at(1)))), ErrorKind::Io);
    assert!(!block_on(saved.catch_up()).unwrap());
    assert_eq!(saved.session().messages, turn(0));
    let known = saved.session().info.clone();
    append(&*inner, &known, turn(1)).unwrap();
    assert!(block_on(saved.catch_up()).unwrap());
    assert_eq!(saved.session().messages, turns(2));
    assert!(!block_on(saved.catch_up()).unwrap());
}
