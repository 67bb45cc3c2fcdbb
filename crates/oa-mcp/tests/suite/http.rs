//! Servers over streamable HTTP, on real sockets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_mcp::{Connected, Error, ErrorKind, McpServer, Servers};
use oa_tools::{Emission, Progress, ToolContext};
use oa_transport::ApiKey;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{CANARY, call, call_with, eventually, listening, with_limits};

/// A request as the server sees it.
pub(crate) struct Asked {
    pub(crate) method: String,
    head: String,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    }

    /// The path and the query, in lower case.
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn what(&self) -> &str {
        self.body.pointer("/params/arguments/what").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Its answer: the bytes of a response, after which the connection ends or stays silent.
pub(crate) enum Answer {
    Bytes(String),
    /// Bytes that are sent only after other tasks had a thousand turns.
    Late(String),
    Silence(String),
}

pub(crate) fn status(status: &str, kind: &str, body: &str) -> Answer {
    Answer::Bytes(format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}

pub(crate) fn result(asked: &Asked, result: &Value) -> Answer {
    let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result });
    status("200 OK", "application/json", &body.to_string())
}

pub(crate) fn text(asked: &Asked, text: &str) -> Answer {
    result(asked, &json!({ "content": [{ "type": "text", "text": text }] }))
}

pub(crate) fn events(events: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}"
    )
}

pub(crate) fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// Starts a server: what is not answered by `script` is answered well.
pub(crate) async fn serve(
    script: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static,
) -> (McpServer, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap_or_else(|error| panic!("{error}"));
    let port = listener.local_addr().map_or(0, |address| address.port());
    let (script, seen) = (Arc::new(script), Arc::new(Mutex::new(Vec::new())));
    let log = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (script, log) = (Arc::clone(&script), Arc::clone(&log));
            tokio::spawn(async move { converse(stream, &*script, &log).await });
        }
    });
    let server =
        McpServer::http("s", format!("http://127.0.0.1:{port}/mcp?key=query-{CANARY}")).required();
    (server.limits(with_limits(|limits| limits.message_bytes = 100_000)), seen)
}

/// The port of a server that was started here.
pub(crate) fn port_of(server: &McpServer) -> u16 {
    let shown = format!("{server:?}");
    let port = shown.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
    port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("{shown}"))
}

async fn converse(
    mut stream: TcpStream,
    script: &(dyn Fn(&Asked) -> Option<Answer> + Send + Sync),
    log: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut read = Vec::new();
    let head = loop {
        let mut chunk = [0; 4_096];
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&chunk[..count]);
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok())
        .unwrap_or(0);
    while read.len() < head + length {
        let mut chunk = [0; 4_096];
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&chunk[..count]);
    }
    let asked = Asked {
        method: text.split(' ').next().unwrap_or_default().to_uppercase(),
        body: serde_json::from_slice(&read[head..]).unwrap_or_default(),
        head: text,
    };
    let name = asked.body["method"].as_str().unwrap_or_default().to_owned();
    log.lock().ok()?.push(format!("{} {name}{}", asked.method, asked.what()).trim().to_owned());
    let answer = script(&asked).unwrap_or_else(|| well(&asked));
    let (Answer::Bytes(bytes) | Answer::Late(bytes) | Answer::Silence(bytes)) = &answer;
    if let Answer::Late(_) = answer {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        log.lock().ok()?.push("late".to_owned());
    }
    stream.write_all(bytes.as_bytes()).await.ok()?;
    if let Answer::Silence(_) = answer {
        // Until the client goes away.
        let _ = stream.read(&mut [0; 1]).await;
        log.lock().ok()?.push("gone".to_owned());
    }
    Some(())
}

fn well(asked: &Asked) -> Answer {
    match (&*asked.method, asked.body["method"].as_str().unwrap_or_default()) {
        ("POST", "initialize") => {
            let hello = json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "1" },
            });
            let body =
                json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": hello }).to_string();
            Answer::Bytes(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: one\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            ))
        }
        ("POST", "tools/list") => result(
            asked,
            &json!({ "tools": [{ "name": "do", "inputSchema": { "type": "object" } }] }),
        ),
        ("POST", "tools/call") => text(asked, asked.what()),
        ("POST", _) => status("202 Accepted", "text/plain", ""),
        _ => status("405 Method Not Allowed", "text/plain", ""),
    }
}

