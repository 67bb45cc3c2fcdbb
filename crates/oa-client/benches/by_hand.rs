//! The loop written by hand.
//!
//! A hyper connection on a task of its own, lines split off a `BytesMut`, `serde_json` into the smallest borrowed
//! structs, a `String` for each piece. The messages of a conversation are bytes that grow, and are copied into
//! each request.
//!
//! It has no limits, no server errors, and timeouts only on request; it ignores usage, and keeps no answer and no
//! readable history. Its tools: one call per answer, whose arguments are neither checked nor repaired; no hooks,
//! no events, no guard against repetition, no cancellation, no budget of rounds, no reconnection.

use std::borrow::Cow;
use std::hint::black_box;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::answers::{PAGE, WORD, page};

pub(crate) const BODY: &str = r#"{"model":"tiny","messages":[{"role":"user","content":"Tell me a story."}],"stream":true,"stream_options":{"include_usage":true}}"#;

/// The JSON around the messages of a conversation.
const BEGIN: &str = r#"{"model":"tiny","messages":[{"role":"user","content":"Read the book."}"#;
const END: &str = r#"],"tools":[{"type":"function","function":{"name":"read","description":"Read a page","parameters":{"type":"object","properties":{"page":{"type":"integer"}},"required":["page"]}}}],"stream":true,"stream_options":{"include_usage":true}}"#;

pub(crate) struct Loop {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    /// The timeout for each piece of an answer; none by default.
    pub(crate) patience: Option<Duration>,
}

impl Loop {
    pub(crate) async fn connect(port: usize) -> Self {
        let host = format!("127.0.0.1:{port}");
        let stream = TcpStream::connect(&host).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket has options");
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1 has no handshake");
        tokio::spawn(connection);
        Self { sender, host, patience: None }
    }

    /// Sends a prompt and reports the pieces as they arrive.
    pub(crate) async fn ask(&mut self, path: &str, mut on_pieces: impl FnMut(usize)) {
        let body = Bytes::from_static(BODY.as_bytes());
        let mut arguments = String::new();
        self.read(path, body, |delta| {
            if let Some(Text(text)) = delta.content {
                black_box(text.into_owned());
                on_pieces(1);
            }
            for call in delta.tool_calls.into_iter().flatten() {
                let Some(Text(fragment)) = call.function.arguments else { continue };
                arguments.push_str(&fragment);
                on_pieces(usize::from(fragment == WORD));
                black_box(fragment.into_owned());
            }
        })
        .await;
        if !arguments.is_empty() {
            black_box(parse(&arguments));
        }
    }

    /// Runs a conversation with a tool; returns after how many rounds its text came.
    pub(crate) async fn converse(&mut self, path: &str) -> usize {
        let mut messages = BEGIN.as_bytes().to_vec();
        let mut rounds = 0;
        loop {
            let body = Bytes::from([&messages, END.as_bytes()].concat());
            let (mut id, mut name, mut arguments) = <(String, String, String)>::default();
            self.read(path, body, |delta| {
                if let Some(Text(text)) = delta.content {
                    black_box(text.into_owned());
                }
                for call in delta.tool_calls.into_iter().flatten() {
                    for (known, piece) in [
                        (&mut id, call.id),
                        (&mut name, call.function.name),
                        (&mut arguments, call.function.arguments),
                    ] {
                        known.push_str(&piece.map(|Text(piece)| piece).unwrap_or_default());
                    }
                }
            })
            .await;
            if name.is_empty() {
                return rounds;
            }
            assert!(parse(&arguments)[PAGE].is_u64(), "the page is a number");
            let result = Value::from(page());
            let function = json!({"name": name, "arguments": arguments});
            let call = json!({"id": id, "type": "function", "function": function});
            for message in [
                json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                json!({"role": "tool", "tool_call_id": id, "content": result}),
            ] {
                messages.push(b',');
                serde_json::to_writer(&mut messages, &message).expect("a value can be written");
            }
            rounds += 1;
        }
    }

    async fn read(&mut self, path: &str, body: Bytes, mut on_delta: impl FnMut(Delta<'_>)) {
        let request = Request::post(format!("{path}/chat/completions"))
            .header(header::HOST, &self.host)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .expect("the request is valid");
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request).await.expect("the server answers");
        let mut body = response.into_body();
        let mut buffer = BytesMut::new();
        while let Some(frame) = match self.patience {
            Some(patience) => timeout(patience, body.frame()).await.expect("it comes in time"),
            None => body.frame().await,
        } {
            let Ok(data) = frame.expect("the answer is whole").into_data() else { continue };
            buffer.extend_from_slice(&data);
            while let Some(end) = memchr::memchr(b'\n', &buffer) {
                let line = buffer.split_to(end + 1);
                let Some(payload) = line.trim_ascii_end().strip_prefix(b"data: ") else { continue };
                if payload == b"[DONE]" {
                    continue;
                }
                let chunk: Chunk<'_> = serde_json::from_slice(payload).expect("a chunk is JSON");
                for choice in chunk.choices {
                    on_delta(choice.delta);
                    black_box(choice.finish_reason);
                }
            }
        }
    }
}

fn parse(arguments: &str) -> Value {
    serde_json::from_str(arguments).expect("arguments are JSON")
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
}

/// In an `Option` a bare `Cow` would always be copied.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
