//! The received requests.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use serde_json::Value;

/// A request received by a server.
///
/// Cheap to clone. [`aborted`](Self::aborted) and [`is_over`](Self::is_over) reflect the current state of the
/// response; everything else never changes. Secret header values are marked sensitive and masked in debug
/// output.
#[derive(Clone)]
pub struct Request {
    kept: Arc<Kept>,
}

struct Kept {
    answer: OnceLock<String>,
    body: Bytes,
    connection: Option<usize>,
    fate: AtomicU8,
    headers: HeaderMap,
    json: OnceLock<Value>,
    method: Method,
    number: usize,
    uri: Uri,
}

impl Request {
    pub(crate) fn new(number: usize, asked: RequestParts) -> Self {
        let RequestParts { body, connection, mut headers, method, uri } = asked;
        for name in SECRET {
            if let header::Entry::Occupied(mut entry) = headers.entry(name) {
                entry.iter_mut().for_each(|value| value.set_sensitive(true));
            }
        }
        Self {
            kept: Arc::new(Kept {
                answer: OnceLock::new(),
                body,
                connection,
                fate: AtomicU8::new(Fate::Playing as u8),
                headers,
                json: OnceLock::new(),
                method,
                number,
                uri,
            }),
        }
    }

    /// Returns true if the client left before the end of the response: it closed the connection or, in memory,
    /// dropped the response.
    #[must_use]
    pub fn aborted(&self) -> bool {
        self.kept.fate.load(Ordering::Acquire) == Fate::Aborted as u8
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.kept.body
    }

    /// Returns the connection's number, from 1 in the order of opening; `None` in memory.
    #[must_use]
    pub fn connection(&self) -> Option<usize> {
        self.kept.connection
    }

    /// Returns the headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.kept.headers
    }

    /// Returns the first header of this name, in upper or lower case; `None` if there is none, or it is not text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.kept.headers.get(name)?.to_str().ok()
    }

    /// Returns true if the response is over: played to its end, cut off by the script, or aborted by the
    /// client.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.kept.fate.load(Ordering::Acquire) != Fate::Playing as u8
    }

    /// Returns true if the request asks for a stream.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.json()["stream"] == true
    }

    /// Returns the body as JSON; `null` if it is not JSON.
    ///
    /// Indexing the result never panics, so checks such as `request.json()["tools"].is_array()` are complete.
    #[must_use]
    pub fn json(&self) -> &Value {
        let read = || serde_json::from_slice(&self.kept.body).unwrap_or_default();
        self.kept.json.get_or_init(read)
    }

    /// Returns the `messages` of the body; empty if there are none.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.json()["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.kept.method
    }

    /// Returns the `model` of the body.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.json()["model"].as_str()
    }

    /// Returns the request's number, from 1 in order of arrival at its server.
    #[must_use]
    pub fn number(&self) -> usize {
        self.kept.number
    }

    /// Returns the path, without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.kept.uri.path()
    }

    /// Returns the query, without the question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.kept.uri.query()
    }

    /// Records how the response ended; the first end counts.
    pub(crate) fn end(&self, fate: Fate) -> bool {
        let playing = Fate::Playing as u8;
        let order = Ordering::AcqRel;
        self.kept.fate.compare_exchange(playing, fate as u8, order, Ordering::Acquire).is_ok()
    }

    /// Records the answer, for the story.
    pub(crate) fn answered_by(&self, answer: impl Into<String>) {
        // A request is answered once; if it happened twice, the first one counts.
        let _ = self.kept.answer.set(answer.into());
    }

    /// Describes the request and its response on one line.
    pub(crate) fn summary(&self) -> String {
        let end = if self.aborted() {
            ", which the client broke off"
        } else if self.is_over() {
            ""
        } else {
            ", still playing"
        };
        let answer = self.kept.answer.get().map_or("nothing yet", String::as_str);
        format!("{} -> {answer}{end}", self.question())
    }

    /// Describes the request on one line.
    pub(crate) fn question(&self) -> String {
        let mut words = vec![format!("{} {}", self.method(), self.path())];
        if let Some(model) = self.model() {
            words.push(format!("model {}", quoted(model)));
        }
        if self.is_stream() {
            words.push("streamed".to_owned());
        }
        if let Some(messages) = self.json()["messages"].as_array() {
            words.push(summary_of(messages));
        }
        if let Some(tools) = self.json()["tools"].as_array() {
            words.push(count(tools.len(), "tool"));
        }
        for (name, value) in self.headers() {
            if let Some(masked) = masked(name, value) {
                words.push(format!("{name}: {masked}"));
            }
        }
        if let Some(connection) = self.connection() {
            words.push(format!("connection {connection}"));
        }
        words.join(", ")
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Sensitive values print as a fixed word, but the scheme is worth showing.
        let shown = |(name, value)| match masked(name, value) {
            Some(masked) => (name, masked),
            None => (name, String::from_utf8_lossy(value.as_bytes()).into_owned()),
        };
        let headers: Vec<_> = self.headers().iter().map(shown).collect();
        f.debug_struct("Request")
            .field("number", &self.number())
            .field("connection", &self.connection())
            .field("method", self.method())
            .field("path", &self.path())
            .field("headers", &headers)
            .field("body", &excerpt(&String::from_utf8_lossy(self.body())))
            .finish_non_exhaustive()
    }
}

