//! Claims of calls in the store, with which several servers run each call once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{Method, StatusCode};
use oa_hooks::ToolRule;
use oa_session::{
    Append, Error, ErrorKind, List, MemoryStore, NewSession, Pending, Revision, Session, SessionId,
    SessionInfo, SessionPage, SessionStore, StoreFuture, Timestamp,
};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use crate::app::{App, agent};

/// A store that reports an error for a stored claim while `is_mute` is set.
#[derive(Debug, Default)]
struct Mute {
    inner: MemoryStore,
    is_mute: AtomicBool,
    /// Held by a test that makes deletions wait.
    deletions: Mutex<()>,
}

impl SessionStore for Mute {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionInfo> {
        self.inner.create(session)
    }

    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo> {
        self.inner.append(id, append)
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session> {
        self.inner.load(id)
    }

    fn list(&self, list: List) -> StoreFuture<'_, SessionPage> {
        self.inner.list(list)
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let _turn = self.deletions.lock().await;
            self.inner.delete(id).await
        })
    }

    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo> {
        self.inner.fork(id, keep, fork)
    }

    fn set_metadata<'a>(
        &'a self,
        id: &'a SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.inner.set_metadata(id, members, at)
    }

    fn set_pending<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        Box::pin(async move {
            let stored = self.inner.set_pending(id, revision, pending, at).await?;
            if self.is_mute.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Io, "the connection broke"));
            }
            Ok(stored)
        })
    }
}

/// The claim is this server's own, and its agent has no answer.
#[tokio::test]
async fn lost_claim_can_be_repeated() {
    let mute = Arc::new(Mute::default());
    let app = || {
        let store: Arc<dyn SessionStore> = Arc::<Mute>::clone(&mute);
        App::of(agent().tool_rule(ToolRule::ask("wait")), |server| server.store(store))
    };
    let (first, second) = (app(), app());
    let path = first.create().await;
    let mut events = first.view(&path, None).await;
    first.prompt(&path, "[wait]").await;
    events.run().await;
    let (_, known) = second.get(&path).await;
    let call = known["waiting"][0]["call_id"].as_str().expect("a call waits");
    let approve = format!("{path}/calls/{call}/approve");

    mute.is_mute.store(true, Ordering::Relaxed);
    let (status, _) = first.post(&approve, json!({})).await;
    assert!(status.is_server_error(), "{status}");
    mute.is_mute.store(false, Ordering::Relaxed);
    assert_eq!(first.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
    let (status, _) = second.post(&approve, json!({})).await;
    assert!(status.is_client_error(), "{status}");
    assert_eq!((first.conversations.running(), second.conversations.running()), (1, 0));
}

/// Answers are stored for the calls of one turn. A later call may have the same id.
#[tokio::test]
async fn early_answers_go_with_their_turn() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = || App::new(|server| server.store(Arc::clone(&store)));
    let (first, second) = (app(), app());
    let path = first.create().await;
    let mut events = first.view(&path, None).await;
    first.prompt(&path, "[both]").await;
    events.run().await;
    let (_, known) = second.get(&path).await;
    let call = |place: usize| known["waiting"][place]["call_id"].as_str().expect("a call waits");
    let approve = format!("{path}/calls/{}/approve", call(0));
    assert_eq!(first.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
    let id = path.rsplit('/').next().expect("an id");
    let id = SessionId::new(id).unwrap_or_else(|error| panic!("{error}"));
    let answers = async || store.load(&id).await.map(|it| it.info.metadata.contains_key("answers"));
    assert!(answers().await.is_ok_and(|has_answers| has_answers));
    let mut events = second.view(&path, None).await;
    let result = format!("{path}/calls/{}/result", call(1));
    assert_eq!(second.post(&result, json!({"content": "teal"})).await.0, StatusCode::ACCEPTED);
    events.run().await;
    assert!(answers().await.is_ok_and(|has_answers| !has_answers));
}

/// The front end's prompt has closed the call, and its run is refused.
#[tokio::test]
async fn calls_of_deleted_chats_do_not_wait() {
    let mute = Arc::new(Mute::default());
    let store: Arc<dyn SessionStore> = Arc::<Mute>::clone(&mute);
    let app = App::new(|server| server.store(store));
    let chat = |text: &str| {
        let message = json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]});
        json!({"id": "c", "messages": [message]})
    };
    app.frames("/api/chat", &chat("[delete]")).await;
    let path = "/api/conversations/chat-c";
    let (_, known) = app.get(path).await;
    let call = known["waiting"][0]["call_id"].as_str().expect("a call waits").to_owned();
    let deletion = mute.deletions.lock().await;
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
