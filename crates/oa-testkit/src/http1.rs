//! HTTP/1.1 as bytes: parses requests, writes heads. No I/O, and only as much HTTP as tests need.

use std::fmt::Write as _;
use std::mem;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};

use crate::act::PlannedResponse;
use crate::reply::{Closing, Framing};

/// Parses requests from the bytes of a connection: push into [`buffer`](Self::buffer), then call next.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) buffer: BytesMut,
    continues: bool,
    /// The request whose body is incomplete.
    half: Option<(Head, Body)>,
}

/// A complete request.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) body: Bytes,
    pub(crate) headers: HeaderMap,
    pub(crate) method: Method,
    /// True if the client speaks HTTP/1.0, which has no chunks.
    pub(crate) old: bool,
    pub(crate) uri: Uri,
}

/// The reason why bytes are not a request.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) reason: &'static str,
    pub(crate) status: StatusCode,
}

struct Head {
    headers: HeaderMap,
    method: Method,
    old: bool,
    uri: Uri,
}

/// A body being read.
enum Body {
    /// A chunk with this many bytes left, including its line end.
    Chunk { body: BytesMut, left: usize },
    /// The line with the size of the next chunk.
    ChunkSize { body: BytesMut },
    /// A body of known length.
    Length(usize),
    /// The lines after the last chunk.
    Trailers { body: BytesMut },
}

impl Inbox {
    /// Returns the next request; `None` if it is incomplete.
    pub(crate) fn next_request(&mut self) -> Result<Option<Incoming>, Malformed> {
        let (head, body) = match self.half.take() {
            Some(half) => half,
            None => {
                let Some(lines) = self.head()? else {
                    return Ok(None);
                };
                let head = Head::parse(&lines)?;
                let expects = head.headers.get(header::EXPECT);
                self.continues = expects.is_some_and(|value| value == "100-continue");
                let body = head.body()?;
                (head, body)
            }
        };
        match self.body(body)? {
            Ok(body) => Ok(Some(head.with(body))),
            Err(rest) => {
                // The head is parsed once and then kept: later calls only read more of the body.
                self.half = Some((head, rest));
                Ok(None)
            }
        }
    }

    /// Returns true, once, if the client waits for `100 Continue` before sending the body.
    pub(crate) fn wants_continue(&mut self) -> bool {
        mem::take(&mut self.continues)
    }

    /// Takes the lines of a head.
    fn head(&mut self) -> Result<Option<Bytes>, Malformed> {
        // Some clients send a line end after a body.
        while self.buffer.starts_with(b"\r\n") {
            self.buffer.advance(2);
        }
        match self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            // The end of the head is searched from the beginning each time: heads are short, and tests send
            // them whole.
            Some(end) if end <= MAX_HEAD => {
                let lines = self.buffer.split_to(end).freeze();
                self.buffer.advance(4);
                Ok(Some(lines))
            }
            None if self.buffer.len() <= MAX_HEAD => Ok(None),
            _ => {
                let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                Err(Malformed { reason: "the head is too large", status })
            }
        }
    }

    /// Takes a body, or returns what is left to read of it.
    fn body(&mut self, mut rest: Body) -> Result<Result<Bytes, Body>, Malformed> {
        loop {
            rest = match rest {
                Body::Length(length) if self.buffer.len() >= length => {
                    return Ok(Ok(self.buffer.split_to(length).freeze()));
                }
                Body::Length(_) => return Ok(Err(rest)),
                Body::ChunkSize { body } => {
                    let Some(line) = self.line()? else {
                        return Ok(Err(Body::ChunkSize { body }));
                    };
                    match size_of_chunk(&line)? {
                        0 => Body::Trailers { body },
                        // `body` is never longer than `MAX_BODY`, which this check keeps true, so neither
                        // side can overflow.
                        size if size > MAX_BODY - body.len() => return Err(TOO_LARGE),
                        // With the line end, so that a chunk and its end may be cut anywhere. It is removed
                        // when all of it is there.
                        size => Body::Chunk { body, left: size + 2 },
                    }
                }
                Body::Chunk { mut body, left } => {
                    let taken = self.buffer.split_to(left.min(self.buffer.len()));
                    body.extend_from_slice(&taken);
                    let left = left - taken.len();
                    if left > 0 {
                        return Ok(Err(Body::Chunk { body, left }));
                    }
                    if !body.ends_with(b"\r\n") {
                        return Err(bad("a chunk is longer than announced"));
                    }
                    body.truncate(body.len() - 2);
                    Body::ChunkSize { body }
                }
                Body::Trailers { body } => match self.line()? {
                    Some(line) if line.is_empty() => return Ok(Ok(body.freeze())),
                    Some(_) => Body::Trailers { body },
                    None => return Ok(Err(Body::Trailers { body })),
                },
            };
        }
    }

    /// Takes a line, without its end.
    fn line(&mut self) -> Result<Option<Bytes>, Malformed> {
        match self.buffer.windows(2).position(|window| window == b"\r\n") {
            Some(end) => {
                let line = self.buffer.split_to(end).freeze();
                self.buffer.advance(2);
                Ok(Some(line))
            }
            None if self.buffer.len() > MAX_HEAD => Err(bad("a line is too long")),
            None => Ok(None),
        }
    }
}

