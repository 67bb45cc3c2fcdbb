//! One answer, from the bytes of its body.

mod closing;
mod source;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Response;
use oa_aggregate::{AggregatedAnswer, Delta, Problem, StreamStatus, UncleanEnd};
use oa_redact::Secrets;
use oa_transport::{TimeoutKind, Watch};
use oa_types::wire::ServerError;
use oa_types::{AssistantMessage, ContentBlock, FinishReason, Usage};

pub(crate) use self::closing::Closing;
pub(crate) use self::source::{Piece, Source};
use crate::endpoint::Endpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::event::AgentEvent;
use crate::pipeline::{Pipeline, PipelineOptions};
use crate::quotation;
use crate::retry::Budget;
use crate::scan::Scan;
use crate::service::{AnyBody, BoxError};
use crate::work::BoxFuture;

/// The content type of nearly all answers.
const EVENT_STREAM: &str = "text/event-stream";

const EMPTY: &str = "the server answered with success and an empty body";

/// One answer, while it arrives: what an [`Endpoint`](crate::Endpoint) makes of a
/// [`ChatRequest`](crate::ChatRequest).
///
/// The agent reads it. Services in between may ask to be told how it ends, and may ask somebody else if
/// it breaks before it has begun.
///
/// # Cancel safety
///
/// Dropping it closes the connection, and the server stops.
#[must_use = "an answer is nothing unless it is read"]
pub struct AnswerStream(Box<Arriving>);

struct Arriving {
    /// Who answers.
    endpoint: Endpoint,
    /// None once it has ended or was given up.
    body: Option<Source>,
    pipeline: Pipeline,
    /// Whether more of the body is wanted.
    reading: bool,
    /// What ended it early.
    failure: Option<Error>,
    content_type: Option<Cow<'static, str>>,
    watch: Watch,
    beginning: Beginning,
    /// How long all of it took, once it has ended.
    whole: Option<Duration>,
    on_end: Option<OnEnd>,
    /// The answer that comes in its place.
    again: Option<BoxFuture<Result<AnswerStream>>>,
    /// How many bytes of text and of thinking were handed out.
    text: usize,
    thinking: usize,
    /// Finds calls in the text.
    scan: Option<Box<Scan>>,
    /// What the server refused before it was asked otherwise.
    refusals: Vec<AgentEvent>,
}

/// What depends on whether anything of it was handed out.
#[derive(Default)]
struct Beginning {
    /// How long its first token took.
    first_token: Option<Duration>,
    /// What to do if it breaks before that.
    early_end: Option<EarlyEnd>,
    on_begin: Option<OnBegin>,
    /// What gets a retry back for it.
    credited: Option<Arc<Budget>>,
}

/// Asks again, or gives the error back.
type EarlyEnd = Box<dyn FnOnce(Error) -> Result<BoxFuture<Result<AnswerStream>>> + Send>;

/// Is told that an answer has begun.
type OnBegin = Box<dyn FnOnce() + Send>;

/// Is told how an answer has ended.
type OnEnd = Box<dyn FnOnce(Option<&Error>) + Send>;

/// What an answer has come to.
pub(crate) struct Concluded {
    /// The whole answer, or what had come of it.
    pub(crate) message: AssistantMessage,
    /// Why it is not the whole one, or none at all.
    pub(crate) failure: Option<Error>,
    /// Resolves when the connection can be used again.
    pub(crate) closing: Option<Closing>,
}

impl AnswerStream {
    pub(crate) fn new(
        endpoint: Endpoint,
        response: Response<AnyBody>,
        options: PipelineOptions,
        watch: Watch,
    ) -> Self {
        let content_type = response.headers().get(http::header::CONTENT_TYPE);
        // A copy: the value itself would keep the whole buffer that the head was read into.
        let content_type = content_type.and_then(|value| value.to_str().ok()).map(|value| {
            if value == EVENT_STREAM { EVENT_STREAM.into() } else { value.to_owned().into() }
        });
        let templates = endpoint.0.learned.take_templates();
        Self(Box::new(Arriving {
            endpoint,
            body: Some(Source::new(response.into_body())),
            pipeline: Pipeline::with_templates(options, templates),
            reading: true,
            failure: None,
            content_type,
            watch,
            beginning: Beginning::default(),
            whole: None,
            on_end: None,
            again: None,
            text: 0,
            thinking: 0,
            scan: None,
            refusals: Vec::new(),
        }))
    }

