//! Faults over real sockets.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_body::Body;
use oa_mcp::{HttpBody, ToolServer};
use oa_tools::tool;
use oa_transport::ApiKey;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tower::Service;

use crate::support::{
    PATIENCE, Served, call, cancel, hello, limits, request, server, text, watched,
};

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Served {
    /// Sends a request and leaves the connection open.
    pub(crate) async fn open(&self, method: &str, headers: &str, body: &[u8]) -> TcpStream {
        let connected = TcpStream::connect(self.address).await;
        let mut stream = connected.unwrap_or_else(|e| panic!("{e}"));
        let host =
            if headers.to_ascii_lowercase().contains("host:") { "" } else { "host: localhost\r\n" };
        let length = if headers.contains("content-length") || headers.contains("chunked") {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let head =
            format!("{method} /mcp HTTP/1.1\r\nconnection: close\r\n{host}{length}{headers}\r\n");
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body).await;
        stream
    }

    pub(crate) async fn ask(&self, method: &str, headers: &str, body: &[u8]) -> Answer {
        read(self.open(method, headers, body).await).await
    }

    pub(crate) async fn post(&self, session: Option<&str>, message: &Value) -> Answer {
        self.ask("POST", &headers(session), message.to_string().as_bytes()).await
    }

    /// Says `initialize`; returns the session.
    pub(crate) async fn greet(&self) -> String {
        let answer = self.post(None, &hello(0)).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.header("mcp-session-id").unwrap_or_else(|| panic!("no session"))
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }

    /// The messages in the body, whether it is JSON or a stream.
    pub(crate) fn messages(&self) -> Vec<Value> {
        if self.head.contains("text/event-stream") {
            let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
            return data.map(|data| serde_json::from_str(data).unwrap_or_default()).collect();
        }
        serde_json::from_str(&self.body).into_iter().collect()
    }
}

pub(crate) fn headers(session: Option<&str>) -> String {
    let session = session.map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
    format!(
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\n{session}"
    )
}

/// Reads an answer to its end; chunks are put together.
pub(crate) async fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    let _ = read.unwrap_or_else(|_| panic!("no end: {}", String::from_utf8_lossy(&bytes)));
    let all = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        let mut whole = String::new();
        let mut rest = body;
        while let Some((size, after)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).unwrap_or_default();
            whole.push_str(after.get(..size).unwrap_or_default());
            rest = after.get(size + 2..).unwrap_or_default();
        }
        whole
    } else {
        body.to_owned()
    };
    Answer { status, head: head.to_owned(), body }
}

fn tools() -> ToolServer {
    server([
        tool("echo", "Echo")
            .param("text", "string")
            .build(|args| async move { Ok(args["text"].clone()) }),
        tool("panic", "Panic").build(|_| async { panic!("on purpose") }),
        tool("steps", "Steps").build_with_context(|_, cx| async move {
            (1..=50_u64).for_each(|step| cx.emit_progress((step, 50)));
            Ok(json!({ "steps": 50 }))
        }),
    ])
}