impl Head {
    fn parse(lines: &[u8]) -> Result<Self, Malformed> {
        let lines = std::str::from_utf8(lines).map_err(|_| bad("the head is not text"))?;
        let mut lines = lines.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(uri), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(bad("the first line is not a request"));
        };
        let old = match version {
            "HTTP/1.0" => true,
            "HTTP/1.1" => false,
            _ => return Err(bad("the request is not HTTP/1.1")),
        };

        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(bad("a header has no colon"))?;
            let name = HeaderName::try_from(name).map_err(|_| bad("invalid header name"))?;
            let value = HeaderValue::from_str(value.trim_matches([' ', '\t']));
            let value = value.map_err(|_| bad("invalid header value"))?;
            if headers.try_append(name, value).is_err() {
                return Err(bad("there are too many headers"));
            }
        }
        let method = Method::try_from(method).map_err(|_| bad("invalid method"))?;
        let uri = Uri::try_from(uri).map_err(|_| bad("invalid path"))?;
        Ok(Self { headers, method, old, uri })
    }

    /// Determines how the body ends.
    fn body(&self) -> Result<Body, Malformed> {
        if let Some(coding) = self.headers.get(header::TRANSFER_ENCODING) {
            if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
                return Err(bad("the transfer encoding is not chunked"));
            }
            return Ok(Body::ChunkSize { body: BytesMut::new() });
        }
        let mut length = None;
        for value in self.headers.get_all(header::CONTENT_LENGTH) {
            // The standard library's parser would accept a sign.
            let digits = value.to_str().ok().filter(|value| !value.starts_with('+'));
            let value = digits.and_then(|digits| digits.parse::<usize>().ok());
            let value = value.ok_or(bad("the content length is not a number"))?;
            // Equal ones are allowed, different ones are an error (RFC 9112, section 6.3).
            if length.is_some_and(|length| length != value) {
                return Err(bad("there are two content lengths"));
            }
            length = Some(value);
        }
        match length.unwrap_or_default() {
            length if length > MAX_BODY => Err(TOO_LARGE),
            length => Ok(Body::Length(length)),
        }
    }

    fn with(self, body: Bytes) -> Incoming {
        let Self { headers, method, old, uri } = self;
        Incoming { body, headers, method, old, uri }
    }
}

impl Incoming {
    /// Returns true if the client wants the connection closed after the response.
    pub(crate) fn closes(&self) -> bool {
        let says = |word: &str| {
            let values = self.headers.get_all(header::CONNECTION);
            let mut values = values.iter().filter_map(|value| value.to_str().ok());
            values.any(|value| value.split(',').any(|said| said.trim().eq_ignore_ascii_case(word)))
        };
        if self.old { !says("keep-alive") } else { says("close") }
    }
}

