//! Claims of calls in the store, with which several servers run each call once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use oa_hooks::ToolRule;
use oa_session::{
    Error, ErrorKind, FaultPoint, FaultStore, MemoryStore, Operation, SessionId, SessionStore,
};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::app::{App, agent};

/// Returns a store in which each operation of a kind waits for a lock.
fn held_at(operation: Operation) -> (Arc<Mutex<()>>, Arc<dyn SessionStore>) {
    let lock = Arc::new(Mutex::new(()));
    let turn = Arc::clone(&lock);
    let store = FaultStore::new(MemoryStore::new(), move |point| {
        let turn = Arc::clone(&turn);
        async move {
            if point == FaultPoint::Before(operation) {
                drop(turn.lock().await);
            }
            Ok(())
        }
    });
    (lock, Arc::new(store))
}

/// Returns two servers of a store, whose agents ask about the tool `wait`.
fn asking(store: impl SessionStore + 'static) -> (App, App) {
    let store: Arc<dyn SessionStore> = Arc::new(store);
    let app = || {
        let store = Arc::clone(&store);
        App::of(agent().tool_rule(ToolRule::ask("wait")), |server| server.session_store(store))
    };
    (app(), app())
}

/// Two servers of a store, and a conversation in which both calls of an answer wait: both servers know of them.
struct Both {
    first: App,
    second: App,
    path: String,
    /// The paths of the answers.
    approve: String,
    result: String,
}

impl Both {
    async fn wait(store: &Arc<dyn SessionStore>) -> Self {
        let app = || App::new(|server| server.session_store(Arc::clone(store)));
        let (first, second) = (app(), app());
        let path = first.create().await;
        let mut events = first.view(&path, None).await;
        first.prompt(&path, "[both]").await;
        events.run().await;
        let (_, known) = second.get(&path).await;
        let call = |at: usize| known["waiting"][at]["call_id"].as_str().expect("a call waits");
        let approve = format!("{path}/calls/{}/approve", call(0));
        let result = format!("{path}/calls/{}/result", call(1));
        Self { first, second, path, approve, result }
    }
}

/// The claim is this server's own, and its agent has no answer.
#[tokio::test]
async fn lost_claim_can_be_repeated() {
    let is_mute = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_mute);
    let store = FaultStore::new(MemoryStore::new(), move |point| {
        let is_claim = point == FaultPoint::After(Operation::SetPending);
        let fails = is_claim && seen.load(Ordering::Relaxed);
        async move {
            if fails { Err(Error::new(ErrorKind::Io, "the connection broke")) } else { Ok(()) }
        }
    });
    let (first, second) = asking(store);
    let path = first.create().await;
    let mut events = first.view(&path, None).await;
    first.prompt(&path, "[wait]").await;
    events.run().await;
    let (_, known) = second.get(&path).await;
    let call = known["waiting"][0]["call_id"].as_str().expect("a call waits");
    let approve = format!("{path}/calls/{call}/approve");

    is_mute.store(true, Ordering::Relaxed);
    let (status, _) = first.post(&approve, json!({})).await;
    assert!(status.is_server_error(), "{status}");
    is_mute.store(false, Ordering::Relaxed);
    assert_eq!(first.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
    let (status, _) = second.post(&approve, json!({})).await;
    assert!(status.is_client_error(), "{status}");
    assert_eq!((first.conversations.running(), second.conversations.running()), (1, 0));
}

/// Answers are stored for the calls of one turn. A later call may have the same id.
#[tokio::test]
async fn early_answers_go_with_their_turn() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let Both { first, second, path, approve, result } = Both::wait(&store).await;
    assert_eq!(first.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
    let id = path.rsplit('/').next().expect("an id");
    let id = SessionId::new(id).unwrap_or_else(|error| panic!("{error}"));
    let answers = async || store.load(&id).await.map(|it| it.info.metadata.contains_key("answers"));
    assert!(answers().await.is_ok_and(|has_answers| has_answers));
    let mut events = second.view(&path, None).await;
    assert_eq!(second.post(&result, json!({"content": "teal"})).await.0, StatusCode::ACCEPTED);
    events.run().await;
    assert!(answers().await.is_ok_and(|has_answers| !has_answers));
}

/// Also one that has the conversation in memory, from before the other one asked.
#[tokio::test]
async fn each_server_lists_waiting_calls() {
    let (first, second) = asking(MemoryStore::new());
    let path = first.create().await;
    let mut events = first.view(&path, None).await;
    assert_eq!(second.get(&path).await.1["waiting"], json!([]));
    first.prompt(&path, "[wait]").await;
    events.run().await;
    let (_, known) = second.get(&path).await;
    assert_eq!(known["waiting"], first.get(&path).await.1["waiting"]);
    assert_eq!(known["waiting"][0]["kind"], "approval");
    let call = known["waiting"][0]["call_id"].as_str().expect("a call waits");
    let approve = format!("{path}/calls/{call}/approve");
    assert_eq!(first.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
    assert_eq!(second.get(&path).await.1["waiting"], json!([]));
}

/// A server that has read the conversation between the claim of another one and its answer reads the answer, too.
#[tokio::test(start_paused = true)]
async fn answers_are_read_after_their_claims() {
    let (answers, store) = held_at(Operation::SetMetadata);
    let Both { first, second, path, approve, result } = Both::wait(&store).await;
    let held = answers.lock().await;
    let meanwhile = async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let (_, claimed) = second.get(&path).await;
        drop(held);
        claimed
    };
    let ((status, _), claimed) = tokio::join!(first.post(&approve, json!({})), meanwhile);
    assert_eq!(status, StatusCode::ACCEPTED);
    assert_eq!(claimed["waiting"].as_array().map(Vec::len), Some(1), "{claimed}");
    let mut events = second.view(&path, None).await;
    assert_eq!(second.post(&result, json!({"content": "teal"})).await.0, StatusCode::ACCEPTED);
    let run = timeout(Duration::from_secs(60), events.run()).await.expect("the turn continues");
    assert!(run.iter().any(|event| event.data["data"]["type"] == "tool_call_complete"), "{run:?}");
}

/// The front end's prompt has closed the call, and its run is refused.
#[tokio::test]
async fn calls_of_deleted_chats_do_not_wait() {
    let (deletions, store) = held_at(Operation::Delete);
    let app = App::new(|server| server.session_store(store));
    let chat = |text: &str| {
        let message = json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]});
        json!({"id": "c", "messages": [message]})
    };
    app.frames("/api/chat", &chat("[delete]")).await;
    let path = "/api/conversations/chat-c";
    let (_, known) = app.get(path).await;
    let call = known["waiting"][0]["call_id"].as_str().expect("a call waits").to_owned();
    let deletion = deletions.lock().await;
    let approve = format!("{path}/calls/{call}/approve");
    let meanwhile = async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let (refused, _) = app.post("/api/chat", chat("Hello")).await;
        let approved = app.post(&approve, json!({})).await;
        drop(deletion);
        (refused, approved)
    };
    let (deleted, (refused, approved)) =
        tokio::join!(app.call(Method::DELETE, path, json!({})), meanwhile);
    assert_eq!((deleted.0, refused), (StatusCode::NO_CONTENT, StatusCode::NOT_FOUND));
    assert_eq!(approved.0, StatusCode::NOT_FOUND, "{}", approved.1);
}