    /// Has calls found in the text.
    pub(crate) fn scan(&mut self, scan: Scan) {
        self.0.scan = Some(Box::new(scan));
    }

    /// Gives a retry back once the answer has begun, or has ended well.
    pub(crate) fn credit(&mut self, budget: Arc<Budget>) {
        self.0.beginning.credited = Some(budget);
    }

    /// Takes note of what the server refused.
    pub(crate) fn note_refusal(&mut self, refusal: AgentEvent) {
        self.0.refusals.push(refusal);
    }

    /// Returns what the server refused, once.
    pub(crate) fn take_refusals(&mut self) -> Vec<AgentEvent> {
        std::mem::take(&mut self.0.refusals)
    }

    /// Has another answer put in the place of this one if it breaks before anything of it was handed
    /// out, also by an error that the server reports in it: `ask_again` is given the error, and asks,
    /// or gives an error back.
    ///
    /// Of several the one that was set first is asked first, and the next one if that fails too.
    pub fn on_early_end<F>(&mut self, ask_again: F)
    where
        F: FnOnce(Error) -> Result<BoxFuture<Result<Self>>> + Send + 'static,
    {
        self.0.beginning.early_end = Some(match self.0.beginning.early_end.take() {
            None => Box::new(ask_again),
            Some(first) => Box::new(move |error| match first(error) {
                Ok(again) => Ok(Box::pin(async move {
                    match again.await {
                        Ok(mut answer) => {
                            answer.on_early_end(ask_again);
                            Ok(answer)
                        }
                        Err(error) => ask_again(error)?.await,
                    }
                })),
                Err(error) => ask_again(error),
            }),
        });
    }

    /// Has `told` called when the first piece of the answer is handed out, from when on it is no longer
    /// replaced: the server not only took the request, it works on it. If that never comes it is dropped
    /// without a call.
    ///
    /// Of several each is called, in the order in which they were set.
    pub fn on_begin(&mut self, told: impl FnOnce() + Send + 'static) {
        self.0.beginning.on_begin = Some(match self.0.beginning.on_begin.take() {
            None => Box::new(told),
            Some(first) => Box::new(move || {
                first();
                told();
            }),
        });
    }

    /// Has `told` called when the answer has ended: with nothing, or with what it failed by. If the
    /// answer is given up before, by an interrupt or because its client was dropped, it is dropped
    /// without a call.
    ///
    /// Of several each is called, in the order in which they were set.
    pub fn on_end(&mut self, told: impl FnOnce(Option<&Error>) + Send + 'static) {
        self.0.on_end = Some(match self.0.on_end.take() {
            None => Box::new(told),
            Some(first) => Box::new(move |failure| {
                first(failure);
                told(failure);
            }),
        });
    }

    /// Reads until `pick` wants something of a delta; `None` at the end of the answer.
    #[inline]
    pub(crate) fn poll_next<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut pick: impl FnMut(Delta<'_>) -> Option<T>,
    ) -> Poll<Option<T>> {
        loop {
            if self.0.scan.is_some() {
                if let Some(picked) = self.0.next_scanned(&mut pick) {
                    return Poll::Ready(Some(picked));
                }
                if self.end_scan() {
                    continue;
                }
            }
            let this = &mut *self.0;
            while let Some(delta) = this.pipeline.next_delta() {
                match delta {
                    Delta::Text(text) | Delta::Refusal(text) => this.text += text.len(),
                    Delta::Thinking(thinking) => this.thinking += thinking.len(),
                    _ => {}
                }
                // A problem is nothing of the answer.
                if !matches!(delta, Delta::Problem(_)) {
                    this.watch.note_content();
                    this.beginning.note(&this.watch);
                }
                let picked = match delta {
                    Delta::Problem(problem) => {
                        pick(Delta::Problem(&quotation::problem(problem, &this.endpoint.0.secrets)))
                    }
                    delta => pick(delta),
                };
                if picked.is_some() {
                    return Poll::Ready(picked);
                }
            }
            if !self.0.reading {
                return Poll::Ready(None);
            }
            if let Some(again) = &mut self.0.again {
                match ready!(again.as_mut().poll(cx)) {
                    Ok(mut answer) => {
                        answer.0.refusals.splice(0..0, self.take_refusals());
                        let credited = self.0.beginning.credited.take();
                        let beginning = &mut answer.0.beginning;
                        beginning.credited = beginning.credited.take().or(credited);
                        *self = answer;
                    }
                    Err(error) => self.stop(Some(error)),
                }
                continue;
            }
            ready!(self.poll_read(cx));
        }
    }