/// Writes the head of a response.
pub(crate) fn head_of(answer: &PlannedResponse) -> Bytes {
    let status = answer.status;
    let reason = status.canonical_reason().unwrap_or("Unknown");
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    let mut push = |name: &str, value: &[u8]| {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    };
    for (name, value) in &answer.headers {
        push(name.as_str(), value.as_bytes());
    }

    let given = |name| answer.headers.contains_key(name);
    if !given(header::CONTENT_LENGTH) && !given(header::TRANSFER_ENCODING) {
        match answer.framing {
            Framing::Chunked => push("transfer-encoding", b"chunked"),
            Framing::Close => {}
            Framing::Length => push("content-length", answer.length.to_string().as_bytes()),
        }
    }
    if !given(header::CONNECTION) {
        match answer.closing {
            Closing::Announced => push("connection", b"close"),
            Closing::Unannounced => {
                push("connection", b"keep-alive");
                push("keep-alive", b"timeout=5, max=100");
            }
            Closing::Keep if answer.framing == Framing::Close => push("connection", b"close"),
            Closing::Keep => {}
        }
    }
    head.extend_from_slice(b"\r\n");
    head.into()
}

/// Writes the size of a chunk.
pub(crate) fn chunk_head(size: usize) -> String {
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = write!(line, "{size:x}\r\n");
    line
}

fn size_of_chunk(line: &[u8]) -> Result<usize, Malformed> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let digits = std::str::from_utf8(digits).unwrap_or_default().trim();
    // As above, without a sign.
    let size = if digits.starts_with('+') { None } else { usize::from_str_radix(digits, 16).ok() };
    size.ok_or(bad("the size of a chunk is not a number"))
}

const fn bad(reason: &'static str) -> Malformed {
    Malformed { reason, status: StatusCode::BAD_REQUEST }
}

/// The largest request body, in bytes.
pub(crate) const MAX_BODY: usize = 64 * 1024 * 1024;
const MAX_HEAD: usize = 64 * 1024;
const TOO_LARGE: Malformed =
    Malformed { reason: "the body is too large", status: StatusCode::PAYLOAD_TOO_LARGE };

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses requests from bytes that arrive one at a time, which must equal all at once.
    #[track_caller]
    fn read(bytes: &str) -> Result<Vec<Incoming>, Malformed> {
        let mut inbox = Inbox::default();
        let mut requests = Vec::new();
        for byte in bytes.bytes() {
            inbox.buffer.extend_from_slice(&[byte]);
            while let Some(request) = inbox.next_request()? {
                requests.push(request);
            }
        }
        let mut whole = Inbox::default();
        whole.buffer.extend_from_slice(bytes.as_bytes());
        for request in &requests {
            let again = whole.next_request()?.expect("the same requests");
            assert_eq!(again.body, request.body);
        }
        Ok(requests)
    }

    #[track_caller]
    fn check_bad(bytes: &str, status: u16) {
        assert_eq!(read(bytes).unwrap_err().status, status);
    }

    #[test]
    fn reads_bodies_by_length_and_by_chunks() {
        let requests = read(
            "POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc\
             GET /b?c=d HTTP/1.1\r\n\r\n\
             POST /e HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n\
             2\r\nab\r\n1;x=y\r\nc\r\n0\r\nTrailer: x\r\n\r\n\
             POST /f HTTP/1.0\r\nConnection: x, Keep-Alive\r\nContent-Length: 0\r\n\r\n",
        );
        let seen: Vec<_> = requests
            .unwrap()
            .iter()
            .map(|request| format!("{} {:?} {}", request.uri, request.body, request.closes()))
            .collect();
        assert_eq!(
            seen,
            [r#"/a b"abc" false"#, r#"/b?c=d b"" false"#, r#"/e b"abc" false"#, r#"/f b"" false"#]
        );
    }

    #[test]
    fn refuses_what_is_not_http() {
        check_bad("hello\r\n\r\n", 400);
        check_bad("GET / HTTP/2\r\n\r\n", 400);
        check_bad("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400);
        check_bad("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400);
        check_bad("POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\na", 400);
        check_bad("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400);
        check_bad("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400);
        check_bad("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n", 400);
        check_bad("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabcd\r\n", 400);
    }

    #[test]
    fn refuses_what_is_too_large() {
        check_bad("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413);
        let chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        check_bad(&format!("{chunks}ffffffffffffff\r\n"), 413);

        let mut inbox = Inbox::default();
        inbox.buffer.extend_from_slice(&[b'x'; MAX_HEAD + 1]);
        assert_eq!(inbox.next_request().unwrap_err().status, 431);
    }
}