/// The parts of a request, as read by either server.
pub(crate) struct RequestParts {
    pub(crate) body: Bytes,
    pub(crate) connection: Option<usize>,
    pub(crate) headers: HeaderMap,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
}

/// The end of a response.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Fate {
    /// Aborted by the client.
    Aborted,
    /// Cut off by the script, or because the server stopped.
    Cut,
    /// Complete.
    Finished,
    /// Not ended yet.
    Playing,
}

/// The latest requests, within limits.
#[derive(Default)]
pub(crate) struct Log {
    bytes: usize,
    forgotten: usize,
    requests: VecDeque<Request>,
}

impl Log {
    pub(crate) fn push(&mut self, asked: RequestParts) -> Request {
        let request = Request::new(self.forgotten + self.requests.len() + 1, asked);
        self.bytes += request.body().len();
        self.requests.push_back(request.clone());
        // The latest request always stays, however large it is.
        while self.requests.len() > MAX_REQUESTS
            || (self.bytes > MAX_BYTES && self.requests.len() > 1)
        {
            if let Some(oldest) = self.requests.pop_front() {
                self.bytes -= oldest.body().len();
                self.forgotten += 1;
            }
        }
        request
    }

    pub(crate) fn forgotten(&self) -> usize {
        self.forgotten
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.iter().cloned().collect()
    }
}

/// Shortens `text` for a line of a story.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == MAX_EXCERPT {
            shown.push('…');
            break;
        }
        if character.is_control() {
            shown.extend(character.escape_debug());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Shortens and quotes `text` for a line of a story.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", excerpt(text))
}

/// Masks the value of a secret header, except its scheme.
fn masked(name: &HeaderName, value: &HeaderValue) -> Option<String> {
    if !SECRET.contains(name) {
        return None;
    }
    let scheme = value.to_str().ok().and_then(|value| value.split_once(' '));
    match scheme {
        Some((scheme, _)) if *name == header::AUTHORIZATION => Some(format!("{scheme} ****")),
        _ => Some("****".to_owned()),
    }
}

/// Describes the roles and the last message.
fn summary_of(messages: &[Value]) -> String {
    let role = |message: &Value| message["role"].as_str().unwrap_or("no role").to_owned();
    let hidden = messages.len().saturating_sub(MAX_ROLES);
    let mut roles: Vec<_> = messages[hidden..].iter().map(role).collect();
    if hidden > 0 {
        roles.insert(0, "…".to_owned());
    }
    let last = match messages.last().map(|message| &message["content"]) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => format!(" {}", quoted(text)),
        Some(parts) => format!(" {}", excerpt(&parts.to_string())),
    };
    format!("{} ({}{last})", count(messages.len(), "message"), roles.join(", "))
}

/// Formats a count with the right plural.
pub(crate) fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Headers that contain secrets.
pub(crate) const SECRET: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-api-key"),
];

const MAX_BYTES: usize = 64 * 1024 * 1024;
const MAX_EXCERPT: usize = 60;
const MAX_REQUESTS: usize = 1024;
const MAX_ROLES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(body: Bytes) -> RequestParts {
        RequestParts {
            body,
            connection: None,
            headers: HeaderMap::new(),
            method: Method::POST,
            uri: Uri::from_static("/v1/chat/completions"),
        }
    }

    #[test]
    fn the_log_forgets_the_oldest() {
        let mut log = Log::default();
        for _ in 0..MAX_REQUESTS + 3 {
            log.push(asked(Bytes::new()));
        }
        assert_eq!(log.requests().len(), MAX_REQUESTS);
        assert_eq!(log.requests()[0].number(), 4);
        assert_eq!(log.forgotten(), 3);
    }

    #[test]
    fn the_log_counts_bytes() {
        let mut log = Log::default();
        let large = Bytes::from(vec![0; MAX_BYTES / 2 + 1]);
        for _ in 0..3 {
            log.push(asked(large.clone()));
        }
        assert_eq!(log.requests().len(), 1);
        assert_eq!(log.requests()[0].number(), 3);
    }
}