    /// Ends the scanning at the end of the text, and the reading where all that follows is of no use.
    /// Returns whether there may be more now.
    fn end_scan(&mut self) -> bool {
        let this = &mut *self.0;
        let Some(scan) = &mut this.scan else { return false };
        if this.reading && scan.is_done() {
            this.body = None;
            self.end(None);
            return true;
        }
        if this.reading || scan.is_finished() {
            return false;
        }
        let aggregator = this.pipeline.aggregator();
        let is_whole = aggregator.is_complete() && !aggregator.finish_reason().is_length();
        scan.finish(this.failure.is_some() || !is_whole);
        true
    }

    /// Moves one piece of the body into the pipeline.
    #[inline]
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Arriving { body: Some(body), pipeline, watch, .. } = &mut *self.0 else {
            self.0.reading = false;
            return Poll::Ready(());
        };
        let end = match ready!(body.poll_piece(watch, cx)) {
            Piece::Bytes(bytes) => {
                watch.note_bytes();
                let payloads = pipeline.payloads();
                let progress = pipeline.push(bytes);
                body.charge(pipeline.payloads() - payloads);
                if let Some(within) = pipeline.patience() {
                    watch.expect_end(within);
                }
                match progress {
                    Ok(StreamStatus::Done) => Ok(()),
                    Ok(_) => return Poll::Ready(()),
                    Err(error) => Err(Error::pipeline(error, pipeline.received())),
                }
            }
            Piece::End => {
                self.0.body = None;
                Ok(())
            }
            Piece::Broken(error) => self.0.broken(error),
            Piece::Expired(kind) => self.0.expired(kind),
        };
        self.end(end.err());
        Poll::Ready(())
    }

    /// Ends the reading, unless the answer is asked for again.
    fn end(&mut self, failure: Option<Error>) {
        // What the server itself said counts for more than how its connection ended after that.
        let pipeline = &self.0.pipeline;
        let failure = reported(pipeline.problems())
            .map(|error| Error::in_stream(error, pipeline.received(), &self.0.endpoint.0.secrets))
            .or(failure);
        let Some(early_end) = self.0.beginning.early_end.take() else { return self.stop(failure) };
        let nothing = || (self.0.pipeline.received() == 0).then(|| Error::stream(EMPTY, 0));
        let Some(error) = failure.or_else(nothing) else { return self.stop(None) };
        let error = error.masked(&self.0.endpoint.0.secrets);
        if let Some(told) = self.0.on_end.take() {
            told(Some(&error));
        }
        match early_end(error) {
            Ok(again) => (self.0.again, self.0.body) = (Some(again), None),
            Err(error) => self.stop(Some(error)),
        }
    }

    /// Ends the reading.
    fn stop(&mut self, failure: Option<Error>) {
        let this = &mut *self.0;
        this.again = None;
        let held_back = this.pipeline.finish();
        let held_back =
            held_back.err().map(|error| Error::pipeline(error, this.pipeline.received()));
        this.failure = failure.or(held_back);
        this.reading = false;
        this.whole = Some(this.watch.elapsed());
    }

    /// Makes the answer and finds out whether it is one.
    pub(crate) fn conclude(mut self) -> Concluded {
        let received = self.0.pipeline.received();
        let secrets = &self.0.endpoint.0.secrets;
        // How a body begins that holds no payload, in words that can be shown.
        let strange = (self.0.pipeline.payloads() == 0).then(|| {
            let (kind, head) = (self.0.content_type.as_deref(), self.0.pipeline.head());
            quotation::no_event_stream(kind, head, received, secrets)
        });
        let templates = self.0.pipeline.take_templates();
        let answer = self.0.pipeline.take_answer();
        let read = || failure(&answer, received, strange, secrets);
        let mut failure = self.0.failure.take().or_else(read);
        if let Some(failure) = &mut failure
            && self.0.beginning.first_token.is_none()
            && received > 0
            && (failure.kind() == ErrorKind::Api || self.0.pipeline.payloads() == 0)
        {
            failure.add(self.0.endpoint.0.hint());
        }
        match failure.take() {
            Some(error) => failure = Some(error.masked(secrets)),
            None => {
                self.0.endpoint.0.learned.keep_templates(templates);
                self.0.beginning.give_back();
            }
        }
        if let Some(told) = self.0.on_end.take() {
            told(failure.as_ref());
        }
        let answer = match self.0.scan {
            Some(scan) => scanned(answer, *scan),
            None => answer,
        };
        // After a failure nothing of use can follow; closing tells the server to stop.
        let body = self.0.body.filter(|_| failure.is_none());
        let closing = body.map(|body| Closing::new(body.into_body()));
        let mut message = AssistantMessage::from(answer);
        quotation::broken_calls(&mut message.content, secrets);
        if let (Some(first_token), Some(whole)) = (self.0.beginning.first_token, self.0.whole) {
            let usage = message.usage.get_or_insert_default();
            usage.time_to_first_token = Some(first_token);
            usage.generation_time = Some(whole.saturating_sub(first_token));
        }
        Concluded { message, failure, closing }
    }

    /// Returns what the server has said so far of the cost, with the time that was spent; `None` if it has
    /// said nothing.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let mut usage = self.0.pipeline.aggregator().usage()?;
        usage.time_to_first_token = self.0.beginning.first_token;
        let spent = |first: Duration| self.0.watch.elapsed().saturating_sub(first);
        usage.generation_time = usage.time_to_first_token.map(spent);
        Some(usage)
    }

    /// Gives the answer up: what was handed out of its text and thinking.
    pub(crate) fn handed_out(self) -> Vec<ContentBlock> {
        if let Some(scan) = self.0.scan {
            return scan.into_told();
        }
        let (mut text, mut thinking) = (self.0.text, self.0.thinking);
        let mut blocks = self.0.pipeline.into_answer().blocks;
        for block in &mut blocks {
            match block {
                ContentBlock::Text(block) => cut(&mut block.text, &mut text),
                ContentBlock::Thinking(block) => cut(&mut block.thinking, &mut thinking),
                _ => {}
            }
        }
        blocks
    }

    /// Gives the answer up: what had arrived of it.
    pub(crate) fn arrived(mut self) -> Vec<ContentBlock> {
        self.0.next_scanned(&mut |_| None::<()>);
        if let Some(mut scan) = self.0.scan {
            scan.finish(true);
            while scan.next_delta().is_some() {}
            return scan.into_blocks();
        }
        self.0.pipeline.into_answer().blocks
    }
}

