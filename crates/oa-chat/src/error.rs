mod kind;
mod record;

use std::error::Error as StdError;
use std::fmt;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_ENCODING, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};
use oa_fallback::says_no_tools;
use oa_output::refuses_format;
use oa_redact::Secrets;
use oa_transport::{TimeoutKind, Watch, retry_after};
use oa_types::Permanent;
use oa_types::wire::{Demands, ServerError, Thinking};

use crate::body::BoxError;
use crate::pipeline::PipelineError;

/// A `Result` whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an [`Error`], for callers that act on it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server rejected the request or failed, and reported it.
    Api,
    /// A hook blocked the prompt or the answer.
    Blocked,
    /// An option is invalid, or a required one is missing.
    Config,
    /// No connection to the server could be made.
    Connect,
    /// The prompt does not fit into the model's context.
    ContextOverflow,
    /// A hook, or a callback such as `before_step`, failed. A prompt, call or answer that it guards does not pass.
    Hook,
    /// The caller interrupted before there was a valid structured output. In all other operations, an interrupt is not
    /// an error.
    Interrupted,
    /// An argument is invalid, such as an empty prompt or an unknown call id.
    InvalidInput,
    /// The server sent more than a limit allows.
    Limit,
    /// The client has reached its maximum number of prompts.
    MaxTurns,
    /// No answer was a valid structured output; [`Error::model_output`] is the last one.
    Output,
    /// A file or a store of results or sessions could not be read or written.
    Storage,
    /// The answer broke off, or the response was not an answer.
    Stream,
    /// A timeout expired; [`Error::timeout`] says which.
    Timeout,
    /// A tool that was run directly failed. Within a turn, a failed tool yields a result, not an error.
    Tool,
    /// No server is available: all are busy, or cooling down after failures.
    Unavailable,
}