pub(crate) async fn connect(server: McpServer) -> Result<Connected, Error> {
    Servers::new().add(server).connect().await
}

#[tokio::test]
async fn session_follows_the_protocol() {
    let (server, seen) = serve(|asked| {
        let is_first = asked.body["method"] == "initialize";
        let has_session = asked.header("mcp-session-id") == Some("one");
        let has_version = asked.header("mcp-protocol-version") == Some("2025-06-18");
        assert_eq!((has_session, has_version), (!is_first, !is_first), "{}", asked.head);
        assert_eq!(asked.header("authorization"), Some(&*format!("bearer {CANARY}")));
        assert_eq!(asked.header("x-team"), Some("tools"));
        None
    })
    .await;
    let server = server.bearer(ApiKey::new(CANARY).unwrap()).header("X-Team", "tools").unwrap();
    assert!(!format!("{server:?}").contains(CANARY));
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "hello").await, Ok(json!("hello")));
    connected.close().await;
    let mut seen = seen.lock().unwrap().clone();
    // The stream for notices is asked for beside the list.
    seen.retain(|line| line != "GET");
    let expected = [
        "POST initialize",
        "POST notifications/initialized",
        "POST tools/list",
        "POST tools/callhello",
        "DELETE",
    ];
    assert_eq!(seen, expected);
}

/// A server may refuse a request that overtakes the message on another connection.
#[tokio::test]
async fn first_request_waits_for_initialized() {
    let (server, seen) = serve(|asked| {
        let accepted = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let is_initialized = asked.body["method"] == "notifications/initialized";
        is_initialized.then(|| Answer::Late(accepted.to_owned()))
    })
    .await;
    let connected = connect(server).await.unwrap();
    let mut seen = seen.lock().unwrap().clone();
    seen.retain(|line| line != "GET");
    let expected = ["POST initialize", "POST notifications/initialized", "late", "POST tools/list"];
    assert_eq!(seen, expected);
    connected.close().await;
}

#[tokio::test]
async fn panic_of_the_key_callback_fails_the_call() {
    async fn no_key(_: String) -> Option<ApiKey> {
        panic!("no keyring for {CANARY}")
    }
    let (server, _) = serve(|asked| {
        (asked.what() == "locked").then(|| status("401 Unauthorized", "text/plain", ""))
    })
    .await;
    let server = server.bearer(ApiKey::new(CANARY).unwrap()).on_unauthorized(no_key);
    let connected = connect(server).await.unwrap();
    let expected = "s: the callback on_unauthorized panicked: no keyring for ****";
    assert_eq!(call(&connected, "locked").await, Err(expected.to_owned()));
    assert_eq!(call(&connected, "next").await, Ok(json!("next")));
    connected.close().await;
}

