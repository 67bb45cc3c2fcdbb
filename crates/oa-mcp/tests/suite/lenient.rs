//! Servers that answer in a way of their own.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use oa_mcp::ErrorKind;
use oa_tools::{Emission, Progress};
use serde_json::{Value, json};

use crate::http::{Answer, connect, event, events, result, serve, status};
use crate::support::{call, call_with, listening};

/// As servers in Go, those built on `rmcp` and others say it.
#[tokio::test]
async fn lost_sessions_have_many_statuses() {
    let seen_calls = Mutex::new(HashSet::new());
    let (server, seen) = serve(move |asked| {
        let what = asked.what().to_owned();
        if what.is_empty() || what != "disk" && !seen_calls.lock().unwrap().insert(what.clone()) {
            return None;
        }
        let gone = json!({ "error": { "code": -32001, "message": "Unknown session" }, "id": null });
        Some(match &*what {
            "go" => status("400 Bad Request", "text/plain; charset=utf-8", "Invalid session ID\n"),
            "rust" => status("401 Unauthorized", "text/plain", "Unauthorized: Session not found"),
            "busy" => status("503 Service Unavailable", "application/json", &gone.to_string()),
            _ => status("503 Service Unavailable", "text/plain", "no disk for this session"),
        })
    })
    .await;
    let keys = Arc::new(AtomicUsize::new(0));
    let asked_for = Arc::clone(&keys);
    let server = server.on_unauthorized(move |_| {
        asked_for.fetch_add(1, Ordering::Relaxed);
        async { None }
    });
    let connected = connect(server).await.unwrap();
    for what in ["go", "rust", "busy"] {
        assert_eq!(call(&connected, what).await, Ok(json!(what)));
    }
    // This one may have run.
    let failed = call(&connected, "disk").await.unwrap_err();
    assert!(failed.contains("503") && failed.contains("no disk"), "{failed}");
    assert_eq!(keys.load(Ordering::Relaxed), 0, "another key would not help");
    connected.close().await;
    let seen = seen.lock().unwrap();
    let count = |what: &str| seen.iter().filter(|line| *line == what).count();
    assert_eq!((count("POST initialize"), count("POST tools/calldisk")), (4, 1));
}

/// With status 200 and the id of the call, as an error of the call itself would come. A ping tells them apart.
#[tokio::test]
async fn lost_session_may_have_status_200() {
    let lost = Arc::new(Mutex::new(HashSet::new()));
    let (server, seen) = serve(move |asked| {
        let method = asked.body["method"].as_str().unwrap_or_default();
        let mut lost = lost.lock().ok()?;
        let error = match (method, asked.what()) {
            ("initialize", _) => {
                lost.remove("now");
                return None;
            }
            ("ping", _) if lost.contains("now") => {
                json!({ "code": -32600, "message": "Unknown session id 'one' for 'ping'" })
            }
            ("ping", _) => return Some(result(asked, &json!({}))),
            // Of a tool with sessions of its own.
            (_, "browser") => json!({ "code": -32000, "message": "Session b1 not found" }),
            (_, what) if !what.is_empty() && lost.insert(what.to_owned()) => {
                lost.insert("now".to_owned());
                json!({ "code": -32600, "message": "Unknown session id 'one' for 'tools/call'" })
            }
            _ => return None,
        };
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
        Some(match asked.what() {
            "streamed" => Answer::Bytes(events(&event(&body))),
            _ => status("200 OK", "application/json", &body.to_string()),
        })
    })
    .await;
    let connected = connect(server).await.unwrap();
    for what in ["plain", "streamed"] {
        assert_eq!(call(&connected, what).await, Ok(json!(what)));
    }
    let failed = call(&connected, "browser").await.unwrap_err();
    assert_eq!(failed, "Session b1 not found (code -32000)");
    connected.close().await;
    let seen = seen.lock().unwrap();
    let count = |what: &str| seen.iter().filter(|line| *line == what).count();
    assert_eq!((count("POST initialize"), count("POST tools/callbrowser")), (3, 1));
}