impl Beginning {
    /// Takes note that something is handed out: from now on the answer is not replaced.
    #[inline]
    fn note(&mut self, watch: &Watch) {
        if self.first_token.is_none() {
            self.first_token = Some(watch.elapsed());
            self.early_end = None;
            self.give_back();
            if let Some(told) = self.on_begin.take() {
                told();
            }
        }
    }

    /// The server did what it was asked for.
    fn give_back(&mut self) {
        if let Some(budget) = self.credited.take() {
            budget.give_back();
        }
    }
}

impl Arriving {
    /// The connection broke: an error, unless the answer is complete.
    #[cold]
    fn broken(&mut self, error: BoxError) -> Result<()> {
        self.body = None;
        if self.pipeline.break_off(UncleanEnd::Broken) {
            return Ok(());
        }
        let begun = self.pipeline.aggregator().has_begun();
        Err(Error::transport(error, self.pipeline.received(), begun))
    }

    /// Nothing came for too long: an error, unless the answer is complete.
    #[cold]
    fn expired(&mut self, kind: TimeoutKind) -> Result<()> {
        // Closing tells the server to stop.
        self.body = None;
        if self.pipeline.break_off(UncleanEnd::Silent) {
            return Ok(());
        }
        Err(Error::timed_out(kind, &self.watch, self.pipeline.received()))
    }