#[tokio::test]
async fn event_stream_carries_progress_and_answer() {
    let (server, _) = serve(|asked| {
        (asked.what() == "events").then(|| {
            let token = &asked.body["params"]["_meta"]["progressToken"];
            let progress = |n: u32| event(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": n } }));
            let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": { "content": [{ "type": "text", "text": "streamed" }] } });
            Answer::Bytes(events(&format!("{}{}{}", progress(1), progress(2), event(&answer))))
        })
    })
    .await;
    let connected = connect(server).await.unwrap();
    let (cx, seen) = listening();
    assert_eq!(call_with(&connected, json!({ "what": "events" }), cx).await, Ok(json!("streamed")));
    let step = |n| Emission::Progress(Progress::new(n, None));
    assert_eq!(*seen.lock().unwrap(), [step(1), step(2)]);
    connected.close().await;
}

#[tokio::test]
async fn errors_have_status_and_masked_excerpt() {
    let (server, _) = serve(|asked| {
        Some(match asked.what() {
            "403" => {
                status("403 Forbidden", "text/plain", &format!("the key query-{CANARY} may not"))
            }
            "429" => status("429 Too Many Requests", "text/plain", "slowly"),
            "500" => {
                status("500 Internal Server Error", "text/html", &"<b>oops</b>".repeat(10_000))
            }
            "html" => status("200 OK", "text/html", "<html>Log in first</html>"),
            "nonsense" => status("200 OK", "application/json", "[1, 2]"),
            "large" => status("200 OK", "application/json", &"x".repeat(200_000)),
            "large event" => Answer::Bytes(events(&format!("data: {}\n\n", "x".repeat(200_000)))),
            "no answer" => Answer::Bytes(events(": hello\n\n")),
            _ => return None,
        })
    })
    .await;
    let connected = connect(server).await.unwrap();
    let failed = async |what: &str| call(&connected, what).await.unwrap_err();
    assert_eq!(
        failed("403").await,
        "s: the server answered with status 403 Forbidden: the key **** may not"
    );
    assert_eq!(
        failed("429").await,
        "s: the server answered with status 429 Too Many Requests: slowly"
    );
    let oops = failed("500").await;
    assert!(oops.contains("500 Internal Server Error: <b>oops</b>") && oops.len() < 500, "{oops}");
    assert_eq!(
        failed("html").await,
        "s: the answer is neither JSON nor an event stream (status 200): <html>Log in first</html>"
    );
    assert_eq!(failed("nonsense").await, "s: the answer is not a protocol message: [1, 2]");
    assert_eq!(failed("large").await, "s: a message from the server is longer than 100000 bytes");
    assert_eq!(
        failed("large event").await,
        "s: a message from the server is longer than 100000 bytes"
    );
    assert_eq!(failed("no answer").await, "s: the server ended its response without the answer");
    assert_eq!(call(&connected, "fine").await, Ok(json!("fine")));
    connected.close().await;
}

#[tokio::test]
async fn unreachable_server_is_a_connect_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let error = connect(McpServer::http("s", url).required()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().starts_with("s: the server cannot be reached: "), "{error}");
    let (server, _) =
        serve(|_| Some(status("401 Unauthorized", "text/plain", "who are you?"))).await;
    let error = connect(server).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Connect, Some(401)));
    assert_eq!(
        error.to_string(),
        "s: the server answered with status 401 Unauthorized: who are you?"
    );
}

#[tokio::test]
async fn server_is_used_again_when_it_returns() {
    let is_gone = Arc::new(Mutex::new(false));
    let gone = Arc::clone(&is_gone);
    let (server, seen) = serve(move |_| {
        let is_gone = *gone.lock().unwrap();
        // As a server that is down does: the connection ends without an answer.
        if is_gone {
            return Some(Answer::Bytes(String::new()));
        }
        None
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "here").await, Ok(json!("here")));
    *is_gone.lock().unwrap() = true;
    let start = std::time::Instant::now();
    let gone = call(&connected, "gone").await.unwrap_err();
    assert!(gone.starts_with("s: the server cannot be reached: "), "{gone}");
    assert!(start.elapsed() < Duration::from_secs(10));
    *is_gone.lock().unwrap() = false;
    assert_eq!(call(&connected, "back").await, Ok(json!("back")));
    let calls = |what: &str| seen.lock().unwrap().iter().filter(|line| line.contains(what)).count();
    assert_eq!((calls("callhere"), calls("callback")), (1, 1));
    connected.close().await;
}

#[tokio::test]
async fn question_belongs_to_its_streams_call() {
    let answers = Arc::new(Mutex::new(None));
    let heard = Arc::clone(&answers);
    let (server, seen) = serve(move |asked| {
        if asked.what() == "silence" {
            return Some(Answer::Silence(events(": wait\n\n")));
        }
        if asked.what() == "ask" {
            let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": { "message": "Who?", "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } } } });
            return Some(Answer::Silence(events(&event(&question))));
        }
        if asked.body.get("method").is_none() && asked.body["id"] == "q" {
            *heard.lock().unwrap() = Some(asked.body["result"].clone());
            return Some(status("202 Accepted", "text/plain", ""));
        }
        None
    })
    .await;
    let server = server.on_elicitation(|_, cx| async move {
        assert_eq!(cx.call_id(), "second", "not that of the call which runs beside it");
        oa_mcp::ElicitationAnswer::Accept(json!({ "name": "Ada" }))
    });
    let connected = connect(server).await.unwrap();
    let call_as = async |id: &str, what: &str| {
        let tool = crate::support::tool(&connected, "s__do").unwrap();
        tool.call(json!({ "what": what }), ToolContext::new(id, "s__do")).await.map(drop)
    };
    let both = async { tokio::join!(call_as("first", "silence"), call_as("second", "ask")) };
    let answered = async {
        while answers.lock().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = both => panic!("neither call is answered"),
        () = answered => {}
        () = tokio::time::sleep(Duration::from_secs(10)) => panic!("no answer: {:?}", seen.lock()),
    }
    let expected = json!({ "action": "accept", "content": { "name": "Ada" } });
    assert_eq!(answers.lock().unwrap().take(), Some(expected));
    connected.close().await;
}

