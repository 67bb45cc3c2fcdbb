//! The chat-request service: from a conversation to an answer. Retries are a layer around it, and so is
//! whatever chooses among several servers.

use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use oa_fallback::{Dialect as _, Scanner, TaggedJson};
use oa_transport::{RequestBody, Watch};
use oa_types::{History, Message};
use tokio::time::Instant;
use tower::Service;

use crate::answer::AnswerStream;
use crate::dialect::Spoken;
use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, Wanted};
use crate::error::{Error, Result};
use crate::event::AgentEvent;
use crate::manner::Manner;
use crate::pipeline::PipelineOptions;
use crate::scan::Scan;
use crate::service::{Answer, AnyBody, readable, refusal};
use crate::settings::Settings;
use crate::structured::Asking;
use crate::transcript::Transcript;
use crate::work::BoxFuture;

/// One request for an answer, on its way to a server. A clone shares all it has.
///
/// An [`Endpoint`] answers it. What lies between may look at it, hold it back or choose who is to
/// answer; it cannot be changed.
#[derive(Clone)]
pub struct ChatRequest {
    pub(crate) settings: Arc<Settings>,
    pub(crate) history: History,
    /// The history as it was written for a server of this manner.
    pub(crate) manner: Manner,
    /// The messages, each with a comma before it.
    pub(crate) segments: Arc<[Bytes]>,
    /// Those that are in no segment yet.
    pub(crate) last: Bytes,
    /// Whether tools are offered.
    pub(crate) tools: bool,
    /// Whether text behind a call is held back.
    pub(crate) holds_text: bool,
    /// What ids are made of that the server leaves out.
    pub(crate) id_seed: u64,
    pub(crate) conversation: u64,
    /// When it was made, however often it is sent.
    pub(crate) began: Instant,
}

impl ChatRequest {
    /// Returns a number that is the same for all requests of one conversation, and differs from that of
    /// any other: a server that has answered one has most of the next in its prompt cache.
    #[must_use]
    pub fn conversation(&self) -> u64 {
        self.conversation
    }

    /// Returns the messages, without the system prompt.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.history
    }

    /// Returns the model's name, as the agent has it.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.settings.request.model
    }

    /// Returns whether tools are offered to the model.
    #[must_use]
    pub fn offers_tools(&self) -> bool {
        self.tools
    }

    /// When its time is up, wherever it is by then.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.began.checked_add(self.settings.timeouts.total?)
    }

    /// The body for a server of this manner; the messages are those at hand, unless it wants them
    /// otherwise.
    fn body(&self, manner: Manner, envelope: &Envelope, wanted: Wanted) -> RequestBody {
        let instructions = manner.instructions(&self.history);
        if manner == self.manner {
            return envelope.body(instructions.as_deref(), &self.segments, &self.last, wanted);
        }
        let (segments, last) = Transcript::of(manner, &self.history).bytes();
        envelope.body(instructions.as_deref(), &segments, &last, wanted)
    }
}

impl fmt::Debug for ChatRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatRequest")
            .field("model", &self.model())
            .field("messages", &self.history.len())
            .field("conversation", &self.conversation)
            .finish_non_exhaustive()
    }
}

/// Has an endpoint answer.
pub(crate) async fn answer(endpoint: &Endpoint, request: &ChatRequest) -> Result<AnswerStream> {
    let (settings, learned) = (&request.settings, &endpoint.0.learned);
    let refuses_usage = &learned.refuses_usage;
    let asks_for_usage = !refuses_usage.load(Ordering::Relaxed);
    let mut usage = asks_for_usage;
    let mut spoken = settings.spoken(&endpoint.0);
    let mut asking = settings.asking(&endpoint.0);
    let offers_tools = request.tools && !settings.request.tools.is_empty();
    let (mut refusal, mut refused_form) = (None, None);
    loop {
        match try_answer(endpoint, request, spoken, asking, usage).await {
            Err(error) if usage && error.refuses("stream_options") => usage = false,
            Err(error) if spoken.is_none() && offers_tools && error.says_no_tools() => {
                spoken = settings.spoken.as_ref();
                if spoken.is_none() {
                    return Err(error);
                }
                refusal = Some(error.to_string());
            }
            Err(error) if settings.form.is_some() && error.refuses_form() => {
                let Some(next) = asking.next() else { return Err(error) };
                asking = next;
                refused_form.get_or_insert_with(|| error.to_string());
            }
            Ok(mut answer) => {
                if usage != asks_for_usage {
                    refuses_usage.store(true, Ordering::Relaxed);
                }
                if let Some(refusal) = refusal {
                    learned.without_tools.note(settings.model_at(&endpoint.0), ());
                    answer.note_refusal(AgentEvent::ToolsRefused(refusal));
                }
                if let Some(refusal) = refused_form {
                    learned.asking.note(settings.model_at(&endpoint.0), asking);
                    answer.note_refusal(AgentEvent::FormatRefused(refusal));
                }
                return Ok(answer);
            }
            Err(error) => return Err(error),
        }
    }
}

