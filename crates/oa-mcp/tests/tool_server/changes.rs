//! Tools that change while the server runs, and log messages outside of calls, for clients with a handshake.

use std::time::Duration;

use oa_mcp::{McpServer, Servers, ToolServer, ToolServerHandle};
use oa_tools::{LogLevel, Registry, tool};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::http::headers;
use crate::support::{InMemory, OFFERED, PATIENCE, Served, call, request, server, text};
use crate::tools;

fn named(names: &[&str]) -> Registry {
    let tools =
        names.iter().map(|name| tool(*name, "A tool").build(|_| async { Ok(json!("done")) }));
    Registry::from_tools(tools).unwrap_or_else(|error| panic!("{error}"))
}

fn changing() -> (ToolServer, ToolServerHandle) {
    let server = ToolServer::new(named(&["first"]));
    let handle = server.handle();
    (server, handle)
}

/// The client is notified, and later calls get the new tools.
#[tokio::test]
async fn running_call_keeps_its_replaced_tool() {
    let (begin, begun) = (
        std::sync::Arc::new(tokio::sync::Notify::new()),
        std::sync::Arc::new(tokio::sync::Notify::new()),
    );
    let (waits, tells) = (begin.clone(), begun.clone());
    let wait = tool("wait", "Waits").build(move |_| {
        let (waits, tells) = (waits.clone(), tells.clone());
        async move {
            tells.notify_one();
            waits.notified().await;
            Ok(json!("waited"))
        }
    });
    let offered = server([wait]);
    let handle = offered.handle();
    let mut client = InMemory::ready(offered).await;
    client.send(&call(1, "wait", json!({}))).await;
    begun.notified().await;
    handle.set_tools(named(&["second"]));
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    let list = client.ask(&request(2, "tools/list", json!({}))).await;
    assert_eq!(list["result"]["tools"][0]["name"], "second");
    begin.notify_one();
    assert_eq!(text(&client.next().await), "waited");
    assert_eq!(client.ask(&call(3, "wait", json!({}))).await["error"]["code"], -32602);
    assert_eq!(text(&client.ask(&call(4, "second", json!({}))).await), "done");
}

#[tokio::test]
async fn log_lines_respect_level_and_handshake() {
    let (offered, handle) = changing();
    let mut client = InMemory::start(offered);
    handle.log(LogLevel::Error, "nobody is there yet");
    handle.set_tools(named(&["first", "second"]));
    assert_eq!(client.ask(&request(1, "ping", json!({}))).await["id"], 1);
    assert_eq!(client.ask(&crate::support::hello(2)).await["id"], 2);
    let level = request(3, "logging/setLevel", json!({ "level": "warning" }));
    assert_eq!(client.ask(&level).await["id"], 3);
    handle.log(LogLevel::Info, "quiet");
    handle.log(LogLevel::Warn, "loud");
    let line = client.next().await;
    assert_eq!(line["params"], json!({ "level": "warning", "data": "loud" }));
}

/// A stream of a session, as it comes.
struct Stream(TcpStream, String);

impl Stream {
    async fn open(served: &Served, session: &str, last: Option<&str>) -> Self {
        let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let stream = served.open("GET", &format!("{}{last}", headers(Some(session))), b"").await;
        let mut this = Self(stream, String::new());
        this.until("\r\n\r\n").await;
        this
    }

    async fn until(&mut self, wanted: &str) -> &str {
        let mut chunk = [0; 4_096];
        while !self.1.contains(wanted) {
            let read = tokio::time::timeout(PATIENCE, self.0.read(&mut chunk)).await;
            let count =
                read.unwrap_or_else(|_| panic!("no {wanted} in {}", self.1)).unwrap_or_default();
            assert!(count > 0, "no {wanted} in {}", self.1);
            self.1 += &String::from_utf8_lossy(&chunk[..count]);
        }
        &self.1
    }

    async fn ends(mut self) -> bool {
        let end = self.0.read_to_string(&mut self.1);
        tokio::time::timeout(PATIENCE, end).await.is_ok()
    }

