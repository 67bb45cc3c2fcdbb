//! Clients of both servers.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use oa_testkit::{MemoryServer, Reply, Script, SocketServer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::Service;

/// More than any wait of these tests takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// A chat request which asks for a stream with usage.
pub(crate) fn streamed() -> Value {
    json!({
        "model": "test",
        "stream": true,
        "stream_options": { "include_usage": true },
        "messages": [{ "role": "user", "content": "What is the time?" }],
    })
}

/// A chat request which asks for one object.
pub(crate) fn plain() -> Value {
    json!({ "model": "test", "messages": [{ "role": "user", "content": "What is the time?" }] })
}

/// A request of HTTP/1.1, as bytes.
pub(crate) fn post(body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// A response: status, content type, body.
pub(crate) type Seen = (u16, String, Bytes);

/// Asks both servers for the same answer, which must be the same, and returns it.
pub(crate) async fn ask_both(reply: Reply, request: &Value) -> Seen {
    let script = Script::new().reply(reply);

    let server = MemoryServer::new(script.clone());
    let in_memory = ask_memory(&server, request).await.expect("an answer in memory");

    let server = SocketServer::start(script).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    client.send(&post(request)).await;
    let on_socket = client.answer().await.expect("an answer on the socket");

    assert_eq!(in_memory, on_socket);
    in_memory
}

/// Asks for a path in memory.
pub(crate) async fn get_memory(server: &MemoryServer, path: &str) -> (u16, Value) {
    let request = http::Request::get(path).body(Full::<Bytes>::default()).expect("a request");
    let response = server.clone().call(request).await.expect("an answer");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, serde_json::from_slice(&body).expect("JSON"))
}

/// Asks for a chat completion in memory.
pub(crate) async fn ask_memory(server: &MemoryServer, request: &Value) -> io::Result<Seen> {
    let response = call(server, request).await?;
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type").expect("a content type");
    let kind = kind.to_str().expect("text").to_owned();
    Ok((status, kind, response.into_body().collect().await?.to_bytes()))
}

/// Asks for a chat completion in memory, and leaves the body unread.
pub(crate) async fn call(
    server: &MemoryServer,
    request: &Value,
) -> io::Result<http::Response<oa_testkit::MemoryBody>> {
    let request = http::Request::post("http://test/v1/chat/completions")
        .header("authorization", "Bearer secret-key")
        .body(Full::new(Bytes::from(request.to_string())))
        .expect("a request");
    server.clone().call(request).await
}

/// A client of the socket server which sees every byte.
pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(server: &SocketServer) -> Self {
        let stream = TcpStream::connect(server.address()).await.expect("a connection");
        Self { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.expect("an open connection");
    }

    /// Reads until `end` was read, and returns all up to there.
    pub(crate) async fn until(&mut self, end: &str) -> io::Result<String> {
        loop {
            let found = self.read.windows(end.len()).position(|window| window == end.as_bytes());
            if let Some(at) = found {
                let taken = self.read.drain(..at + end.len()).collect();
                return Ok(String::from_utf8(taken).expect("text"));
            }
            self.more().await?;
        }
    }

    /// Reads this many bytes.
    pub(crate) async fn exactly(&mut self, length: usize) -> io::Result<Bytes> {
        while self.read.len() < length {
            self.more().await?;
        }
        Ok(self.read.drain(..length).collect())
    }

    /// Reads until the server closes, and returns all up to there with the way in which it did.
    pub(crate) async fn rest(&mut self) -> (String, io::ErrorKind) {
        loop {
            if let Err(error) = self.more().await {
                let read = std::mem::take(&mut self.read);
                return (String::from_utf8(read).expect("text"), error.kind());
            }
        }
    }

    /// Reads one HTTP chunk, empty if it is the last.
    pub(crate) async fn chunk(&mut self) -> io::Result<Bytes> {
        let size = self.until("\r\n").await?;
        let size = usize::from_str_radix(size.trim_end(), 16).expect("a size");
        let chunk = self.exactly(size).await?;
        assert_eq!(self.exactly(2).await?, "\r\n");
        Ok(chunk)
    }

    /// Reads a whole answer with either framing.
    pub(crate) async fn answer(&mut self) -> io::Result<Seen> {
        let head = self.until("\r\n\r\n").await?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let kind = header(&head, "content-type").expect("a content type").to_owned();
        let body = if header(&head, "transfer-encoding") == Some("chunked") {
            let mut body = Vec::new();
            loop {
                let chunk = self.chunk().await?;
                if chunk.is_empty() {
                    break body.into();
                }
                body.extend_from_slice(&chunk);
            }
        } else if let Some(length) = header(&head, "content-length") {
            self.exactly(length.parse().expect("a length")).await?
        } else {
            let (body, kind) = self.rest().await;
            assert_eq!(kind, io::ErrorKind::UnexpectedEof);
            body.into()
        };
        Ok((status.expect("a status"), kind, body))
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Finds a header in a head.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