/// A tool that runs until it is dropped, and what is told when it starts and when it is dropped.
fn endless() -> (ToolServer, Arc<Notify>, Arc<Notify>) {
    struct Told(Arc<Notify>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (start, drop) = (Arc::clone(&started), Arc::clone(&dropped));
    let wait = tool("wait", "Waits").build(move |_| {
        let (start, told) = (Arc::clone(&start), Told(Arc::clone(&drop)));
        async move {
            let _told = told;
            start.notify_one();
            std::future::pending().await
        }
    });
    let echo = tool("echo", "Echo").build(|args| async move { Ok(args) });
    (server([wait, echo]), started, dropped)
}

/// Calls the tool that waits, and returns the response once it runs.
async fn waiting(served: &Served, session: &str, started: &Notify) -> TcpStream {
    let message = call(1, "wait", json!({})).to_string();
    let stream = served.open("POST", &headers(Some(session)), message.as_bytes()).await;
    told(started).await;
    stream
}

async fn told(notify: &Notify) {
    tokio::time::timeout(PATIENCE, notify.notified()).await.unwrap_or_else(|_| panic!("not told"));
}

#[tokio::test]
async fn session_lifecycle_from_post_to_delete() {
    let served = Served::start(tools().http_service()).await;
    let id = served.greet().await;
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let answer = served.post(Some(&id), &ready).await;
    assert_eq!((answer.status, &*answer.body), (202, ""));
    let listed = served.post(Some(&id), &request(1, "tools/list", json!({}))).await;
    assert_eq!(listed.header("content-type").as_deref(), Some("application/json"));
    assert_eq!(listed.messages()[0]["result"]["tools"].as_array().map(Vec::len), Some(3));
    let called = served.post(Some(&id), &watched(2, "steps", json!({}))).await;
    assert_eq!(called.header("content-type").as_deref(), Some("text/event-stream"));
    let messages = called.messages();
    assert_eq!(messages.len(), 51);
    let steps = messages.iter().filter_map(|message| message["params"]["progress"].as_u64());
    assert!(steps.eq(1..=50));
    assert_eq!(messages[50]["result"]["structuredContent"], json!({ "steps": 50 }));
    let panicked = served.post(Some(&id), &call(3, "panic", json!({}))).await.messages();
    assert_eq!(text(&panicked[0]), "the tool panicked");
    let batch = json!([request(4, "ping", json!({})), call(5, "echo", json!({ "text": "b" }))]);
    let batch = served.post(Some(&id), &batch).await.messages();
    assert_eq!((&batch[0]["id"], text(&batch[1])), (&json!(4), "b"));
    let session = format!("mcp-session-id: {id}\r\n");
    assert_eq!(served.ask("DELETE", &session, b"").await.status, 204);
    assert_eq!(served.ask("DELETE", &session, b"").await.status, 404);
    assert_eq!(served.post(Some(&id), &request(6, "ping", json!({}))).await.status, 404);
    assert_eq!(served.service.sessions(), 0);
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let served = Served::start(tools().http_service()).await;
    let id = served.greet().await;
    let status = async |session: Option<&str>, body: &str| {
        served.ask("POST", &headers(session), body.as_bytes()).await.status
    };
    for body in ["{no json", "[]", "7", "", r#"{"jsonrpc":"2.0"}"#] {
        assert_eq!(status(Some(&id), body).await, 400, "{body}");
        assert_eq!(status(None, body).await, 400, "{body}");
    }
    let list = request(1, "tools/list", json!({})).to_string();
    assert_eq!(status(None, &list).await, 400);
    assert_eq!(status(None, &json!([hello(1), hello(2)]).to_string()).await, 400);
    assert_eq!(status(Some("unknown"), &list).await, 404);
    assert_eq!(status(Some(&id), &list).await, 200);
    let put = served.ask("PUT", &headers(Some(&id)), b"").await;
    assert_eq!((put.status, put.header("allow").as_deref()), (405, Some("GET, POST, DELETE")));
    assert_eq!(served.ask("GET", &headers(None), b"").await.status, 400);
    assert_eq!(served.ask("GET", &headers(Some("unknown")), b"").await.status, 404);
    let json = format!("accept: application/json\r\nmcp-session-id: {id}\r\n");
    assert_eq!(served.ask("GET", &json, b"").await.status, 406);
    let unknown = format!("{}last-event-id: x\r\n", headers(Some(&id)));
    assert_eq!(served.ask("GET", &unknown, b"").await.status, 400);
    // A stream that began there would never have a notification.
    let future = unknown.replace(": x\r", ": n18446744073709551615\r");
    assert_eq!(served.ask("GET", &future, b"").await.status, 400);
    assert_eq!(served.ask("DELETE", "", b"").await.status, 400);
    let old = format!("{}mcp-protocol-version: 1999-01-01\r\n", headers(Some(&id)));
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for (method, body) in [("POST", &*list), ("POST", initialized), ("GET", ""), ("DELETE", "")] {
        let refused = served.ask(method, &old, body.as_bytes()).await;
        assert_eq!(refused.status, 400, "{method} {body}");
    }
    assert_eq!(status(Some(&id), initialized).await, 202);
    let untyped = served.ask("POST", "accept: */*\r\n", list.as_bytes()).await;
    assert_eq!(untyped.status, 415);
    assert_eq!(served.service.sessions(), 1);
}

#[tokio::test]
async fn foreign_hosts_and_tokens_are_refused() {
    let service = tools()
        .http_service()
        .allow_host("tools.example")
        .bearer(ApiKey::new("sk-canary-0123456789").unwrap());
    assert!(!format!("{service:?}").contains("canary"));
    let served = Served::start(service).await;
    let ask = async |extra: &str| {
        let headers = format!("{}{extra}", headers(None));
        served.ask("POST", &headers, hello(1).to_string().as_bytes()).await
    };
    let key = "authorization: Bearer sk-canary-0123456789\r\n";
    assert_eq!(ask(key).await.status, 200);
    assert_eq!(ask(&format!("{key}host: tools.example\r\n")).await.status, 200);
    assert_eq!(ask(&format!("{key}host: attacker.example\r\n")).await.status, 403);
    assert_eq!(ask(&format!("{key}origin: http://attacker.example\r\n")).await.status, 403);
    let refused = ask("authorization: Bearer sk-canary-0123456780\r\n").await;
    assert_eq!(
        (refused.status, refused.header("www-authenticate").as_deref()),
        (401, Some("Bearer"))
    );
    assert!(!refused.body.contains("canary"));
    assert_eq!(ask("").await.status, 401);
}

#[tokio::test]
async fn large_body_is_refused_unread() {
    let served = Served::start(tools().http_service()).await;
    let id = served.greet().await;
    let huge = "content-length: 104857600\r\n";
    let answer = served.ask("POST", &format!("{}{huge}", headers(Some(&id))), b"{").await;
    assert_eq!(answer.status, 413);
    // Without a length, it is refused when the limit is reached.
    let chunked = format!("{}transfer-encoding: chunked\r\n", headers(Some(&id)));
    let mut body = Vec::new();
    for _ in 0..80 {
        body.extend_from_slice(b"10000\r\n");
        body.resize(body.len() + 0x10000, b' ');
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(served.ask("POST", &chunked, &body).await.status, 413);
    let large = call(1, "echo", json!({ "text": "x".repeat(3 << 20) }));
    let answer = served.post(Some(&id), &large).await;
    assert_eq!(text(&answer.messages()[0]).len(), 3 << 20);
}

#[tokio::test]
async fn slow_body_times_out() {
    let quick = limits(|limits| limits.body_time = Duration::from_millis(200));
    let served = Served::start(tools().limits(quick).http_service()).await;
    let slow = format!("{}content-length: 100\r\n", headers(None));
    assert_eq!(served.ask("POST", &slow, b"{").await.status, 408);
}

#[tokio::test]
async fn disconnect_cancels_the_call() {
    let (offered, started, dropped) = endless();
    let served = Served::start(offered.http_service()).await;
    let id = served.greet().await;
    let stream = waiting(&served, &id, &started).await;
    drop(stream);
    told(&dropped).await;
    // Its id is free, and the session lives.
    let next = served.post(Some(&id), &call(1, "echo", json!({}))).await;
    assert_eq!(next.messages()[0]["result"]["structuredContent"], json!({}));
}

#[tokio::test]
async fn canceled_call_ends_its_stream_unanswered() {
    let (offered, started, dropped) = endless();
    let served = Served::start(offered.http_service()).await;
    let (id, other) = (served.greet().await, served.greet().await);
    let stream = waiting(&served, &id, &started).await;
    let twice = served.post(Some(&id), &call(1, "echo", json!({}))).await;
    assert_eq!((twice.status, &twice.messages()[0]["id"]), (400, &Value::Null));
    // Another client's cancellation means nothing.
    assert_eq!(served.post(Some(&other), &cancel(1)).await.status, 202);
    let still = tokio::time::timeout(Duration::from_millis(100), dropped.notified()).await;
    assert!(still.is_err());
    assert_eq!(served.post(Some(&id), &cancel(1)).await.status, 202);
    told(&dropped).await;
    let answer = read(stream).await;
    assert_eq!((answer.status, answer.messages().len()), (200, 0), "{}", answer.body);
}

#[tokio::test]
async fn deleted_session_answers_running_calls() {
    let (offered, started, dropped) = endless();
    let served = Served::start(offered.http_service()).await;
    let id = served.greet().await;
    let stream = waiting(&served, &id, &started).await;
    let session = format!("mcp-session-id: {id}\r\n");
    assert_eq!(served.ask("DELETE", &session, b"").await.status, 204);
    told(&dropped).await;
    let messages = read(stream).await.messages();
    assert_eq!((&messages[0]["id"], &messages[0]["error"]["code"]), (&json!(1), &json!(-32000)));
}

/// A call whose body comes after the end of its session.
#[tokio::test]
async fn late_body_of_a_deleted_session_is_refused() {
    let (offered, started, _dropped) = endless();
    let served = Served::start(offered.http_service()).await;
    let id = served.greet().await;
    let message = call(1, "wait", json!({})).to_string();
    let late = format!("{}content-length: {}\r\n", headers(Some(&id)), message.len());
    let mut stream = served.open("POST", &late, b"").await;
    // Until the head was read.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let session = format!("mcp-session-id: {id}\r\n");
    assert_eq!(served.ask("DELETE", &session, b"").await.status, 204);
    stream.write_all(message.as_bytes()).await.unwrap();
    let refused = tokio::select! {
        answer = read(stream) => answer.status,
        () = told(&started) => panic!("it runs"),
    };
    assert_eq!(refused, 404);
}

/// The next event of a stream; empty at its end.
async fn next_of(body: &mut HttpBody) -> String {
    let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx));
    let frame = tokio::time::timeout(PATIENCE, frame).await.unwrap_or_else(|_| panic!("no event"));
    let data = frame.and_then(|frame| frame.ok()?.into_data().ok()).unwrap_or_default();
    String::from_utf8_lossy(&data).into_owned()
}

