//! A reply of the server: its content, and how it is delivered.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::chop::Cut;
use crate::requests::{Request, count, excerpt};
use crate::speech::{Part, Speech, Usage};

/// A reply of the server.
///
/// A model's answer is composed in call order ([`say`](Self::say), [`think`](Self::think),
/// [`call`](Self::call), ...) and written in the requested format: with `"stream": true` as
/// `chat.completion.chunk` events (first the role, then text word by word, arguments in fragments, the finish
/// reason, usage if requested, and `[DONE]`), otherwise as one `chat.completion`. The answer names the
/// request's model. Ids and times are fixed, so the same script produces the same bytes.
///
/// Recorded bytes are played unchanged: [`sse`](Self::sse), [`body`](Self::body).
///
/// The other methods control delivery, with the same effect on the body on a socket and in memory:
///
/// | | on a socket | in memory |
/// | --- | --- | --- |
/// | piece ([`cut`](Self::cut)) | an HTTP chunk, in a separate write | a frame |
/// | [`close_after`](Self::close_after) | FIN, in the middle of a chunk or before the last one | `UnexpectedEof` from the body |
/// | [`reset_after`](Self::reset_after) | RST | `ConnectionReset` from the body |
/// | [`stall_after`](Self::stall_after) | silence until the client closes | pending forever |
/// | [`hang_up`](Self::hang_up), [`reset`](Self::reset) | no head, FIN or RST | the same errors from the service |
/// | [`silence`](Self::silence) | no head | the service's future is pending forever |
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use oa_testkit::{Cut, Reply};
/// use serde_json::json;
///
/// let slow = Reply::text("Hello, world").delay(Duration::from_millis(50));
/// let agentic = Reply::new().think("hm").say("I'll look").call("add", json!({"a": 1}));
/// let busy = Reply::error(503, "Loading model").header("retry-after", "1");
/// let recorded = Reply::sse("data: [DONE]\n\n").cut(Cut::Every(1));
/// let broken = Reply::text("Hello, world").reset_after(300);
/// ```
#[derive(Clone)]
#[must_use = "a reply does nothing until it is part of a script"]
pub struct Reply {
    pub(crate) closing: Closing,
    pub(crate) content: Content,
    pub(crate) cut: Option<Cut>,
    pub(crate) delay: Duration,
    pub(crate) delay_first: Option<Duration>,
    pub(crate) delay_head: Duration,
    pub(crate) ending: Option<(Ending, usize)>,
    pub(crate) framing: Option<Framing>,
    pub(crate) headers: HeaderMap,
    pub(crate) status: StatusCode,
}

/// Constructors.
impl Reply {
    /// Creates an empty answer of the model.
    pub fn new() -> Self {
        Self::with(Content::Speech(Speech::default()))
    }

    /// Creates an answer with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().say(text)
    }

    /// Creates a reply that plays recorded bytes as `text/event-stream`.
    pub fn sse(recording: impl Into<Bytes>) -> Self {
        Self::body(200, "text/event-stream", recording)
    }

    /// Creates a reply with any body.
    ///
    /// # Panics
    ///
    /// If the status or content type is invalid.
    #[track_caller]
    pub fn body(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self::with(Content::Body(body.into())).status(status).content_type(content_type)
    }

    /// Creates a JSON reply.
    ///
    /// # Panics
    ///
    /// If the status is invalid.
    #[track_caller]
    pub fn json(status: u16, body: impl Into<Value>) -> Self {
        Self::body(status, "application/json", body.into().to_string())
    }

    /// Creates an error reply.
    ///
    /// A string becomes `{"error": {"message": .., "type": .., "code": status}}`; any other value is the whole
    /// body, for other error formats.
    ///
    /// # Panics
    ///
    /// If the status is invalid.
    #[track_caller]
    pub fn error(status: u16, error: impl Into<Value>) -> Self {
        let body = match error.into() {
            Value::String(message) => {
                let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
                json!({ "error": { "message": message, "type": kind, "code": status } })
            }
            body => body,
        };
        Self::json(status, body)
    }

    /// Creates a reply that `rule` computes from the request.
    ///
    /// The returned reply is played unchanged; settings of this reply are ignored. A panic results in status
    /// 500 and makes the server's `verify` fail.
    ///
    /// # Examples
    ///
    /// ```
    /// use oa_testkit::{Reply, Request};
    ///
    /// let echo = Reply::by(|request: &Request| {
    ///     let last = request.messages().last();
    ///     Reply::text(last.and_then(|message| message["content"].as_str()).unwrap_or("?"))
    /// });
    /// ```
    pub fn by<F>(rule: F) -> Self
    where
        F: Fn(&Request) -> Self + Send + Sync + 'static,
    {
        Self::with(Content::Rule(Arc::new(rule)))
    }

    /// Creates a reply that is never sent: the request is read, and nothing follows.
    pub fn silence() -> Self {
        Self::with(Content::Silence)
    }

    /// Creates no response: the request is read and the connection closed.
    pub fn hang_up() -> Self {
        Self::with(Content::HangUp)
    }

    /// Creates no response: the request is read and the connection reset.
    pub fn reset() -> Self {
        Self::with(Content::Reset)
    }

    /// Creates a reply that is not HTTP: these bytes are sent in place of head and body, and the connection is
    /// closed. In memory it is an `InvalidData` error of the service.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::with(Content::Raw(bytes.into()))
    }

    fn with(content: Content) -> Self {
        Self {
            closing: Closing::Keep,
            content,
            cut: None,
            delay: Duration::ZERO,
            delay_first: None,
            delay_head: Duration::ZERO,
            ending: None,
            framing: None,
            headers: HeaderMap::new(),
            status: StatusCode::OK,
        }
    }
}

