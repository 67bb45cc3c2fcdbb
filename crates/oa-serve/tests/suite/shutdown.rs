//! Runs that the server ends: those without viewers, and all at shutdown.

use std::sync::Arc;
use std::time::Duration;

use oa_serve::{AgentServer, ServeLimits};
use oa_session::{MemoryStore, SessionId, SessionStore};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::app::{App, agent, text};

/// The time begins again when a viewer comes back and leaves.
#[tokio::test(start_paused = true)]
async fn run_without_viewers_is_stopped() {
    let mut limits = ServeLimits::default();
    limits.unread_run = Duration::from_secs(10);
    let app = App::new(|server| server.limits(limits));
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[long]").await;
    while !events.next().await.is_some_and(|event| event.data["type"] == "block") {}
    drop(events);
    sleep(Duration::from_secs(5)).await;
    let events = app.view(&path, None).await;
    sleep(Duration::from_secs(8)).await;
    assert_eq!(app.conversations.running(), 1, "somebody reads again");
    drop(events);
    let left = Instant::now();
    while app.conversations.running() > 0 {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(left.elapsed() >= Duration::from_secs(10));
    // What was there is kept.
    let (_, now) = app.get(&path).await;
    assert_eq!(now["messages"][1]["interrupted"], true);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_runs_within_the_limit() {
    let mut limits = ServeLimits::default();
    limits.shutdown = Duration::from_secs(5);
    let app = App::new(|server| server.limits(limits));
    let (short, long, idle) = (app.create().await, app.create().await, app.create().await);
    let mut idle_events = app.view(&idle, None).await;
    let mut short_events = app.view(&short, None).await;
    let mut long_events = app.view(&long, None).await;
    app.prompt(&short, "[slow]").await;
    app.prompt(&long, "[long]").await;
    let began = Instant::now();
    let closing = tokio::spawn({
        let conversations = app.conversations.clone();
        async move { conversations.shutdown().await }
    });
    tokio::task::yield_now().await;
    assert_eq!(app.conversations.running(), 2);
    assert_eq!(text(&short_events.run().await), "one two three four", "it ends by itself");
    assert!(short_events.next().await.is_none() && idle_events.next().await.is_none());
    let end = long_events.run().await.pop().expect("a run ends");
    assert_eq!(end.data["finish_reason"], "interrupted");
    closing.await.expect("it ends");
    assert!(began.elapsed() >= Duration::from_secs(5) && app.conversations.running() == 0);
    let (status, _) = app.post(&format!("{short}/prompt"), json!({"text": "hi"})).await;
    assert_eq!(status, 503);
}

#[tokio::test(start_paused = true)]
async fn runs_continue_without_their_server() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = App::new(|server| server.session_store(Arc::clone(&store)));
    let path = app.create().await;
    app.prompt(&path, "[slow]").await;
    drop(app);
    let id = path.rsplit('/').next().expect("a path has parts");
    let id = SessionId::new(id).expect("it is valid");
    let answer = loop {
        let session = store.load(&id).await.expect("it is stored");
        if let Some(answer) = session.messages.get(1) {
            break answer.clone();
        }
        sleep(Duration::from_millis(10)).await;
    };
    assert_eq!((answer.text().as_str(), answer.interrupted), ("one two three four", false));
}

#[tokio::test]
async fn shutdown_saves_partial_answers() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let mut limits = ServeLimits::default();
    limits.shutdown = Duration::from_millis(100);
    let agent = agent().build().expect("the options are valid");
    let server = AgentServer::new(agent).session_store(Arc::clone(&store)).limits(limits);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let addr = listener.local_addr().expect("it has an address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(listener, async move {
        let _ = stopped.await;
    }));
    let send = |method: &'static str, path: String, body: String| async move {
        let mut stream = TcpStream::connect(addr).await.expect("it listens");
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.expect("it reads");
        stream
    };
    let mut answer = String::new();
    let mut stream = send("POST", "/api/conversations".to_owned(), "{}".to_owned()).await;
    stream.read_to_string(&mut answer).await.expect("it answers");
    let id = answer.rsplit("\"id\":\"").next().and_then(|rest| rest.split('"').next());
    let path = format!("/api/conversations/{}", id.expect("an id"));
    let mut events = send("GET", format!("{path}/events"), String::new()).await;
    let mut prompt =
        send("POST", format!("{path}/prompt"), "{\"text\":\"[long]\"}".to_owned()).await;
    let mut accepted = String::new();
    prompt.read_to_string(&mut accepted).await.expect("it answers");
    let mut seen = String::new();
    while !seen.contains("tick") {
        let mut bytes = [0; 1_024];
        let count = events.read(&mut bytes).await.expect("the stream goes on");
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    stop.send(()).expect("it serves");
    serving.await.expect("no panic").expect("it ends well");
    let session = store
        .load(&SessionId::new(id.expect("an id")).expect("it is valid"))
        .await
        .expect("it is stored");
    assert!(session.messages[1].interrupted && session.messages[1].text().starts_with("tick"));
}

/// A server on a loopback address accepts only local names as hosts.
#[tokio::test]
async fn public_addresses_need_a_token() {
    let agent = || agent().build().expect("the options are valid");
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("there is a port");
    let refused = AgentServer::new(agent()).serve_until(listener, async {}).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("bearer token")));
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("there is a port");
    let server = AgentServer::new(agent()).bearer_token("secret");
    server.serve_until(listener, async {}).await.expect("it may be served");

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let addr = listener.local_addr().expect("it has an address");
    tokio::spawn(AgentServer::new(agent()).serve_until(listener, std::future::pending()));
    for (host, status) in [
        ("localhost:1", "200"),
        ("127.0.0.1", "200"),
        ("[::1]:1", "200"),
        ("evil.example.com", "403"),
    ] {
        let mut stream = TcpStream::connect(addr).await.expect("it listens");
        let request = format!("GET /api/agent HTTP/1.0\r\nhost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        assert!(answer.contains(&format!(" {status} ")), "{host}: {answer}");
    }
}