/// A client that never reads its stream.
#[tokio::test]
async fn unread_progress_does_not_hold_up_others() {
    let steps = tool("steps", "Steps").build_with_context(|_, cx| async move {
        (1..=1_000_u64).for_each(|step| cx.emit_progress((step, 1_000)));
        Ok(json!("done"))
    });
    let alone = tool("alone", "Runs alone").exclusive().build(|_| async { Ok(json!("alone")) });
    let short = limits(|limits| {
        limits.write_time = Duration::from_millis(100);
        limits.calls = 1;
    });
    let offered = server([steps, alone]).limits(short);
    let served = Served::start(offered.http_service()).await;
    let (id, other) = (served.greet().await, served.greet().await);
    let request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", &id)
        .body(watched(1, "steps", json!({})).to_string());
    let mut body = served.service.clone().call(request.unwrap()).await.unwrap().into_body();
    // The tool has its turn before the next call.
    assert!(next_of(&mut body).await.contains(r#""progress":1,"#));
    let answer = served.post(Some(&other), &call(2, "alone", json!({}))).await;
    assert_eq!(text(&answer.messages()[0]), "alone");
    // Its place among the running calls is free again, too, and its answer is not lost.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let answer = served.post(Some(&id), &call(3, "alone", json!({}))).await;
    assert_eq!(text(&answer.messages()[0]), "alone");
    let mut last = String::new();
    loop {
        match next_of(&mut body).await {
            end if end.is_empty() => break,
            event => last = event,
        }
    }
    let last = last.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    assert_eq!(text(&serde_json::from_str(last).unwrap()), "done");
}

/// A client that opens its notification stream again and has not read the first one.
#[tokio::test]
async fn unread_stream_ends_when_it_is_replaced() {
    let offered = tools();
    let handle = offered.handle();
    let served = Served::start(offered.http_service()).await;
    let id = served.greet().await;
    let open = async || {
        let request = http::Request::get("/mcp")
            .header("host", "localhost")
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &id)
            .body(String::new());
        served.service.clone().call(request.unwrap()).await.unwrap().into_body()
    };
    let mut first = open().await;
    (0..100).for_each(|line| handle.log(oa_tools::LogLevel::Warn, line));
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut second = open().await;
    // What had been queued; the rest is for the second one alone.
    let mut queued = 0;
    while !next_of(&mut first).await.is_empty() {
        queued += 1;
    }
    assert!(queued < 100, "{queued}");
    assert!(next_of(&mut second).await.contains(&format!(r#""data":"{queued}""#)));
}

#[tokio::test]
async fn sessions_are_bounded_and_busy_ones_stay() {
    let (offered, started, _dropped) = endless();
    let few = limits(|limits| limits.sessions = 2);
    let served = Served::start(offered.limits(few).http_service()).await;
    let busy = served.greet().await;
    let message = call(1, "wait", json!({})).to_string();
    let _stream = served.open("POST", &headers(Some(&busy)), message.as_bytes()).await;
    told(&started).await;
    let idle = served.greet().await;
    let next = served.greet().await;
    let ping = request(2, "ping", json!({}));
    assert_eq!(served.post(Some(&idle), &ping).await.status, 404);
    assert_eq!(served.post(Some(&busy), &ping).await.status, 200);
    let message = call(3, "wait", json!({})).to_string();
    let _other = served.open("POST", &headers(Some(&next)), message.as_bytes()).await;
    told(&started).await;
    let refused = served.post(None, &hello(0)).await;
    assert_eq!(refused.status, 503);
    assert_eq!(served.service.sessions(), 2);
}

#[tokio::test]
async fn an_idle_session_ends() {
    let short = limits(|limits| limits.session_idle = Duration::from_millis(300));
    let served = Served::start(tools().limits(short).http_service()).await;
    let id = served.greet().await;
    let ping = request(2, "ping", json!({}));
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(served.post(Some(&id), &ping).await.status, 404);
    assert_eq!(served.service.sessions(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_many_clients_run_at_once() {
    let served = Arc::new(Served::start(tools().http_service()).await);
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..20 {
        let served = Arc::clone(&served);
        clients.spawn(async move {
            let id = served.greet().await;
            for number in 0..5 {
                let said = format!("{client} {number}");
                let answer =
                    served.post(Some(&id), &call(1, "echo", json!({ "text": said }))).await;
                assert_eq!(text(&answer.messages()[0]), said);
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert_eq!(served.service.sessions(), 20);
}

#[test]
fn service_has_the_bounds_of_axum() {
    fn fits<S>(_: &S)
    where
        S: Service<http::Request<String>, Error = std::convert::Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        S::Response: Send,
    {
    }
    fits(&tools().http_service());
}

/// As Copilot Studio reads no events, and the client of ElevenLabs nothing else.
#[tokio::test]
async fn clients_may_accept_only_one_form() {
    let steps = tool("steps", "Takes steps").build_with_context(|_, cx| async move {
        cx.emit_progress((1, 2));
        Ok(json!("done"))
    });
    let served = Served::start(server([steps]).http_service()).await;
    for (accept, kind) in
        [("application/json", "application/json"), ("text/event-stream", "text/event-stream")]
    {
        let headers = format!("accept: {accept}\r\ncontent-type: application/json\r\n");
        let greeted = served.ask("POST", &headers, hello(0).to_string().as_bytes()).await;
        let session = greeted.header("mcp-session-id").unwrap();
        let headers = format!("{headers}mcp-session-id: {session}\r\n");
        let ask = async |message: Value| {
            served.ask("POST", &headers, message.to_string().as_bytes()).await
        };
        let listed = ask(request(1, "tools/list", json!({}))).await;
        let called = ask(watched(2, "steps", json!({}))).await;
        let both = ask(json!([request(3, "ping", json!({})), call(4, "steps", json!({}))])).await;
        for answer in [&greeted, &listed, &called, &both] {
            assert_eq!(answer.status, 200, "{}", answer.body);
            assert_eq!(answer.header("content-type").as_deref(), Some(kind), "{accept}");
        }
        assert_eq!(listed.messages()[0]["result"]["tools"][0]["name"], "steps");
        let messages = called.messages();
        assert_eq!(text(&messages[messages.len() - 1]), "done");
        // Progress cannot be told in one JSON message.
        assert_eq!(messages.len(), if accept == "application/json" { 1 } else { 2 });
        let ids = |answer: &Value| answer["id"].as_i64();
        let mut both: Vec<_> = match &both.messages()[..] {
            [Value::Array(batch)] => batch.iter().map(ids).collect(),
            events => events.iter().map(ids).collect(),
        };
        both.sort_unstable();
        assert_eq!(both, [Some(3), Some(4)]);
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let noted = served.ask("POST", &headers, initialized.as_bytes()).await;
        assert_eq!((noted.status, &*noted.body), (202, ""));
    }
}
