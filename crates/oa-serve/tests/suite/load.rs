//! Many conversations at once, with slow readers and cut connections: nothing is lost, and nothing grows.
//!
//! A few seconds by default; `OPEN_AGENT_LOAD=60` for a minute.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oa_serve::{AgentServer, ServeLimits};
use oa_sse::Parser;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::app::agent;

const CONVERSATIONS: u64 = 200;

#[derive(Default)]
struct Figures {
    runs: AtomicU64,
    cuts: AtomicU64,
    gaps: AtomicU64,
    slow: AtomicU64,
    interrupted: AtomicU64,
}

/// A connection for one request, by HTTP/1.0, so that the body ends with the connection.
async fn connect(addr: SocketAddr, method: &str, path: &str, after: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap_or_else(|error| panic!("{error}"));
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\nlast-event-id: {after}\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap_or_else(|error| panic!("{error}"));
    stream
}

async fn call(addr: SocketAddr, method: &str, path: &str, body: &Value) -> (String, Value) {
    let mut stream = connect(addr, method, path, "", &body.to_string()).await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap_or_else(|error| panic!("{error}"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// The part of a run that a reader has seen.
#[derive(Default)]
struct Seen {
    last: String,
    text: String,
    /// The end of the run.
    end: Option<Value>,
}

/// Reads events until the run ends or the connection is to be cut, after so many events.
async fn read(
    addr: SocketAddr,
    path: &str,
    seen: &mut Seen,
    cut: Option<u64>,
    slow: bool,
    figures: &Figures,
) {
    let mut stream = connect(addr, "GET", &format!("{path}/events"), &seen.last, "").await;
    let (mut parser, mut head, mut in_body) = (Parser::new(), Vec::new(), false);
    let (mut buffer, mut events) = ([0; 512], 0);
    loop {
        let count = stream.read(&mut buffer).await.unwrap_or_default();
        assert!(count > 0, "the stream ended in the middle of a run");
        let mut bytes = &buffer[..count];
        if !in_body {
            head.extend_from_slice(bytes);
            let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            assert!(head.starts_with(b"HTTP/1.0 200") || head.starts_with(b"HTTP/1.1 200"));
            in_body = true;
            bytes = &head[end + 4..];
        }
        parser.push(bytes.to_vec().into());
        while let Some(event) = parser.next_event().unwrap_or_else(|error| panic!("{error}")) {
            events += 1;
            if event.is_named("gap") {
                figures.gaps.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            event.last_event_id().clone_into(&mut seen.last);
            let data: Value = serde_json::from_str(&event.data()).unwrap_or_default();
            if event.is_named("agent") && data["data"]["type"] == "text" {
                seen.text.push_str(data["data"]["text"].as_str().unwrap_or_default());
            }
            if event.is_named("run") && data["state"] != "started" {
                seen.end = Some(data);
                return;
            }
        }
        if cut.is_some_and(|cut| events >= cut) {
            return;
        }
        if slow {
            sleep(Duration::from_millis(40)).await;
        }
    }
}

/// Prompts in one conversation after another until the time is over.
async fn converse(addr: SocketAddr, number: u64, until: Instant, figures: Arc<Figures>) {
    let expected: String = (0..40).map(|word| format!("{word} ")).collect();
    let mut turn = number;
    while Instant::now() < until {
        let (status, made) = call(addr, "POST", "/api/conversations", &json!({})).await;
        assert_eq!(status, "201");
        let path = format!("/api/conversations/{}", made["id"].as_str().unwrap_or_default());
        let mut seen = Seen::default();
        for _ in 0..3 {
            turn += 1;
            let prompt = json!({"text": "[load]"});
            let (status, said) = call(addr, "POST", &format!("{path}/prompt"), &prompt).await;
            assert_eq!(status, "202", "{said}");
            (seen.text, seen.end) = (String::new(), None);
            let stops = turn.is_multiple_of(13);
            let mut slow = turn.is_multiple_of(4);
            figures.slow.fetch_add(u64::from(slow), Ordering::Relaxed);
            let mut cut = (!turn.is_multiple_of(3)).then_some(1 + turn % 17);
            while seen.end.is_none() {
                read(addr, &path, &mut seen, cut, slow, &figures).await;
                if seen.end.is_none() {
                    figures.cuts.fetch_add(1, Ordering::Relaxed);
                }
                if stops {
                    let (status, _) = call(addr, "POST", &format!("{path}/stop"), &json!({})).await;
                    assert_eq!(status, "202");
                }
                // Cut a few times, then read on to the end.
                cut = cut.map(|cut| cut * 2).filter(|cut| *cut < 100);
                slow &= cut.is_some();
            }
            figures.runs.fetch_add(1, Ordering::Relaxed);
            let end = seen.end.take().unwrap_or_default();
            assert_eq!(end["state"], "ended", "{end}");
            if end["finish_reason"] == "interrupted" {
                figures.interrupted.fetch_add(1, Ordering::Relaxed);
                assert!(expected.starts_with(&seen.text));
            } else {
                assert_eq!(seen.text, expected, "nothing is lost, and nothing comes twice");
            }
        }
        let (_, now) = call(addr, "GET", &path, &json!({})).await;
        assert_eq!((&now["running"], &now["last_event"]), (&json!(false), &json!(seen.last)));
        assert!(
            now["messages"].as_array().is_some_and(|messages| (3..=6).contains(&messages.len()))
        );
        let (status, _) = call(addr, "DELETE", &path, &json!({})).await;
        assert_eq!(status, "204");
    }
}

/// Returns the memory of this process in MiB, server and clients together; 0 where that is not known.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kib.unwrap_or(0_u64) / 1_024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_lose_nothing_under_load() {
    let seconds = std::env::var("OPEN_AGENT_LOAD").ok().and_then(|seconds| seconds.parse().ok());
    let seconds = seconds.unwrap_or(6_u64);
    let mut limits = ServeLimits::default();
    limits.runs = 400;
    let agent = agent().build().unwrap_or_else(|error| panic!("{error}"));
    let server = AgentServer::new(agent).limits(limits);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap_or_else(|error| panic!("{error}"));
    let addr = listener.local_addr().unwrap_or_else(|error| panic!("{error}"));
    tokio::spawn(server.serve_until(listener, std::future::pending()));

    let figures = Arc::new(Figures::default());
    let began = Instant::now();
    let until = began + Duration::from_secs(seconds);
    let talks: Vec<_> = (0..CONVERSATIONS)
        .map(|number| tokio::spawn(converse(addr, number, until, Arc::clone(&figures))))
        .collect();
    // What a full house takes, once it is full.
    sleep(Duration::from_secs(seconds) / 3).await;
    let early = memory();
    for talk in talks {
        talk.await.unwrap_or_else(|error| panic!("{error}"));
    }
    let late = memory();
    let (_, list) = call(addr, "GET", "/api/conversations", &json!({})).await;
    assert_eq!(
        list["conversations"],
        json!([]),
        "every run has ended, and its conversation was deleted"
    );
    let count = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    // Not by a macro, whose output tests keep to themselves.
    let _ = writeln!(
        io::stderr(),
        "load: {CONVERSATIONS} conversations at once for {:.0} s: {} runs, {} interrupted, {} slow readers, {} cut \
         connections, {} gaps; {early} MiB after a third of the time, {late} MiB at the end",
        began.elapsed().as_secs_f64(),
        count(&figures.runs),
        count(&figures.interrupted),
        count(&figures.slow),
        count(&figures.cuts),
        count(&figures.gaps),
    );
    assert_eq!(count(&figures.gaps), 0, "events are kept for those who come back");
    assert!(count(&figures.runs) >= CONVERSATIONS && count(&figures.cuts) > 0);
    assert!(late <= early + early / 2 + 64, "{early} MiB have grown to {late} MiB");
}