    fn last_id(&self) -> String {
        let mut ids = self.1.lines().filter_map(|line| line.strip_prefix("id: "));
        ids.next_back().unwrap_or_default().to_owned()
    }
}

#[tokio::test]
async fn session_stream_can_be_resumed() {
    let (offered, handle) = changing();
    let served = Served::start(offered.http_service()).await;
    let session = served.greet().await;
    // What happens before the stream is opened is told when it is.
    handle.log(LogLevel::Warn, "before");
    let mut stream = Stream::open(&served, &session, None).await;
    stream.until("\"before\"").await;
    handle.set_tools(named(&["first", "second"]));
    stream.until("list_changed").await;
    handle.log(LogLevel::Warn, "seen");
    stream.until("\"seen\"").await;
    let seen = stream.last_id();
    // Sent, but never seen by the client, which goes on after what it has seen.
    handle.log(LogLevel::Error, "lost");
    stream.until("\"lost\"").await;
    drop(stream);
    handle.log(LogLevel::Error, "missed");
    let mut resumed = Stream::open(&served, &session, Some(&seen)).await;
    let said = resumed.until("\"missed\"").await;
    assert!(said.contains("\"lost\""), "{said}");
    assert!(!said.contains("\"seen\"") && !said.contains("list_changed"), "{said}");
    // Without the id of an event, it goes on where the last stream ended.
    let mut next = Stream::open(&served, &session, None).await;
    assert!(resumed.ends().await, "a message goes to one stream only");
    handle.log(LogLevel::Error, "at last");
    let said = next.until("\"at last\"").await;
    assert!(!said.contains("\"missed\""), "{said}");
    // Another session has its own.
    let other = served.greet().await;
    let mut others = Stream::open(&served, &other, None).await;
    handle.log(LogLevel::Error, "for all");
    assert!(!others.until("\"for all\"").await.contains("\"at last\""));
    next.until("\"for all\"").await;
    assert_eq!(
        served.ask("DELETE", &format!("mcp-session-id: {session}\r\n"), b"").await.status,
        204
    );
    assert!(next.ends().await);
}

#[tokio::test]
async fn ended_session_closes_its_stream() {
    let (offered, handle) = changing();
    let few = crate::support::limits(|limits| limits.sessions = 1);
    let served = Served::start(offered.limits(few).http_service()).await;
    let stream = Stream::open(&served, &served.greet().await, None).await;
    // The only session is idle, and gives way to another one.
    let session = served.greet().await;
    assert!(stream.ends().await);
    let mut stream = Stream::open(&served, &session, None).await;
    handle.set_tools(Registry::new());
    stream.until("list_changed").await;
}

async fn follows(server: McpServer) {
    let connected = Servers::new().add(server.required()).connect().await;
    let connected = connected.unwrap_or_else(|error| panic!("{error}"));
    let has = |name: &str| connected.tools().iter().any(|tool| tool.name() == name);
    let tools = connected.tools();
    let Some(grow) = tools.iter().find(|tool| tool.name() == "o__grow") else { panic!("no tool") };
    // Over HTTP, the stream is opened beside the first requests; whenever it is, nothing is missed.
    assert!(grow.execute(json!({})).await.is_ok_and(|said| said == json!("there is another tool")));
    while !has("o__grown") {
        let changed = tokio::time::timeout(Duration::from_secs(20), connected.changed()).await;
        assert!(changed.is_ok(), "the list has not changed");
    }
    connected.close().await;
}

#[tokio::test]
async fn our_client_follows_a_list_over_stdio() {
    follows(McpServer::stdio("o", OFFERED)).await;
    follows(McpServer::stdio("o", OFFERED).stateless()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_follows_a_list_over_http() {
    let served = Served::start(tools::server().unwrap().http_service()).await;
    follows(McpServer::http("o", format!("http://{}/mcp", served.address))).await;
    // It has grown; another one has not.
    let served = Served::start(tools::server().unwrap().http_service()).await;
    follows(McpServer::http("o", format!("http://{}/mcp", served.address)).stateless()).await;
}