#[tokio::test]
async fn answers_need_no_content_type() {
    let (server, _) = serve(|asked| {
        let content = json!([{ "type": "text", "text": "read" }]);
        let answer =
            json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": { "content": content } });
        let answer = answer.to_string();
        let length = answer.len();
        match asked.what() {
            "none" => Some(Answer::Bytes(format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
            ))),
            "plain" => Some(status("200 OK", "text/plain; charset=utf-8", &answer)),
            _ => None,
        }
    })
    .await;
    let connected = connect(server).await.unwrap();
    for what in ["none", "plain"] {
        assert_eq!(call(&connected, what).await, Ok(json!("read")), "{what}");
    }
    connected.close().await;
}

#[tokio::test]
async fn refused_notification_is_a_warning() {
    let (server, _) = serve(|asked| {
        let is_it = asked.body["method"] == "notifications/initialized";
        is_it.then(|| status("400 Bad Request", "text/plain", "params are missing"))
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "works").await, Ok(json!("works")));
    let expected = "the server refused notifications/initialized: the server answered with status 400 Bad Request: params are missing";
    assert_eq!(connected.connection("s").unwrap().warnings(), [expected]);
    connected.close().await;
}

#[tokio::test]
async fn version_named_in_a_refusal_is_used() {
    let (server, seen) = serve(|asked| {
        let error = json!({
            "code": -32602,
            "message": "Unsupported protocol version",
            "data": { "supported": ["2024-11-05", "2025-06-18"], "requested": "2025-11-25" },
        });
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
        let version = asked.body.pointer("/params/protocolVersion");
        let is_refused =
            asked.body["method"] == "initialize" && version != Some(&json!("2025-06-18"));
        is_refused.then(|| status("200 OK", "application/json", &body.to_string()))
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "works").await, Ok(json!("works")));
    connected.close().await;
    let seen = seen.lock().unwrap();
    let count = |what: &str| seen.iter().filter(|line| *line == what).count();
    assert_eq!((count("POST initialize"), count("POST server/discover")), (2, 0));
}

/// Its first refusal is the error.
#[tokio::test]
async fn version_is_named_only_once() {
    let (server, seen) = serve(|asked| {
        let error = json!({ "code": -32602, "message": "only 2024-11-05, or so" });
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
        let begins = asked.body["method"] == "initialize";
        begins.then(|| status("200 OK", "application/json", &body.to_string())).or_else(|| {
            (asked.body["method"] == "server/discover").then(|| result(asked, &json!({})))
        })
    })
    .await;
    let error = connect(server).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Connect, Some(-32602)));
    assert_eq!(error.to_string(), "s: only 2024-11-05, or so");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().filter(|line| *line == "POST initialize").count(), 2);
}

/// Of a server in Go that checks the version before it reads the message.
#[tokio::test]
async fn refusal_of_a_version_may_be_plain_text() {
    let (server, seen) = serve(|asked| {
        let version = asked.body.pointer("/params/protocolVersion")?;
        let why = "Bad Request: Unsupported protocol version (supported versions: 2025-06-18, 2025-03-26, 2024-11-05)";
        (version != "2025-06-18").then(|| status("400 Bad Request", "text/plain", why))
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "works").await, Ok(json!("works")));
    connected.close().await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().filter(|line| *line == "POST initialize").count(), 2);
}

/// As servers do that do not read the token of the call.
#[tokio::test]
async fn progress_on_a_stream_is_of_its_call() {
    let (server, _) = serve(|asked| {
        (asked.what() == "events").then(|| {
            let progress = |params: Value| event(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
            let own = progress(json!({ "progressToken": "tool-call-7", "progress": 1 }));
            let none = progress(json!({ "progress": 2 }));
            let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": { "content": [] } });
            Answer::Bytes(events(&format!("{own}{none}{}", event(&answer))))
        })
    })
    .await;
    let connected = connect(server).await.unwrap();
    let (cx, seen) = listening();
    assert_eq!(call_with(&connected, json!({ "what": "events" }), cx).await, Ok(json!("")));
    let step = |n| Emission::Progress(Progress::new(n, None));
    assert_eq!(*seen.lock().unwrap(), [step(1), step(2)]);
    assert_eq!(connected.connection("s").unwrap().ignored().progress, 0);
    connected.close().await;
}