/// Content of the model's answer.
///
/// # Panics
///
/// Each of these panics unless the reply was created with [`Reply::new`] or [`Reply::text`], because other
/// replies have no model's answer.
impl Reply {
    /// Adds text, streamed word by word.
    #[track_caller]
    pub fn say(self, text: impl Into<String>) -> Self {
        self.part(Part::Say(text.into()))
    }

    /// Adds thinking as `reasoning_content`, streamed word by word.
    #[track_caller]
    pub fn think(self, text: impl Into<String>) -> Self {
        self.part(Part::Think(text.into()))
    }

    /// Adds a refusal, streamed word by word.
    #[track_caller]
    pub fn refuse(self, text: impl Into<String>) -> Self {
        self.part(Part::Refuse(text.into()))
    }

    /// Adds a tool call with a generated id, unique within the script.
    ///
    /// String arguments are sent unchanged, so `"{\"a\": "` is a call with broken arguments.
    #[track_caller]
    pub fn call(self, name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        self.part(Part::call(None, name.into(), arguments.into()))
    }

    /// Adds a tool call with this id.
    #[track_caller]
    pub fn call_with_id(
        self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<Value>,
    ) -> Self {
        self.part(Part::call(Some(id.into()), name.into(), arguments.into()))
    }

    /// Adds an event with any JSON to the stream, such as an error in the middle. Ignored if the answer is not
    /// streamed.
    #[track_caller]
    pub fn event(self, payload: impl Into<Value>) -> Self {
        self.part(Part::Event(payload.into()))
    }

    /// Sets the finish reason. The default is `tool_calls` if there are calls, otherwise `stop`.
    #[track_caller]
    pub fn finish(mut self, reason: impl Into<String>) -> Self {
        self.speech().finish = Some(reason.into());
        self
    }

    /// Sets the usage, in tokens. The default counts four characters as one token.
    #[track_caller]
    pub fn usage(mut self, prompt: u64, completion: u64) -> Self {
        self.speech().usage = Usage::Given { prompt, completion };
        self
    }

    /// Omits usage, even if requested.
    #[track_caller]
    pub fn without_usage(mut self) -> Self {
        self.speech().usage = Usage::Absent;
        self
    }

    /// Omits the finish reason.
    #[track_caller]
    pub fn without_finish(mut self) -> Self {
        self.speech().finishes = false;
        self
    }

    /// Omits `[DONE]`.
    #[track_caller]
    pub fn without_done(mut self) -> Self {
        self.speech().done = false;
        self
    }

    /// Inserts a comment (`: ping`) after every `events` events; 0 for never.
    #[track_caller]
    pub fn comment_every(mut self, events: usize) -> Self {
        self.speech().comment_every = events;
        self
    }

    #[track_caller]
    fn part(mut self, part: Part) -> Self {
        self.speech().parts.push(part);
        self
    }

    #[track_caller]
    fn speech(&mut self) -> &mut Speech {
        match &mut self.content {
            Content::Speech(speech) => speech,
            _ => panic!("only replies of `Reply::new` and `Reply::text` can say more"),
        }
    }
}

/// Delivery of the reply.
impl Reply {
    /// Sets the status.
    ///
    /// # Panics
    ///
    /// If the status is invalid.
    #[track_caller]
    pub fn status(mut self, status: u16) -> Self {
        self.status = match StatusCode::from_u16(status) {
            Ok(status) => status,
            Err(_) => panic!("{status} is not an HTTP status"),
        };
        self
    }

