//! The loop that one writes by hand.

use std::borrow::Cow;
use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

const BODY: &str = r#"{"model":"tiny","messages":[{"role":"user","content":"Tell me a story."}],"stream":true,"stream_options":{"include_usage":true}}"#;

pub(crate) struct Loop {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Loop {
    pub(crate) async fn connect(port: usize) -> Self {
        let host = format!("127.0.0.1:{port}");
        let stream = TcpStream::connect(&host).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket has options");
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1 has no handshake");
        tokio::spawn(connection);
        Self { sender, host }
    }

    /// Asks, and returns how many pieces of text came.
    pub(crate) async fn ask(&mut self, path: &str) -> usize {
        let request = Request::post(format!("{path}/chat/completions"))
            .header(header::HOST, &self.host)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from_static(BODY.as_bytes())))
            .expect("the request is valid");
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request).await.expect("the server answers");
        let mut body = response.into_body();
        let mut buffer = BytesMut::new();
        let mut pieces = 0;
        while let Some(frame) = body.frame().await {
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
                    if let Some(Text(text)) = choice.delta.content {
                        black_box(text.into_owned());
                        pieces += 1;
                    }
                    black_box(choice.finish_reason);
                }
            }
        }
        pieces
    }
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
}

/// In an `Option` a bare `Cow` would always be copied.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