/// An error that occurred between a prompt and the end of its answer.
///
/// Messages are for people; [`kind`](Self::kind) and the other methods are for programs. Sources come from
/// private dependencies and may change.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    status: Option<StatusCode>,
    /// The status in an error that the server reported inside a stream, whose own status is a success.
    reported_status: Option<u16>,
    code: Option<String>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    timeout: Option<TimeoutKind>,
    context_sizes: Option<(u64, u64)>,
    context_size: Option<u64>,
    received: Option<u64>,
    model_output: Option<String>,
    retryable: bool,
    /// The cause. Its text is part of the message, so `source` continues with the cause's own source.
    cause: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error, for your own services; nothing in its message is masked.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            status: None,
            reported_status: None,
            code: None,
            request_id: None,
            retry_after: None,
            timeout: None,
            context_sizes: None,
            context_size: None,
            received: None,
            model_output: None,
            retryable: false,
            cause: None,
        }))
    }

    /// Creates an error of kind `Config`, for services with their own options.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// Creates an error of kind `Unavailable`, for services with several servers. The request may be retried, after
    /// `retry_after` if it is set.
    pub fn unavailable(message: impl Into<String>, retry_after: Option<Duration>) -> Self {
        Self::new(ErrorKind::Unavailable, message).retryable_after(retry_after)
    }

    /// Replaces the message. The kind, status, source and all other parts stay.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Sets the cause. Include its text in the message: [`source`](StdError::source) returns the cause's own source.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into().into());
        self
    }

    /// Sets the model's last output, for an answer that is not valid structured output.
    #[must_use]
    pub fn with_model_output(mut self, output: impl Into<String>) -> Self {
        self.0.model_output = Some(output.into());
        self
    }

    /// Marks the request as retryable although this server failed: after `wait`, or immediately.
    #[must_use]
    pub fn retryable_after(mut self, wait: Option<Duration>) -> Self {
        (self.0.retryable, self.0.retry_after) = (true, wait);
        self
    }

    /// Creates the error of an answer that is missing or incomplete.
    pub(crate) fn stream(message: impl Into<String>, received: u64) -> Self {
        let mut error = Self::new(ErrorKind::Stream, message);
        error.0.received = Some(received);
        error
    }

    pub(crate) fn timed_out(kind: TimeoutKind, watch: &Watch, received: u64) -> Self {
        let timeouts = watch.timeouts();
        let limit = match kind {
            TimeoutKind::FirstToken => timeouts.first_token,
            TimeoutKind::Idle => timeouts.idle,
            TimeoutKind::Content => timeouts.content,
            _ => timeouts.total,
        };
        let (limit, after) = (limit.unwrap_or_default(), format!("{received} bytes"));
        let message = match kind {
            TimeoutKind::FirstToken => format!("the answer did not begin within {limit:?}"),
            TimeoutKind::Idle => format!("the answer stalled for {limit:?} after {after}"),
            TimeoutKind::Content => format!("no content arrived for {limit:?} after {after}"),
            TimeoutKind::Total => {
                format!("the answer did not end within {limit:?}; {after} arrived")
            }
            other => other.to_string(),
        };
        let mut error = Self::new(ErrorKind::Timeout, message);
        (error.0.timeout, error.0.received) = (Some(kind), Some(received));
        error
    }

    /// Creates the error that a server reported inside a stream.
    pub(crate) fn in_stream(
        server: &ServerError,
        received: u64,
        begun: bool,
        secrets: &Secrets,
    ) -> Self {
        let mut error = Self::from_server(server, None, secrets);
        (error.0.received, error.0.reported_status) = (Some(received), server.reported_status());
        error.0.retryable &= !begun;
        error.0.retry_after = server.retry_after().filter(|_| error.0.retryable);
        error
    }

    /// Creates the error of a response with an error status.
    pub(crate) fn response(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        secrets: &Secrets,
    ) -> Self {
        let server = server_error(if compression(headers).is_some() { b"" } else { body }, secrets);
        let mut error = Self::from_server(&server, Some(status), secrets);
        if let Some(coding) = compression(headers) {
            error.add(Some(format!("its body uses {coding} compression, which was not requested")));
        }
        let header = |name: &str| Some(secrets.excerpt(headers.get(name)?.to_str().ok()?, WORD));
        if status.is_redirection() {
            let hint = ", and redirects are not followed: set base_url to the final address";
            error.0.message.push_str(hint);
            error.add(header("location").map(|address| format!("it redirects to {address}")));
        }
        error.0.request_id = header("x-request-id");
        let told = || server.retry_after().filter(|_| status == StatusCode::TOO_MANY_REQUESTS);
        error.0.retry_after = retry_after(headers).or_else(told);
        error
    }

    /// Adds a hint.
    pub(crate) fn add(&mut self, hint: Option<String>) {
        if let Some(hint) = hint {
            self.0.message = format!("{} ({hint})", self.0.message);
        }
    }

    /// Creates the error of an answer that cannot be read because the server compressed it unasked.
    pub(crate) fn compressed(headers: &HeaderMap) -> Option<Self> {
        // Nearly all answers have no such header.
        let coding = headers.get(CONTENT_ENCODING).and_then(|_| compression(headers))?;
        let message = format!(
            "the answer uses {coding} compression, which was not requested: check for a proxy that \
             compresses, or decompress in your own transport"
        );
        Some(Self::stream(message, 0))
    }

    fn from_server(server: &ServerError, status: Option<StatusCode>, secrets: &Secrets) -> Self {
        let is_overflow = server.is_context_overflow();
        let kind = if is_overflow { ErrorKind::ContextOverflow } else { ErrorKind::Api };
        // One short line, because template errors include whole programs.
        let words = secrets.excerpt(&server.message, server.message_limit());
        let message = match (status, &*words) {
            (Some(status), "") => format!("the server answered {status}"),
            (Some(status), words) => format!("the server answered {status}: {words}"),
            (None, "") => "the server reported an error without a message".to_owned(),
            (None, words) => format!("the server reported an error: {words}"),
        };
        let mut error = Self::new(kind, message);
        // A code that only repeats a status says less than the type.
        let is_status = |code: &str| code.len() == 3 && code.parse::<u16>().is_ok();
        let telling = server.code.as_ref().filter(|code| !is_status(code));
        let code = telling.or(server.kind.as_ref()).or(server.code.as_ref());
        (error.0.status, error.0.code) = (status, code.map(|code| secrets.excerpt(code, WORD)));
        let passes = server.is_transient(status.map(|status| status.as_u16()));
        error.0.retryable = !is_overflow && (passes || status.is_some() && error.blames_output());
        error.0.context_sizes = server.context_sizes();
        error.0.context_size = server.context_size();
        error
    }

    /// Masks the secrets in the error: a foreign transport may have put anything into it.
    pub(crate) fn masked(mut self, secrets: &Secrets) -> Self {
        let Inner { message, code, request_id, cause, .. } = &mut *self.0;
        for word in [Some(message), code.as_mut(), request_id.as_mut()].into_iter().flatten() {
            *word = secrets.clean(word);
        }
        // Nothing inside a foreign error can be masked.
        cause.take_if(|cause| shows(&**cause, secrets));
        self
    }

    /// Creates the error of a transport that failed before or inside the answer.
    pub(crate) fn transport(source: BoxError, received: u64, begun: bool) -> Self {
        use oa_transport::ErrorKind as Transport;
        let inner = source.downcast_ref::<oa_transport::Error>();
        let (kind, timeout) = match inner.map(|error| (error.kind(), error.timeout())) {
            Some((_, Some(timeout))) => (ErrorKind::Timeout, Some(timeout)),
            Some((Transport::Connect | Transport::Resolve | Transport::Tls, None)) => {
                (ErrorKind::Connect, None)
            }
            Some((
                Transport::InvalidCertificate
                | Transport::InvalidKey
                | Transport::InvalidUri
                | Transport::TlsMissing,
                None,
            )) => (ErrorKind::Config, None),
            Some(_) => (ErrorKind::Stream, None),
            // Another transport: if nothing has arrived, assume that it could not connect.
            None if received == 0 && !begun => (ErrorKind::Connect, None),
            None => (ErrorKind::Stream, None),
        };
        // The transport's message is one line with the host, the port and the failure.
        let message = match inner {
            Some(inner) => inner.to_string(),
            None if received == 0 => format!("no answer: {source}"),
            None => format!("the answer broke off after {received} bytes: {source}"),
        };
        let mut error = Self::new(kind, message);
        // A peer that speaks another protocol, or shows a wrong certificate, will do so again.
        let lasting = inner.is_some_and(|error| {
            matches!(error.kind(), Transport::Protocol | Transport::Tls)
                && error.timeout().is_none()
        }) || Permanent::marks(&*source);
        error.0.retryable = !begun && !lasting && kind != ErrorKind::Config;
        (error.0.timeout, error.0.received) = (timeout, Some(received));
        error.0.cause = Some(source.into());
        error
    }

    /// Wraps the error of a chat service or of deltas: an [`Error`], unless they have their own type.
    pub(crate) fn chat(source: BoxError, received: u64, begun: bool) -> Self {
        match source.downcast::<Self>() {
            Ok(error) => *error,
            Err(source) => Self::transport(source, received, begun),
        }
    }

    pub(crate) fn pipeline(error: PipelineError, received: u64) -> Self {
        if let PipelineError::BadChunk(_) = error {
            // Without the cause: it quotes the server, and secrets are masked only in the message.
            return Self::stream(format!("{error}; {received} bytes arrived"), received);
        }
        let mut this = Self::new(ErrorKind::Limit, format!("{error}; {received} bytes arrived"));
        this.0.received = Some(received);
        this.with_cause(error)
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the HTTP status, if the server responded with an error status.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.status.map(|status| status.as_u16())
    }

    /// Returns the HTTP status, or the one in an error that the server reported inside a stream.
    #[doc(hidden)]
    #[must_use]
    pub fn reported_status(&self) -> Option<u16> {
        self.status().or(self.0.reported_status)
    }

    /// Returns the server's own error code or type.
    #[must_use]
    pub fn api_code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// Returns the server's request id, for its operator.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Returns how long the server asks to wait before a retry: from a header, or, with a 429, from its body, such as
    /// "Please try again in 7.66s".
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns which timeout expired.
    #[must_use]
    pub fn timeout(&self) -> Option<TimeoutKind> {
        self.0.timeout
    }

    /// Returns the sizes of the prompt and of the model's context, in tokens, if the server reported both with an
    /// error of kind `ContextOverflow`.
    ///
    /// They are read from members of the error, as in llama.cpp, or from the known wording of other servers. If the
    /// prompt fits and only the answer would overflow, the prompt is smaller than the context. Sizes that the server
    /// calls an estimate are ignored.
    #[must_use]
    pub fn context_sizes(&self) -> Option<(u64, u64)> {
        self.0.context_sizes
    }

    /// Returns the size of the model's context, in tokens, if the server reported it with an error of kind
    /// `ContextOverflow`. More servers report this than both [sizes](Self::context_sizes).
    #[must_use]
    pub fn context_size(&self) -> Option<u64> {
        self.0.context_size
    }

    /// Returns how many bytes of the answer had arrived.
    #[must_use]
    pub fn received(&self) -> Option<u64> {
        self.0.received
    }

    /// Returns the model's last output if none was valid structured output, truncated to 2,000 characters.
    #[must_use]
    pub fn model_output(&self) -> Option<&str> {
        self.0.model_output.as_deref()
    }

    /// Returns the cause that a service, a transport or [`with_cause`](Self::with_cause) set, to downcast it. Its text
    /// is part of the message, so [`source`](StdError::source) skips it.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.0.cause.as_deref()
    }

    /// Returns `true` if the server rejected the request because of a member of this name, by a status or by an error
    /// inside its answer.
    #[must_use]
    pub fn refuses(&self, member: &str) -> bool {
        matches!(self.rejected_with(), Some(400 | 404 | 422)) && self.0.message.contains(member)
    }

    /// Returns the status with which the server rejected the request. An error inside a response with status 200 may
    /// have it as its code; without one, it counts as 400.
    #[doc(hidden)]
    #[must_use]
    pub fn rejected_with(&self) -> Option<u16> {
        self.reported_status().or_else(|| (self.kind() == ErrorKind::Api).then_some(400))
    }

    /// Returns `true` if the server says that it rejected what the model wrote, not the request (QUIRKS row 33).
    pub(crate) fn blames_output(&self) -> bool {
        let codes = ["json_validate_failed", "output_parse_failed", "tool_use_failed"];
        self.api_code().is_some_and(|code| codes.contains(&code))
    }

    /// Adds the change to the form of the request that the server asks for; returns false if it asks for nothing new.
    #[doc(hidden)]
    #[must_use]
    pub fn adds_to(&self, demands: &mut Demands) -> bool {
        self.rejected_with().is_some_and(|status| demands.add(status, &self.0.message))
    }

    /// Adds what the server says about the amount of thinking; returns false if it says nothing new about it.
    pub(crate) fn adds_thinking(&self, demands: &mut Demands, thinking: &Thinking) -> bool {
        self.rejected_with().is_some_and(|it| demands.add_thinking(it, &self.0.message, thinking))
    }

    /// Returns `true` if the server says that it does not support the response format.
    pub(crate) fn refuses_format(&self) -> bool {
        self.rejected_with().is_some_and(|status| refuses_format(status, &self.0.message))
    }

    /// Returns `true` if the server says that the model does not support tools.
    #[doc(hidden)]
    #[must_use]
    pub fn says_no_tools(&self) -> bool {
        self.rejected_with().is_some_and(|status| says_no_tools(status, &self.0.message))
    }

    /// Returns `true` if the same request may succeed later and no output was delivered, that is, if
    /// [`RetryConfig`](crate::RetryConfig) retries it. The timeouts of a silent server are not retryable. Errors inside a
    /// response with status 200 are retryable if they tell of an overload (QUIRKS row 144).
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }
}

