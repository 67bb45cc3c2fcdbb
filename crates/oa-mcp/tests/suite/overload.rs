//! Servers over streamable HTTP that ask to wait: 429 or 503 with `Retry-After`.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::http::{Answer, Asked, connect, serve};
use crate::support::call;

fn wait(status: &str, header: &str) -> Answer {
    let body = "slowly";
    Answer::Bytes(format!(
        "HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}

/// Returns true for the first of equal requests.
fn is_new(seen: &Mutex<HashSet<String>>, asked: &Asked) -> bool {
    let key = format!("{} {} {}", asked.method, asked.body["method"], asked.what());
    seen.lock().is_ok_and(|mut seen| seen.insert(key))
}

const TOO_MANY: &str = "429 Too Many Requests";
const UNAVAILABLE: &str = "503 Service Unavailable";

#[tokio::test]
async fn overloaded_server_is_asked_again() {
    for (status, calls) in [(TOO_MANY, 2), (UNAVAILABLE, 1)] {
        let asked_for = Mutex::default();
        let (server, seen) = serve(move |asked| {
            let is_call = asked.body["method"] == "tools/call";
            let waits = is_new(&asked_for, asked) && (!is_call || calls == 2);
            waits.then(|| wait(status, "retry-after-ms: 40"))
        })
        .await;
        let start = Instant::now();
        let connected = connect(server).await.unwrap();
        // For `initialize`, and at the same time `notifications/initialized` and `tools/list`.
        assert!(start.elapsed() >= Duration::from_millis(80));
        assert_eq!(call(&connected, "hello").await, Ok(json!("hello")));
        assert_eq!(connected.connection("s").unwrap().warnings(), [""; 0]);
        connected.close().await;
        let seen = seen.lock().unwrap().clone();
        let count = |what: &str| seen.iter().filter(|line| **line == what).count();
        for what in ["POST initialize", "POST notifications/initialized", "POST tools/list"] {
            assert_eq!(count(what), 2, "{seen:?}");
        }
        assert_eq!(count("POST tools/callhello"), calls, "{seen:?}");
    }
}

#[tokio::test]
async fn call_that_may_have_run_is_not_repeated() {
    let (server, seen) = serve(|asked| {
        Some(match asked.what() {
            "ran" => wait(UNAVAILABLE, "retry-after: 0"),
            "later" => wait(TOO_MANY, "retry-after: 3600"),
            "always" => wait(TOO_MANY, "retry-after: 0"),
            "untold" => wait(TOO_MANY, "x-retry: 0"),
            "dropped" => wait(TOO_MANY, "retry-after: 5"),
            _ => return None,
        })
    })
    .await;
    let connected = connect(server).await.unwrap();
    for (what, expected) in [
        ("ran", format!("{UNAVAILABLE}: slowly")),
        ("later", format!("{TOO_MANY} and asks to wait for 3600s: slowly")),
        ("always", format!("{TOO_MANY}: slowly")),
        ("untold", format!("{TOO_MANY}: slowly")),
    ] {
        let error = call(&connected, what).await.unwrap_err();
        assert_eq!(error, format!("s: the server answered with status {expected}"));
    }
    timeout(Duration::from_millis(100), call(&connected, "dropped")).await.unwrap_err();
    connected.close().await;
    let seen = seen.lock().unwrap().clone();
    let count = |what: &str| {
        let line = format!("POST tools/call{what}");
        seen.iter().filter(|other| **other == line).count()
    };
    let counts = ["ran", "later", "always", "untold", "dropped"].map(count);
    assert_eq!(counts, [1, 1, 2, 1, 1], "{seen:?}");
}