    /// Adds a header; several values for a name are kept.
    ///
    /// Replaces the server's own `content-length`, `transfer-encoding` and `connection`, so a reply can lie
    /// about its length.
    ///
    /// # Panics
    ///
    /// If the name or value is invalid.
    #[track_caller]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let (name, value) = checked(name, value);
        self.headers.append(name, value);
        self
    }

    /// Sets the content type.
    ///
    /// # Panics
    ///
    /// If it is not a valid header value.
    #[track_caller]
    pub fn content_type(mut self, content_type: &str) -> Self {
        let (name, value) = checked(header::CONTENT_TYPE.as_str(), content_type);
        self.headers.insert(name, value);
        self
    }

    /// Sets how the body is split. By default, event streams are split into events, and other bodies not at
    /// all.
    pub fn cut(mut self, cut: Cut) -> Self {
        self.cut = Some(cut);
        self
    }

    /// Waits before each piece of the body.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits before the first piece of the body, overriding [`delay`](Self::delay).
    pub fn delay_first(mut self, delay: Duration) -> Self {
        self.delay_first = Some(delay);
        self
    }

    /// Waits before the response head.
    pub fn delay_head(mut self, delay: Duration) -> Self {
        self.delay_head = delay;
        self
    }

    /// Closes the connection after this many bytes of the body, not counting framing.
    ///
    /// In the middle of a piece this leaves a partial HTTP chunk; at the end of the body, it omits the
    /// terminating chunk. With [`Framing::Close`] a client cannot detect the truncation, and in memory the body
    /// just ends.
    pub fn close_after(mut self, bytes: usize) -> Self {
        self.ending = Some((Ending::Close, bytes));
        self
    }

    /// Resets the connection after this many bytes of the body, not counting framing.
    pub fn reset_after(mut self, bytes: usize) -> Self {
        self.ending = Some((Ending::Reset, bytes));
        self
    }

    /// Stops sending after this many bytes of the body, not counting framing, and keeps the connection open
    /// until the client closes it.
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.ending = Some((Ending::Stall, bytes));
        self
    }

    /// Sets how the socket server delimits the body. The default is [`Framing::Chunked`] for event streams,
    /// otherwise [`Framing::Length`].
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = Some(framing);
        self
    }

    /// Sends `connection: close` and closes the connection after this reply, on a socket.
    pub fn announce_close(mut self) -> Self {
        self.closing = Closing::Announced;
        self
    }

    /// Sends `connection: keep-alive` but closes the connection after this reply, like llama.cpp's server after
    /// streams.
    pub fn close_when_done(mut self) -> Self {
        self.closing = Closing::Unannounced;
        self
    }
}

impl Reply {
    /// Describes the reply on one line.
    pub(crate) fn summary(&self) -> String {
        let mut words = Vec::new();
        if self.status != StatusCode::OK {
            words.push(format!("status {}", self.status.as_u16()));
        }
        match &self.content {
            Content::Body(body) if self.status == StatusCode::OK => {
                let kind = self.headers.get(header::CONTENT_TYPE);
                let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("something");
                words.push(format!("{} of {kind}", count(body.len(), "byte")));
            }
            Content::Body(body) => words.push(excerpt(&String::from_utf8_lossy(body))),
            Content::HangUp => words.push("no answer, closed".to_owned()),
            Content::Raw(bytes) => words.push(format!("{}, not HTTP", count(bytes.len(), "byte"))),
            Content::Reset => words.push("no answer, reset".to_owned()),
            Content::Rule(_) => words.push("by a rule".to_owned()),
            Content::Silence => words.push("silence".to_owned()),
            Content::Speech(speech) if speech.parts.is_empty() => words.push("nothing".to_owned()),
            Content::Speech(speech) => words.extend(speech.parts.iter().map(Part::summary)),
        }
        if let Some((ending, bytes)) = self.ending {
            let verb = match ending {
                Ending::Close => "closed",
                Ending::Reset => "reset",
                Ending::Stall => "stalled",
                Ending::Whole => "whole",
            };
            words.push(format!("{verb} after {}", count(bytes, "byte")));
        }
        words.join(", ")
    }
}

impl Default for Reply {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reply").field(&format_args!("{}", self.summary())).finish()
    }
}

/// The way in which a socket server delimits the body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Framing {
    /// `transfer-encoding: chunked`, one chunk per piece.
    Chunked,
    /// By closing the connection.
    Close,
    /// `content-length`.
    Length,
}

/// The fate of the connection after the reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Closing {
    Announced,
    Keep,
    Unannounced,
}

/// The end of the body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    Close,
    Reset,
    Stall,
    Whole,
}

/// The content of a reply.
#[derive(Clone)]
pub(crate) enum Content {
    Body(Bytes),
    HangUp,
    Raw(Bytes),
    Reset,
    Rule(Arc<dyn Fn(&Request) -> Reply + Send + Sync>),
    Silence,
    Speech(Speech),
}

#[track_caller]
fn checked(name: &str, value: &str) -> (HeaderName, HeaderValue) {
    match (HeaderName::try_from(name), HeaderValue::from_str(value)) {
        (Ok(name), Ok(value)) => (name, value),
        _ => panic!("{name:?} and its value cannot be a header"),
    }
}
