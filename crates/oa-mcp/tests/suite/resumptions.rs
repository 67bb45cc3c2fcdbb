//! Streams over real sockets that break off before the answer, and their resumption.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use oa_tools::{Emission, Progress};
use serde_json::{Value, json};

use crate::http::{Answer, connect, event, events, result, serve};
use crate::support::{call, call_with, eventually, listening, tool};

const BROKEN: &str = "the server's notification stream broke off: until the next call, changes to its tools will be missed";

/// A response that ends in the middle of what it has announced, as when a server dies or a proxy gives up.
fn cut(events: &str) -> Answer {
    Answer::Bytes(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n{events}"
    ))
}

fn numbered(id: usize, message: &Value) -> String {
    format!("id: e{id}\nretry: 5\n{}", event(message))
}

fn progress(token: &Value, step: usize) -> Value {
    let params = json!({ "progressToken": token, "progress": step });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

fn answer(id: &Value, text: &str) -> Value {
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Each connection is cut in the middle of an event. The call goes on after the last whole one, and its progress comes once
/// and in order; the call itself is sent once.
#[tokio::test]
async fn cut_stream_resumes_after_whole_event() {
    const STEPS: usize = 8;
    let asked_for = Arc::new(Mutex::new((Value::Null, Value::Null)));
    let (server, seen) = serve(move |asked| {
        let mut call = asked_for.lock().ok()?;
        let done = match asked.method.as_str() {
            "POST" if asked.what() == "long" => {
                let token = asked.body["params"]["_meta"]["progressToken"].clone();
                *call = (asked.body["id"].clone(), token);
                0
            }
            "GET" => {
                let last = asked.header("last-event-id")?;
                assert_eq!(asked.header("mcp-session-id"), Some("one"), "it is the same session");
                assert_eq!(asked.header("accept"), Some("text/event-stream"));
                last.strip_prefix('e')?.parse::<usize>().ok()?
            }
            _ => return None,
        };
        let (id, token) = &*call;
        if done == STEPS {
            return Some(Answer::Bytes(events(&event(&answer(id, "all of it")))));
        }
        let whole = numbered(done + 1, &progress(token, done + 1));
        let mut half = numbered(done + 2, &progress(token, done + 2));
        // At another place each time: in the id, in the name, in the data, before the blank line.
        half.truncate((done * 13 + 3).min(half.len() - 1));
        Some(cut(&(whole + &half)))
    })
    .await;
    let connected = connect(server).await.unwrap();
    let (cx, told) = listening();
    let said = call_with(&connected, json!({ "what": "long" }), cx).await;
    assert_eq!(said, Ok(json!("all of it")));
    let steps: Vec<_> =
        (1..=STEPS as u64).map(|step| Emission::Progress(Progress::new(step, None))).collect();
    assert_eq!(*told.lock().unwrap(), steps);
    let calls = seen.lock().unwrap().iter().filter(|line| line.contains("tools/call")).count();
    assert_eq!(calls, 1);
    connected.close().await;
}

/// A server that closes the connection on purpose, as the version 2025-11-25 has it: an event without data, whose id is where
/// the client goes on.
#[tokio::test]
async fn closed_stream_is_resumed_for_the_answer() {
    let open = Arc::new(Mutex::new(Value::Null));
    let (server, _) = serve(move |asked| match (&*asked.method, asked.what()) {
        ("POST", "later") => {
            *open.lock().unwrap() = asked.body["id"].clone();
            Some(Answer::Bytes(events("id: e7\nretry: 10\ndata:\n\n")))
        }
        ("GET", _) if asked.header("last-event-id") == Some("e7") => {
            let id = open.lock().unwrap().clone();
            Some(Answer::Bytes(events(&event(&answer(&id, "resumed")))))
        }
        // Without an id, nothing can be taken up.
        ("POST", "broken") => Some(Answer::Bytes(events("data: {\"json"))),
        ("POST", "cut") => Some(cut(&event(&progress(&Value::Null, 1)))),
        _ => None,
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "later").await, Ok(json!("resumed")));
    assert_eq!(
        call(&connected, "broken").await,
        Err("s: the server ended its response without the answer".to_owned())
    );
    let broke_off = call(&connected, "cut").await.unwrap_err();
    assert!(broke_off.starts_with("s: the response broke off: "), "{broke_off}");
    assert_eq!(call(&connected, "next").await, Ok(json!("next")));
    connected.close().await;
}

/// The standard drops an event without its blank line, but servers that forget it at the end mean what they say. An
/// event that was cut is still resumed.
#[tokio::test]
async fn last_event_needs_no_blank_line() {
    let open = Arc::new(Mutex::new(Value::Null));
    let (server, seen) = serve(move |asked| {
        let id = &asked.body["id"];
        match (&*asked.method, asked.what()) {
            ("POST", "line") => {
                Some(Answer::Bytes(events(&format!("data: {}\n", answer(id, "whole")))))
            }
            ("POST", "no line") => {
                let data =
                    answer(id, "whole").to_string().replace(",\"result", ",\ndata: \"result");
                Some(Answer::Bytes(events(&format!("id: e1\nevent: message\ndata: {data}"))))
            }
            ("POST", "cut") => {
                *open.lock().ok()? = id.clone();
                let mut half = numbered(2, &answer(id, "half"));
                half.truncate(half.len() - 9);
                Some(Answer::Bytes(events(&format!("{}{half}", numbered(1, &progress(id, 1))))))
            }
            ("GET", _) => {
                assert_eq!(asked.header("last-event-id")?, "e1");
                let id = open.lock().ok()?.clone();
                Some(Answer::Bytes(events(&event(&answer(&id, "resumed")))))
            }
            _ => None,
        }
    })
    .await;
    let connected = connect(server).await.unwrap();
    seen.lock().unwrap().clear();
    for (what, said) in [("line", "whole"), ("no line", "whole"), ("cut", "resumed")] {
        assert_eq!(call(&connected, what).await, Ok(json!(said)), "{what}");
    }
    assert_eq!(seen.lock().unwrap().iter().filter(|line| *line == "GET").count(), 1);
    connected.close().await;
}

/// A server may let a client come back again and again until a long call has its answer.
#[tokio::test]
async fn polls_go_on_without_new_events() {
    let (open, polls) = (Arc::new(Mutex::new(Value::Null)), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&polls);
    let (server, _) = serve(move |asked| match (&*asked.method, asked.what()) {
        ("POST", "long") => {
            *open.lock().ok()? = asked.body["id"].clone();
            Some(Answer::Bytes(events("id: e1\nretry: 5\ndata:\n\n")))
        }
        ("GET", _) if asked.header("last-event-id") == Some("e1") => {
            Some(Answer::Bytes(match count.fetch_add(1, Ordering::Relaxed) {
                0..9 => events(": not yet\n\n"),
                _ => events(&event(&answer(&*open.lock().ok()?, "at last"))),
            }))
        }
        _ => None,
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "long").await, Ok(json!("at last")));
    assert_eq!(polls.load(Ordering::Relaxed), 10);
    connected.close().await;
}

/// A server that is unreachable for a moment is tried again. One that makes no progress, or refuses, fails the call.
#[tokio::test]
async fn resumption_stops_after_three_attempts() {
    let (open, tries) = (Arc::new(Mutex::new(Value::Null)), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&tries);
    let (server, _) = serve(move |asked| {
        if asked.method == "POST" && ["away", "proxy", "stuck", "gone", "page"].contains(&asked.what()) {
            *open.lock().ok()? = asked.body["id"].clone();
            count.store(0, Ordering::Relaxed);
            return Some(cut(&format!("id: {}\nretry: 5\ndata:\n\n", asked.what())));
        }
        let last = asked.header("last-event-id")?;
        let tried = count.fetch_add(1, Ordering::Relaxed) + 1;
        let id = open.lock().ok()?.clone();
        Some(match last {
            // The connection ends without an answer.
            "away" if tried < 3 => Answer::Bytes(String::new()),
            "proxy" if tried < 3 => crate::http::status("503 Service Unavailable", "text/html", ""),
            "away" | "proxy" => Answer::Bytes(events(&event(&answer(&id, "back")))),
            "stuck" => cut(": still nothing\n\n"),
            "page" => Answer::Bytes(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>Log in".to_owned(),
            ),
            _ => crate::http::status("404 Not Found", "text/plain", "no such event"),
        })
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "away").await, Ok(json!("back")));
    assert_eq!(call(&connected, "proxy").await, Ok(json!("back")));
    assert_eq!(
        call(&connected, "stuck").await,
        Err("s: the answer's stream broke off, and again after it was resumed".to_owned())
    );
    assert_eq!(tries.load(Ordering::Relaxed), 3);
    let unresumed = "s: the answer's stream broke off and cannot be resumed";
    let gone = "the server answered with status 404 Not Found: no such event";
    assert_eq!(call(&connected, "gone").await, Err(format!("{unresumed}: {gone}")));
    let page = "the rest of the answer is not an event stream (status 200 OK): <html>Log in";
    assert_eq!(call(&connected, "page").await, Err(format!("{unresumed}: {page}")));
    assert_eq!(tries.load(Ordering::Relaxed), 1);
    assert_eq!(call(&connected, "next").await, Ok(json!("next")));
    connected.close().await;
}

/// The stream is opened three times before the warning.
#[tokio::test]
async fn broken_notification_stream_is_a_warning() {
    let (server, seen) = serve(|asked| (asked.method == "GET").then(|| cut(": hello\n\n"))).await;
    let connected = connect(server).await.unwrap();
    let warnings = || connected.connection("s").unwrap().warnings();
    for _ in 0..4 {
        if eventually(|| !warnings().is_empty()).await {
            break;
        }
    }
    assert_eq!(warnings(), [BROKEN]);
    assert_eq!(seen.lock().unwrap().iter().filter(|line| *line == "GET").count(), 3);
    // Calls are not touched by it.
    assert_eq!(call(&connected, "next").await, Ok(json!("next")));
    connected.close().await;
}

/// A server without such a stream refuses the first request for it. Later the stream is missed.
#[tokio::test]
async fn refused_reopening_is_a_warning() {
    let opened = AtomicUsize::new(0);
    let (server, seen) = serve(move |asked| {
        (asked.method == "GET").then(|| match opened.fetch_add(1, Ordering::Relaxed) {
            0 => cut(": hello\n\n"),
            _ => crate::http::status("500 Internal Server Error", "text/plain", "later"),
        })
    })
    .await;
    let connected = connect(server).await.unwrap();
    let warnings = || connected.connection("s").unwrap().warnings();
    assert!(eventually(|| !warnings().is_empty()).await);
    assert_eq!(warnings(), [BROKEN]);
    assert_eq!(seen.lock().unwrap().iter().filter(|line| *line == "GET").count(), 3);
    connected.close().await;
}

/// Changes while the stream was closed are not announced.
#[tokio::test]
async fn reopened_stream_reloads_the_list() {
    let opened = AtomicUsize::new(0);
    let (server, seen) = serve(move |asked| {
        (asked.method == "GET").then(|| match opened.fetch_add(1, Ordering::Relaxed) {
            0 => cut(": hello\n\n"),
            _ => Answer::Silence(events(": hello\n\n")),
        })
    })
    .await;
    let connected = connect(server).await.unwrap();
    let lists = || seen.lock().unwrap().iter().filter(|line| *line == "POST tools/list").count();
    assert!(eventually(|| lists() == 2).await);
    connected.close().await;
}

/// After three breaks in a row, it is opened again once the server answers a call.
#[tokio::test]
async fn broken_stream_returns_after_a_call() {
    let opened = Arc::new(AtomicUsize::new(0));
    let streams = Arc::clone(&opened);
    let (server, seen) = serve(move |asked| {
        if asked.method == "GET" {
            return Some(match opened.fetch_add(1, Ordering::Relaxed) {
                0..3 => cut(": hello\n\n"),
                _ => Answer::Silence(events(": hello\n\n")),
            });
        }
        let name = if opened.load(Ordering::Relaxed) > 3 { "grown" } else { "do" };
        let tools = json!([{ "name": name, "inputSchema": { "type": "object" } }]);
        (asked.body["method"] == "tools/list").then(|| result(asked, &json!({ "tools": tools })))
    })
    .await;
    let connected = connect(server).await.unwrap();
    let warnings = || connected.connection("s").unwrap().warnings();
    assert!(eventually(|| !warnings().is_empty()).await);
    assert_eq!(streams.load(Ordering::Relaxed), 3, "{seen:?}");
    assert_eq!(call(&connected, "next").await, Ok(json!("next")));
    assert!(eventually(|| tool(&connected, "s__grown").is_some()).await, "{seen:?}");
    assert_eq!((streams.load(Ordering::Relaxed), warnings()), (4, vec![BROKEN.to_owned()]));
    connected.close().await;
}
