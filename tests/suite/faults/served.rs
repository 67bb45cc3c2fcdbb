//! Servers that produce faults.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use oa_testkit::{Cut, Reply, Script, SocketServer};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::case::{Case, Fault, Haste, Mode, Page, RECOVERED, Stage};

/// The events of the answer: text, then a call.
const EVENTS: [&str; 9] = [
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":" world"},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_f","type":"function","function":{"name":"look","arguments":""}}]},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"place\":"}}]},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"here\"}"}}]},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}"#,
    "[DONE]",
];

fn events(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

impl Stage {
    /// The number of events before the fault.
    fn events(self) -> usize {
        match self {
            Self::BeforeHead | Self::AfterHead => 0,
            Self::BeforeDelta => 1,
            Self::InText => 2,
            Self::InArguments => 5,
            Self::BeforeUsage => 7,
            Self::AfterDone => EVENTS.len(),
        }
    }
}

/// The answer as a document.
fn document() -> String {
    let function = json!({"name": "look", "arguments": "{\"place\":\"here\"}"});
    let call = json!({"id": "call_f", "type": "function", "function": function});
    let message = json!({"role": "assistant", "content": "Hello world", "tool_calls": [call]});
    json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
        .to_string()
}

/// A raw head and body that no well-behaved server would send.
fn raw(headers: &str, body: &str) -> Reply {
    Reply::raw(format!("{HEAD}{headers}\r\n\r\n{body}"))
}

/// The reply with the case's fault; `None` if no script can produce it.
fn reply(case: &Case) -> Option<Reply> {
    let events_before = case.stage.events();
    let (before, after) = (events(&EVENTS[..events_before]), events(&EVENTS[events_before..]));
    let at = before.len();
    let whole = format!("{before}{after}");
    let ended_by = |words: &str| Reply::sse(format!("{before}{words}"));
    let with = |words: &str| Reply::sse(format!("{before}{words}{after}"));
    let reply = match (case.stage, case.fault) {
        (Stage::BeforeHead, fault) => {
            return head(fault, &whole).map(|reply| reply.framing(case.framing));
        }
        (_, Fault::Close) => Reply::sse(whole).close_after(at),
        (_, Fault::Reset) => Reply::sse(whole).reset_after(at),
        (_, Fault::Stall) => Reply::sse(whole).stall_after(at),
        (_, Fault::Half) => {
            let next = events(&EVENTS[events_before..=events_before]);
            Reply::sse(whole).close_after(at + next.len() / 2)
        }
        (_, Fault::Garbage) => {
            let garbage = &b"\x00\xff\xfe\x1b[31m%%%\r\nx: y\r\n\xc3\x28garbage\n\n"[..];
            Reply::sse([before.as_bytes(), garbage, after.as_bytes()].concat())
        }
        (_, Fault::BadPayload) => with("data: {oops\n\n"),
        (_, Fault::Comments) => with(&": keep-alive\n\n".repeat((64 << 10) / 14)),
        (_, Fault::Html) => ended_by(HTML),
        (_, Fault::JsonError) => ended_by(&format!("{ERROR}\n")),
        (_, Fault::ErrorEvent) => ended_by(&format!("data: {ERROR}\n\n")),
        (_, Fault::BadReset) => {
            let bad = "data: {oops\n\n";
            with(bad).reset_after(at + bad.len())
        }
        (_, Fault::ErrorReset) => {
            let error = format!("data: {ERROR}\n\n");
            with(&error).reset_after(at + error.len())
        }
        (_, Fault::ErrorStall) => {
            let error = format!("data: {ERROR}\n\n");
            with(&error).stall_after(at + error.len())
        }
        (_, Fault::JsonAnswer) => Reply::body(200, "application/json", document()),
        (_, Fault::Slow) => {
            let slow = Reply::sse(whole).cut(Cut::At((at..at + 20).collect()));
            // Everything before the fault is sent at once.
            let first = if at == 0 { SLOW } else { Duration::ZERO };
            slow.delay(SLOW).delay_first(first)
        }
        // In one write, so that the excess is there before the next request.
        (_, Fault::TooShort) => return Some(raw(&format!("content-length: {at}"), &whole)),
        (_, Fault::BadChunk) => {
            let chunk = if at == 0 { String::new() } else { format!("{at:x}\r\n{before}\r\n") };
            return Some(raw("transfer-encoding: chunked", &format!("{chunk}zz\r\n{after}")));
        }
        (_, fault) => panic!("{fault:?} strikes before the head"),
    };
    Some(reply.framing(case.framing))
}

/// The reply with a fault in place of the head.
fn head(fault: Fault, body: &str) -> Option<Reply> {
    let length = format!("content-length: {}", body.len());
    Some(match fault {
        Fault::Close => Reply::hang_up(),
        Fault::Reset => Reply::reset(),
        Fault::Stall => Reply::silence(),
        Fault::Half => Reply::raw("HTTP/1.1 200 OK\r\ncontent-ty"),
        Fault::Garbage => Reply::raw(&b"\x00\xff\x1b[31m%%%\r\nx: y\r\n\r\ngarbage\n\n"[..]),
        Fault::Comments => Reply::raw(": keep-alive\n\n".repeat(100)),
        Fault::Html => Reply::raw(HTML),
        Fault::JsonError => Reply::raw(ERROR),
        Fault::BadLength => raw("content-length: many", body),
        Fault::BigHead => raw(&format!("x-big: {}", "x".repeat(1 << 20)), body),
        Fault::Tls => Reply::raw(&b"\x15\x03\x01\x00\x02\x02\x46"[..]),
        Fault::Interim(status) => {
            let interim = format!("HTTP/1.1 {status} Wait\r\nx-hint: y\r\n\r\n");
            Reply::raw(format!("{interim}{HEAD}{length}\r\n\r\n{body}"))
        }
        Fault::Success(status) => Reply::sse(body.to_owned()).status(status),
        Fault::Status(status, page) => {
            let json = Reply::body(status, "application/json", ERROR);
            match page {
                Page::Empty => Reply::body(status, "text/plain", ""),
                Page::Html => Reply::body(status, "text/html", HTML),
                Page::Json => json,
                Page::Close => json.close_after(ERROR.len() / 2),
                Page::Reset => json.reset_after(ERROR.len() / 2),
                Page::Stall => json.stall_after(ERROR.len() / 2),
            }
        }
        Fault::Slow | Fault::Early(_) => return None,
        fault => panic!("{fault:?} strikes behind the head"),
    })
}

/// A server that produces one fault and is flawless otherwise.
pub(super) struct Server {
    pub(super) script: SocketServer,
    front: Option<(SocketAddr, JoinSet<()>)>,
}

impl Server {
    pub(super) async fn start(case: &Case) -> io::Result<Self> {
        let mut script = Script::new().strict();
        if case.mode == Mode::Auto {
            // A connection per round, because requests on reused connections may be repeated.
            script =
                script.reply(Reply::new().call("look", json!({"place": "there"})).announce_close());
        }
        let reply = reply(case);
        let fronted = reply.is_none();
        if let Some(reply) = reply {
            script = script.reply(reply);
        }
        let script = SocketServer::start(script.otherwise(Reply::text(RECOVERED))).await?;
        let mut front = None;
        if fronted {
            let before = usize::from(case.mode == Mode::Auto);
            front = Some(self::front(script.address(), before, case.fault).await?);
        }
        Ok(Self { script, front })
    }

    pub(super) fn base_url(&self) -> String {
        match &self.front {
            Some((address, _)) => format!("http://{address}/v1"),
            None => self.script.base_url(),
        }
    }

    /// Returns the number of requests received, including those that the front handled itself.
    pub(super) fn requests(&self) -> usize {
        self.script.requests().len() + usize::from(self.front.is_some())
    }
}

/// Forwards connections to a server, except for one with a fault.
async fn front(
    server: SocketAddr,
    before: usize,
    fault: Fault,
) -> io::Result<(SocketAddr, JoinSet<()>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        for number in 0.. {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            connections.spawn(async move {
                // An error means that one side is gone, which is allowed.
                let _ = if number == before {
                    misbehave(&mut stream, fault).await
                } else {
                    pass_on(&mut stream, server).await
                };
            });
        }
    });
    Ok((address, tasks))
}