/// True if an error or one of its sources shows a secret.
fn shows(error: &(dyn StdError + 'static), secrets: &Secrets) -> bool {
    iter::successors(Some(error), |&error| error.source())
        .any(|error| !secrets.spans(&format!("{error} {error:?}")).is_empty())
}

/// The part of a code or an id that is shown, in characters.
const WORD: usize = 200;

/// Reads the body of a response with an error status. Masks it first, since skipping a part may split a key.
pub(crate) fn server_error(body: &[u8], secrets: &Secrets) -> ServerError {
    ServerError::from_body(secrets.mask(&String::from_utf8_lossy(body)).as_bytes())
}

/// Returns the encoding that a body is compressed with.
fn compression(headers: &HeaderMap) -> Option<&'static str> {
    let values = [CONTENT_ENCODING, TRANSFER_ENCODING].map(|name| headers.get_all(name));
    let codings = values.iter().flatten().filter_map(|value| value.to_str().ok());
    // Others, such as `identity` and the names of character sets, change nothing.
    codings.flat_map(|value| value.split(',')).find_map(|coding| {
        COMPRESSIONS.into_iter().find(|known| coding.trim().eq_ignore_ascii_case(known))
    })
}

const COMPRESSIONS: [&str; 8] =
    ["br", "compress", "dcb", "dcz", "deflate", "gzip", "x-gzip", "zstd"];