    /// As the loop of [`AnswerStream::poll_next`], by way of what finds calls in the text.
    #[cold]
    fn next_scanned<T>(&mut self, pick: &mut impl FnMut(Delta<'_>) -> Option<T>) -> Option<T> {
        let Self { scan: Some(scan), pipeline, watch, beginning, endpoint, .. } = self else {
            return None;
        };
        loop {
            let delta = match scan.next_delta() {
                Some(delta) => delta,
                None => match pipeline.next_delta()? {
                    Delta::Text(text) => {
                        scan.push(text);
                        // What is held back is content all the same.
                        watch.note_content();
                        continue;
                    }
                    Delta::Problem(problem) => {
                        let problem = quotation::problem(problem, &endpoint.0.secrets);
                        if let Some(picked) = pick(Delta::Problem(&problem)) {
                            return Some(picked);
                        }
                        continue;
                    }
                    delta => {
                        scan.pass(&delta);
                        delta
                    }
                },
            };
            watch.note_content();
            beginning.note(watch);
            if let Some(picked) = pick(delta) {
                return Some(picked);
            }
        }
    }
}

/// The answer with the calls that were found in its text.
fn scanned(mut answer: AggregatedAnswer, scan: Scan) -> AggregatedAnswer {
    let blocks = std::mem::replace(&mut answer.blocks, scan.into_blocks());
    let is_call = |block: &ContentBlock| {
        matches!(block, ContentBlock::ToolUse(_) | ContentBlock::ToolUseError(_))
    };
    answer.blocks.extend(blocks.into_iter().filter(is_call));
    let has_calls = answer.blocks.iter().any(|block| matches!(block, ContentBlock::ToolUse(_)));
    if has_calls && matches!(answer.finish_reason, FinishReason::Stop | FinishReason::Unspecified) {
        answer.finish_reason = FinishReason::ToolCalls;
    }
    answer
}

/// What the server reported inside the stream.
fn reported(problems: &[Problem]) -> Option<&ServerError> {
    problems.iter().find_map(|problem| match problem {
        Problem::Server(error) => Some(&**error),
        _ => None,
    })
}

/// Keeps what is left of a length, in bytes.
fn cut(text: &mut String, left: &mut usize) {
    if text.is_char_boundary(*left) {
        text.truncate(*left);
    }
    *left -= text.len().min(*left);
}

/// What is wrong with an answer whose body came to its end; `strange` tells of a body without payloads.
fn failure(
    answer: &AggregatedAnswer,
    received: u64,
    strange: Option<String>,
    secrets: &Secrets,
) -> Option<Error> {
    if let Some(error) = reported(&answer.problems) {
        return Some(Error::in_stream(error, received, secrets));
    }
    if !answer.is_empty() || answer.is_finished() {
        return None;
    }
    let message = if received == 0 {
        EMPTY.to_owned()
    } else if let Some(problem) = answer.problems.first() {
        format!("nothing in the answer could be read: {}", quotation::problem(problem, secrets))
    } else {
        strange
            .unwrap_or_else(|| format!("the stream ended without an answer after {received} bytes"))
    };
    Some(Error::stream(message, received))
}

impl fmt::Debug for AnswerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerStream")
            .field("endpoint", &self.0.endpoint)
            .field("received", &self.0.pipeline.received())
            .finish_non_exhaustive()
    }
}