async fn try_answer(
    endpoint: &Endpoint,
    request: &ChatRequest,
    spoken: Option<&Arc<Spoken>>,
    asking: Asking,
    usage: bool,
) -> Result<AnswerStream> {
    let mut watch = Watch::new(request.settings.timeouts).total_since(request.began);
    let mut answer = begin(endpoint, request, spoken, asking, usage)?;
    let response = poll_fn(|cx| answer.poll(&mut watch, cx)).await;
    let response = response.map_err(|error| error.masked(&endpoint.0.secrets))?;
    if response.status().is_success() {
        return Ok(arriving(endpoint, request, spoken, readable(response)?, watch));
    }
    // In a box: most answers are no errors.
    Err(Box::pin(refusal(endpoint, response, &mut watch)).await)
}

/// Sends a request, written for a server.
///
/// Out of line, as what follows is: what it needs of the stack is not needed while the answer is
/// waited for.
#[inline(never)]
fn begin(
    endpoint: &Endpoint,
    request: &ChatRequest,
    spoken: Option<&Arc<Spoken>>,
    asking: Asking,
    usage: bool,
) -> Result<Answer> {
    let (settings, destination) = (&request.settings, &endpoint.0);
    let envelope = settings.envelope(endpoint, spoken.is_some(), asking)?;
    let wanted = Wanted { tools: request.tools, usage };
    let body = request.body(settings.manner(destination, spoken, asking), &envelope, wanted);
    Ok(destination.service.deliver_chat(&envelope, body))
}

/// An answer whose head has come.
#[inline(never)]
fn arriving(
    endpoint: &Endpoint,
    request: &ChatRequest,
    spoken: Option<&Arc<Spoken>>,
    response: Response<AnyBody>,
    watch: Watch,
) -> AnswerStream {
    let settings = &request.settings;
    let mut aggregator = oa_aggregate::Options::default();
    aggregator.limits = settings.limits.answer;
    aggregator.quirks = settings.quirks(&endpoint.0);
    aggregator.id_seed = request.id_seed;
    let grammar = match spoken {
        // Nothing can be called, and this is as it would be with a model that has function calling.
        Some(spoken) if !settings.tool_mode.is_text() && spoken.tools.is_empty() => None,
        Some(spoken) => Some(spoken.dialect.grammar(Arc::clone(&spoken.tools))),
        None => settings
            .recognizes_calls
            .then(|| TaggedJson::new().grammar(settings.request.tools.as_slice().into())),
    };
    if grammar.is_some() {
        // Text in which calls are looked for is held once more, with the calls that are found.
        aggregator.limits.held_bytes /= 2;
    }
    let on_bad_chunk = settings.on_bad_chunk;
    let options = PipelineOptions { parser: settings.limits.events, aggregator, on_bad_chunk };
    let mut answer = AnswerStream::new(endpoint.clone(), response, options, watch);
    if let Some(grammar) = grammar {
        let mut limits = oa_fallback::Limits::default();
        limits.argument_bytes = settings.limits.answer.argument_bytes;
        limits.calls = settings.limits.answer.calls;
        limits.held_bytes = settings.limits.answer.held_bytes / 2;
        let scanner = Scanner::with_limits(grammar, limits);
        answer.scan(Scan::new(scanner, request.id_seed, request.holds_text));
    }
    answer
}

/// Any chat service, erased so that no type parameter is left: for those who keep several of different
/// types. Errors of other types become [`Error`]s of kind `Connect`.
///
/// It is always ready: what it is made of is waited for in the call.
#[derive(Clone)]
pub struct AnyChat(Arc<dyn Ask>);

/// What is left of a service: each request has a clone of its own.
trait Ask: Send + Sync {
    fn ask(&self, request: ChatRequest) -> BoxFuture<Result<AnswerStream>>;
}

impl<S> Ask for S
where
    S: Service<ChatRequest, Response = AnswerStream> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn StdError + Send + Sync>>,
    S::Future: Send,
{
    fn ask(&self, request: ChatRequest) -> BoxFuture<Result<AnswerStream>> {
        let mut service = self.clone();
        Box::pin(async move {
            let ready = poll_fn(|cx| service.poll_ready(cx)).await;
            ready.map_err(|error| Error::chat(error.into()))?;
            service.call(request).await.map_err(|error| Error::chat(error.into()))
        })
    }
}

impl AnyChat {
    /// Erases a service.
    pub fn new<S>(service: S) -> Self
    where
        S: Service<ChatRequest, Response = AnswerStream> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn StdError + Send + Sync>>,
        S::Future: Send,
    {
        Self(Arc::new(service))
    }
}

impl Service<ChatRequest> for AnyChat {
    type Response = AnswerStream;
    type Error = Error;
    type Future = BoxFuture<Result<AnswerStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ChatRequest) -> Self::Future {
        self.0.ask(request)
    }
}

impl fmt::Debug for AnyChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyChat").finish_non_exhaustive()
    }
}