impl From<oa_types::Error> for Error {
    fn from(error: oa_types::Error) -> Self {
        let is_input = error.kind() == oa_types::ErrorKind::InvalidInput;
        let kind = if is_input { ErrorKind::InvalidInput } else { ErrorKind::Config };
        Self::new(kind, error.to_string()).with_cause(error)
    }
}

impl From<oa_tools::Error> for Error {
    fn from(error: oa_tools::Error) -> Self {
        let kind = match error.kind() {
            oa_tools::ErrorKind::Config => ErrorKind::Config,
            oa_tools::ErrorKind::InvalidInput => ErrorKind::InvalidInput,
            _ => ErrorKind::Tool,
        };
        Self::new(kind, error.to_string()).with_cause(error)
    }
}

/// `InvalidInput` stays so; all else is `Storage`. [`Error::cause`] is the error of the store, with its own kind.
#[cfg(feature = "session")]
impl From<oa_session::Error> for Error {
    fn from(error: oa_session::Error) -> Self {
        let is_input = error.kind() == oa_session::ErrorKind::InvalidInput;
        let kind = if is_input { ErrorKind::InvalidInput } else { ErrorKind::Storage };
        Self::new(kind, error.to_string()).with_cause(error)
    }
}

#[cfg(feature = "session")]
impl From<oa_session::FollowError<Self>> for Error {
    fn from(error: oa_session::FollowError<Self>) -> Self {
        let message = error.to_string();
        match error {
            oa_session::FollowError::Conversation(error) => error,
            oa_session::FollowError::Store(error) => Self::from(error).with_message(message),
        }
    }
}