#[tokio::test]
async fn unauthorized_retries_with_another_key() {
    let (server, seen) = serve(|asked| {
        let is_new = asked.header("authorization") == Some("bearer fresh-key-0123456789");
        (!is_new).then(|| {
            Answer::Bytes("HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm=\"tools\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned())
        })
    })
    .await;
    let server = server.bearer(ApiKey::new("stale-key-0123456789").unwrap()).on_unauthorized(
        |challenge| async move {
            assert_eq!(challenge, "Bearer realm=\"tools\"");
            ApiKey::new("fresh-key-0123456789").ok()
        },
    );
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "hello").await, Ok(json!("hello")));
    connected.close().await;
    // Once refused; the new key is kept.
    assert_eq!(seen.lock().unwrap().iter().filter(|line| *line == "POST initialize").count(), 2);
    assert_eq!(seen.lock().unwrap().iter().filter(|line| *line == "POST tools/list").count(), 1);
}

/// It is not in the configuration, but no less a secret.
#[tokio::test]
async fn key_of_the_callback_is_masked() {
    const FRESH: &str = "fresh-key-0123456789";
    let (server, _) = serve(|asked| {
        if asked.header("authorization") != Some("bearer fresh-key-0123456789") {
            return Some(status("401 Unauthorized", "text/plain", ""));
        }
        let error = json!({ "code": -32000, "message": format!("bad key {FRESH}") });
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error }).to_string();
        match asked.what() {
            "error" => Some(status("200 OK", "application/json", &body)),
            _ => None,
        }
    })
    .await;
    let server = server.on_unauthorized(|_| async { ApiKey::new(FRESH).ok() });
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "error").await, Err("bad key **** (code -32000)".to_owned()));
    connected.close().await;
}

#[tokio::test]
async fn expired_session_repeats_the_call_once() {
    let forgets = Arc::new(Mutex::new(true));
    let (server, seen) = serve(move |asked| {
        let is_forgotten = asked.what() == "again" && std::mem::take(&mut *forgets.lock().unwrap());
        let always = asked.what() == "never";
        (is_forgotten || always).then(|| status("404 Not Found", "text/plain", ""))
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "again").await, Ok(json!("again")));
    assert_eq!(seen.lock().unwrap().iter().filter(|line| *line == "POST initialize").count(), 2);
    assert_eq!(
        seen.lock().unwrap().iter().filter(|line| *line == "POST tools/callagain").count(),
        2
    );
    assert_eq!(
        call(&connected, "never").await,
        Err("s: the server has forgotten the session (status 404)".to_owned())
    );
    assert_eq!(
        seen.lock().unwrap().iter().filter(|line| *line == "POST tools/callnever").count(),
        2
    );
    connected.close().await;
}

/// As behind a load balancer without sticky sessions. Many servers in TypeScript answer with status 400.
#[tokio::test]
async fn servers_may_forget_many_sessions() {
    let forgotten = Mutex::new(std::collections::HashSet::new());
    let (server, seen) = serve(move |asked| {
        let error = |message: &str| {
            let body = json!({ "error": { "code": -32000, "message": message }, "id": null });
            status("400 Bad Request", "application/json", &body.to_string())
        };
        let what = asked.what().to_owned();
        let is_call = asked.body["method"] == "tools/call";
        if what == "bad" {
            return Some(error("bad arguments"));
        }
        let is_first = is_call && forgotten.lock().unwrap().insert(what.clone());
        let by_status = || status("404 Not Found", "text/plain", "");
        let by_name = || error("Bad Request: No valid session ID provided");
        is_first.then(|| match &*what {
            "0" | "1" => by_status(),
            "2" => error("Bad Request: Server not initialized"),
            _ => by_name(),
        })
    })
    .await;
    let connected = connect(server).await.unwrap();
    for number in 0..8 {
        let what = number.to_string();
        assert_eq!(call(&connected, &what).await, Ok(json!(what)));
    }
    // An error about the request is no reason to repeat it.
    let refused = call(&connected, "bad").await.unwrap_err();
    assert!(refused.contains("bad arguments"), "{refused}");
    assert_eq!(seen.lock().unwrap().iter().filter(|line| line.ends_with("callbad")).count(), 1);
    connected.close().await;
}