async fn pass_on(stream: &mut TcpStream, server: SocketAddr) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    copy_bidirectional(stream, &mut server).await?;
    Ok(())
}

async fn misbehave(stream: &mut TcpStream, fault: Fault) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut heard = Vec::new();
    while !heard.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut heard).await? == 0 {
            return Ok(());
        }
    }
    let body = events(&EVENTS);
    let length = body.len();
    let answer = format!("{HEAD}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    let refusal = format!(
        "HTTP/1.1 413 Payload Too Large\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{ERROR}",
        ERROR.len()
    );
    let Fault::Early(early) = fault else {
        let (slow, rest) = answer.split_at(20);
        for byte in slow.bytes() {
            stream.write_all(&[byte]).await?;
            tokio::time::sleep(SLOW).await;
        }
        stream.write_all(rest.as_bytes()).await?;
        return drain(stream).await;
    };
    let words = if early.refuses() { refusal } else { answer };
    stream.write_all(words.as_bytes()).await?;
    match early {
        Haste::RefuseAndRead | Haste::AnswerAndRead => drain(stream).await,
        Haste::RefuseAndClose => Ok(()),
        // Until the test is over.
        Haste::RefuseAndHold | Haste::AnswerAndHold => std::future::pending().await,
    }
}

async fn drain(stream: &mut TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}

/// The body of a flood for `floods.rs`: events before and after the excess data.
pub(super) fn flooded(stage: Stage, flood: &str, size: usize) -> Bytes {
    let (before, after) = EVENTS.split_at(stage.events());
    let mut body = events(before).into_bytes();
    body.reserve_exact(size + 4096);
    for _ in 0..size / flood.len() {
        body.extend_from_slice(flood.as_bytes());
    }
    body.extend_from_slice(events(after).as_bytes());
    body.into()
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
pub(super) const HTML: &str =
    "<!doctype html>\n<html><head><title>Sorry</title></head>\n<body>no luck</body></html>\n";
pub(super) const ERROR: &str = r#"{"error":{"message":"no luck","type":"server_error"}}"#;
const SLOW: Duration = Duration::from_millis(10);