/// As for a request that failed before its answer began.
impl From<oa_transport::Error> for Error {
    fn from(error: oa_transport::Error) -> Self {
        Self::transport(error.into(), 0, false)
    }
}

/// `main() -> Result` prints this: the message first, then only the fields that are set.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        let mut shown = f.debug_struct("Error");
        shown.field("message", &inner.message).field("kind", &inner.kind);
        let mut set = |name: &str, value: Option<&dyn fmt::Debug>| {
            value.map(|value| shown.field(name, value));
        };
        set("status", inner.status.as_ref().map(|status| status as _));
        set("code", inner.code.as_ref().map(|code| code as _));
        set("request_id", inner.request_id.as_ref().map(|id| id as _));
        set("retry_after", inner.retry_after.as_ref().map(|wait| wait as _));
        set("timeout", inner.timeout.as_ref().map(|timeout| timeout as _));
        set("context_sizes", inner.context_sizes.as_ref().map(|sizes| sizes as _));
        set("context_size", inner.context_size.as_ref().map(|size| size as _));
        set("received", inner.received.as_ref().map(|received| received as _));
        set("model_output", inner.model_output.as_ref().map(|output| output as _));
        set("retryable", inner.retryable.then_some(&true));
        set("source", inner.cause.as_ref().map(|cause| cause as _));
        shown.finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_ref()?.source()
    }
}