/// A server should end the stream of an answer, but need not.
#[tokio::test]
async fn streams_left_open_are_closed() {
    let (server, seen) = serve(|asked| {
        let content = json!([{ "type": "text", "text": "done" }]);
        let answer =
            json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": { "content": content } });
        let is_call = asked.body["method"] == "tools/call";
        is_call.then(|| Answer::Silence(events(&event(&answer))))
    })
    .await;
    let connected = connect(server).await.unwrap();
    for _ in 0..4 {
        assert_eq!(call(&connected, "open").await, Ok(json!("done")));
    }
    let gone = || seen.lock().unwrap().iter().filter(|line| *line == "gone").count();
    assert!(eventually(|| gone() == 4).await, "{}", gone());
    connected.close().await;
}

/// Calls that run at once, as those of one answer do.
#[tokio::test]
async fn expired_session_repeats_parallel_calls() {
    let sessions = Arc::new(Mutex::new(0));
    let (server, seen) = serve(move |asked| {
        let mut sessions = sessions.lock().unwrap();
        if asked.body["method"] == "initialize" {
            *sessions += 1;
            let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "web", "version": "1" } });
            let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": hello }).to_string();
            let length = body.len();
            return Some(Answer::Bytes(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s{sessions}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )));
        }
        let is_old = asked.header("mcp-session-id") != Some("s2");
        let is_call = asked.body["method"] == "tools/call";
        (is_old && is_call).then(|| status("404 Not Found", "text/plain", ""))
    })
    .await;
    let connected = Arc::new(connect(server).await.unwrap());
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..8 {
        let connected = Arc::clone(&connected);
        calls.spawn(async move { call(&connected, &n.to_string()).await.is_ok() });
    }
    assert_eq!(calls.join_all().await, [true; 8]);
    let seen = seen.lock().unwrap();
    let count = |what: &str| seen.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!(count("POST initialize"), 2);
    assert!(count("POST tools/call") <= 16, "{seen:?}");
}

#[tokio::test]
async fn dropped_call_is_canceled_on_the_server() {
    let (server, seen) =
        serve(|asked| (asked.what() == "silence").then(|| Answer::Silence(events(": wait\n\n"))))
            .await;
    let connected = connect(server).await.unwrap();
    let cx = ToolContext::new("c", "s__do");
    let waiting = call_with(&connected, json!({ "what": "silence" }), cx);
    assert!(tokio::time::timeout(Duration::from_millis(100), waiting).await.is_err());
    let has = |line: &str| seen.lock().is_ok_and(|seen| seen.iter().any(|other| other == line));
    assert!(eventually(|| has("gone") && has("POST notifications/cancelled")).await, "{seen:?}");
    assert_eq!(call(&connected, "next").await, Ok(json!("next")));
    connected.close().await;
}

#[tokio::test]
async fn list_changes_arrive_on_the_get_stream() {
    let lists = Arc::new(Mutex::new(0));
    let (server, _) = serve(move |asked| {
        if asked.method == "GET" {
            let notice = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            return Some(Answer::Silence(events(&event(&notice))));
        }
        if asked.body["method"] != "tools/list" {
            return None;
        }
        let mut count = lists.lock().unwrap();
        *count += 1;
        let name = if *count == 1 { "do" } else { "grown" };
        Some(result(
            asked,
            &json!({ "tools": [{ "name": name, "inputSchema": { "type": "object" } }] }),
        ))
    })
    .await;
    let connected = connect(server).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), connected.changed()).await.unwrap();
    assert_eq!(connected.tools()[0].name(), "s__grown");
    connected.close().await;
}
