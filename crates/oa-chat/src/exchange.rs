//! One request to one server, with its fallbacks.

use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Response;
use oa_fallback::{Dialect as _, Scanner, TaggedJson};
use oa_transport::Watch;
use tower::Service;

use crate::answer::AnswerStream;
use crate::body::AnyBody;
use crate::destination::Destination;
use crate::endpoint::Endpoint;
use crate::envelope::Offer;
use crate::error::{Error, Result};
use crate::fetch::{check_readable, deliver_chat, refusal};
use crate::negotiation::{Alternatives, Negotiation, Way};
use crate::pipeline::PipelineOptions;
use crate::request::ChatRequest;
use crate::scan::Scan;
use crate::service::{BoxFuture, ResponseHead};

impl Service<ChatRequest> for Endpoint {
    type Response = AnswerStream;
    type Error = Error;
    type Future = BoxFuture<Result<AnswerStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ChatRequest) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move { answer(&endpoint.0, &request).await })
    }
}

/// Sends a request to a server and returns its answer.
pub(crate) async fn answer(
    destination: &Arc<Destination>,
    request: &ChatRequest,
) -> Result<AnswerStream> {
    let options = request.options();
    let dialect = options.dialect(destination).filter(|_| !request.tools().is_empty());
    let alternatives = Alternatives {
        tools: dialect.is_some(),
        format: options.format_fallback.is_some(),
        tool_choice: options.tool_choice_fallback,
        held: dialect.is_some_and(|dialect| dialect.format.is_some()),
        thinking: options.thinking.clone(),
    };
    negotiate(destination, request, Negotiation::new(options.first_way(destination), alternatives))
        .await
}

/// Sends the request in one form after the other, until the server answers or there is no other form.
async fn negotiate(
    destination: &Arc<Destination>,
    request: &ChatRequest,
    mut negotiation: Negotiation,
) -> Result<AnswerStream> {
    loop {
        match try_answer(destination, request, negotiation.way()).await {
            Ok(answer) => return Ok(watched(answer, destination, request, negotiation)),
            Err(error) if negotiation.refused(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Goes on if the server rejects the request inside its answer, after it has sent status 200 (QUIRKS row 67).
fn watched(
    mut answer: AnswerStream,
    destination: &Arc<Destination>,
    request: &ChatRequest,
    mut negotiation: Negotiation,
) -> AnswerStream {
    if let Some(mut lessons) = negotiation.learned() {
        answer.note_refusals(mem::take(&mut lessons.refusals));
        // Not before: only the beginning of an answer proves that the server accepts this form.
        let (destination, options) = (Arc::clone(destination), request.options().clone());
        answer.on_begin(move || {
            destination.learned.note(options.model_at(&destination), &lessons);
        });
    }
    let (destination, request) = (Arc::clone(destination), request.clone());
    answer.on_early_end(move |error| {
        if !negotiation.refused(&error) {
            return Err(error);
        }
        Ok(Box::pin(async move { negotiate(&destination, &request, negotiation).await }))
    });
    answer
}

async fn try_answer(
    destination: &Arc<Destination>,
    request: &ChatRequest,
    way: Way,
) -> Result<AnswerStream> {
    let mut watch = Watch::new(request.options().timeouts).total_since(request.began());
    let mut head = begin(destination, request, way)?;
    let response = poll_fn(|cx| head.poll(&mut watch, cx)).await;
    let response = response.map_err(|error| error.masked(&destination.secrets))?;
    if response.status().is_success() {
        check_readable(response.headers())?;
        return Ok(arriving(destination, request, way, response, watch));
    }
    // Boxed, because most answers are not errors.
    Err(Box::pin(refusal(destination, response, &mut watch)).await)
}

/// Sends a request, written for a server.
///
/// Out of line, like the functions below: their stack is not needed while the answer is awaited.
#[inline(never)]
fn begin(destination: &Arc<Destination>, request: &ChatRequest, way: Way) -> Result<ResponseHead> {
    let options = request.options();
    let envelope = options.envelope(destination, way)?;
    let offer = Offer { tools: request.offers_tools(), usage: way.usage };
    let body = request.body(options.wire_format(destination, way, offer.tools), &envelope, offer);
    Ok(deliver_chat(destination, &envelope, body))
}

/// Makes an answer from the head of a response.
#[inline(never)]
fn arriving(
    destination: &Arc<Destination>,
    request: &ChatRequest,
    way: Way,
    response: Response<AnyBody>,
    watch: Watch,
) -> AnswerStream {
    let options = request.options();
    let mut aggregator = oa_aggregate::Options::default();
    aggregator.limits = options.limits.answer;
    aggregator.quirks = options.quirks(Some(destination));
    aggregator.id_seed = request.id_seed();
    let mut in_thinking = None;
    let grammar = match options.dialect(destination).filter(|_| way.calls_are_text) {
        Some(text) => {
            let is_json = options.parameters.response_format.is_some();
            text.grammar(&options.tool_mode, !request.tools().is_empty(), is_json)
        }
        None => options.recognize_calls.then(|| {
            let tools: &Arc<[_]> = in_thinking.insert(options.parameters.tools.as_slice().into());
            TaggedJson::new().grammar(Arc::clone(tools))
        }),
    };
    if grammar.is_some() {
        // Text that is searched for calls is held a second time, together with the calls found.
        aggregator.limits.held_bytes /= 2;
    }
    let on_bad_chunk = options.on_bad_chunk;
    let pipeline = PipelineOptions { parser: options.limits.events, aggregator, on_bad_chunk };
    let mut answer = AnswerStream::new(destination, options.clone(), response, pipeline, watch);
    if let Some(grammar) = grammar {
        let mut limits = oa_fallback::Limits::default();
        limits.argument_bytes = options.limits.answer.argument_bytes;
        limits.calls = options.limits.answer.calls;
        limits.held_bytes = options.limits.answer.held_bytes / 2;
        let scanner = Scanner::with_limits(grammar, limits);
        // Another sequence than that of the server's own calls, whose ids may be missing, too.
        let mut scan = Scan::new(scanner, !request.id_seed(), request.holds_text());
        scan.in_thinking = in_thinking.map(|tools| (tools, limits));
        answer.scan(scan);
    }
    answer
}
