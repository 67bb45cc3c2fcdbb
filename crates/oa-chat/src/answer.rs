//! One answer, read from the bytes of its body.

mod beginning;
mod conclusion;

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use http::Response;
use oa_aggregate::{Delta, StreamStatus, TextMode, UncleanEnd};
use oa_redact::Secrets;
use oa_transport::{TimeoutKind, Timeouts, Watch};
use oa_types::{AssistantMessage, ContentBlock, Erased, Exclusive, Usage};

use self::beginning::{Beginning, Callback};
use crate::answer_outcome::AnswerOutcome;
use crate::body::{AnyBody, BoxError};
use crate::closing::Closing;
use crate::deltas::{AnswerDelta, DeltaBody, Ending};
use crate::destination::{Destination, secrets_of};
use crate::error::{Error, Result};
use crate::negotiation::Refusal;
use crate::pipeline::{Pipeline, PipelineOptions};
use crate::prepared::PreparedOptions;
use crate::quotation;
use crate::retry_budget::RetryBudget;
use crate::scan::Scan;
use crate::service::BoxFuture;
use crate::source::{Piece, Source};

/// The content type of nearly all answers.
const EVENT_STREAM: &str = "text/event-stream";

/// An answer while it arrives: the response of every chat service.
///
/// It is a stream of [`AnswerDelta`]s. The last one holds the whole message; [`message`](Self::message) reads to the
/// end and returns it. An [`Endpoint`](crate::Endpoint) creates an answer from a server's response,
/// [`from_deltas`](Self::from_deltas) from anything else: a model in memory, another protocol, a recording. Services
/// in between can set callbacks for its [beginning](Self::on_begin) and [end](Self::on_end), and can retry if it
/// [breaks before it has begun](Self::on_early_end).
///
/// # Cancel safety
///
/// Dropping it closes the connection, so the server stops.
#[must_use = "an answer does nothing unless polled"]
pub struct AnswerStream(Erased<Arriving>);

struct Arriving {
    /// The server; `None` for an answer made from deltas.
    destination: Option<Arc<Destination>>,
    /// The options of the request, which name the model; `None` for an answer made from deltas.
    options: Option<PreparedOptions>,
    /// `None` once it has ended or was abandoned.
    body: Option<Source>,
    pipeline: Pipeline,
    /// True while more of the body is wanted.
    reading: bool,
    /// True once the outcome has been reported.
    is_concluded: bool,
    /// The error that ended it early.
    failure: Option<Error>,
    content_type: Option<Cow<'static, str>>,
    watch: Watch,
    beginning: Beginning<AnswerStream>,
    /// The time that the whole answer took, once it has ended.
    whole: Option<Duration>,
    /// The answer that replaces this one; `None` if it comes too late.
    again: Option<Exclusive<BoxFuture<Option<Result<AnswerStream>>>>>,
    /// Bytes of text and of thinking returned so far.
    text: usize,
    thinking: usize,
    /// Finds calls in the text.
    scan: Option<Box<Scan>>,
    /// The rejections before it.
    refusals: Vec<Refusal>,
    /// The final message of an answer made from deltas, once it has arrived.
    ending: Option<Ending>,
}

/// The result of an answer that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Concluded {
    /// The answer, or the part of it that arrived.
    pub message: AssistantMessage,
    /// The error, if the answer is missing or incomplete.
    pub failure: Option<Error>,
    /// Resolves when the connection can be used again.
    pub closing: Option<Closing>,
}

impl AnswerStream {
    pub(crate) fn new(
        destination: &Arc<Destination>,
        options: PreparedOptions,
        response: Response<AnyBody>,
        pipeline: PipelineOptions,
        watch: Watch,
    ) -> Self {
        let content_type = response.headers().get(http::header::CONTENT_TYPE);
        // A copy: the value itself would keep the whole buffer that the head was read into.
        let content_type = content_type.and_then(|value| value.to_str().ok()).map(|value| {
            if value == EVENT_STREAM { EVENT_STREAM.into() } else { value.to_owned().into() }
        });
        let templates = destination.learned.take_templates();
        let pipeline = Pipeline::with_templates(pipeline, templates);
        let mut this = Self::of(Source::new(response.into_body()), pipeline, watch);
        this.0.destination = Some(Arc::clone(destination));
        this.0.options = Some(options);
        this.0.content_type = content_type;
        this
    }

    /// Creates an answer from a stream of deltas: a model in memory, another protocol, a recording.
    ///
    /// It is checked like a server's answer, with the default [`Limits`](crate::Limits): missing call ids are
    /// generated, and broken arguments are repaired or reported. An error of the stream ends the answer. An error that
    /// is not an [`Error`] becomes one of kind `Connect` before the first delta, and of kind `Stream` after it.
    /// Without [`AnswerDelta::Finish`], the answer is complete when the stream ends. No timeouts apply.
    ///
    /// It knows no server: an answer that is made from the deltas of another has none of its
    /// [refusals](Self::take_refusals), and an outcome without [`server`](AnswerOutcome::server).
    ///
    /// ```
    /// use futures_util::stream;
    /// use oa_chat::{AnswerDelta, AnswerStream, Error};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oa_chat::Result<()> {
    /// let deltas = ["Hello", ", world"].map(|text| Ok::<_, Error>(AnswerDelta::text(text)));
    /// let answer = AnswerStream::from_deltas(stream::iter(deltas));
    /// assert_eq!(answer.message().await?.text(), "Hello, world");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_deltas<S, E>(deltas: S) -> Self
    where
        S: Stream<Item = Result<AnswerDelta, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let (body, ending) = DeltaBody::new(deltas);
        let mut times = Timeouts::default();
        (times.first_token, times.idle, times.content, times.total) = Default::default();
        let mut options = PipelineOptions::default();
        // A conversation has several answers, and their calls must not share an id.
        options.aggregator.id_seed = crate::retry_config::random();
        options.aggregator.quirks.text = TextMode::Incremental;
        let pipeline = Pipeline::new(options);
        let mut this = Self::of(Source::new(AnyBody::new(body)), pipeline, Watch::new(times));
        this.0.ending = Some(ending);
        this
    }

    fn of(body: Source, pipeline: Pipeline, watch: Watch) -> Self {
        Self(Erased::new(Arriving {
            destination: None,
            options: None,
            body: Some(body),
            pipeline,
            reading: true,
            is_concluded: false,
            failure: None,
            content_type: None,
            watch,
            beginning: Beginning::default(),
            whole: None,
            again: None,
            text: 0,
            thinking: 0,
            scan: None,
            refusals: Vec::new(),
            ending: None,
        }))
    }

    /// Waits for the next delta; `None` after the last, which is [`AnswerDelta::End`], and after an error.
    ///
    /// # Errors
    ///
    /// The error that broke the answer. Deltas before it are valid.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next_delta(&mut self) -> Option<Result<AnswerDelta>> {
        poll_fn(|cx| self.poll_delta(cx)).await
    }

    /// Reads the answer to its end.
    ///
    /// # Errors
    ///
    /// The error that broke the answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the answer: the connection is closed.
    pub async fn message(mut self) -> Result<AssistantMessage> {
        poll_fn(|cx| self.poll_with(cx, |_| None::<()>)).await;
        let Concluded { message, failure, closing } = self.conclude();
        if let Some(closing) = closing {
            closing.await;
        }
        failure.map_or(Ok(message), Err)
    }

    fn poll_delta(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnswerDelta>>> {
        if self.0.is_concluded {
            return Poll::Ready(None);
        }
        if let Some(delta) = ready!(self.poll_with(cx, AnswerDelta::of)) {
            return Poll::Ready(Some(Ok(delta)));
        }
        let Concluded { message, failure, .. } = self.0.conclude();
        let end = AnswerDelta::End { message: Box::new(message) };
        Poll::Ready(Some(failure.map_or(Ok(end), Err)))
    }

    /// Looks for calls in the text.
    pub(crate) fn scan(&mut self, scan: Scan) {
        self.0.scan = Some(Box::new(scan));
    }

    /// Returns a retry to the budget once the answer has begun or ended well.
    pub(crate) fn credit(&mut self, budget: Arc<RetryBudget>) {
        self.0.beginning.callbacks.push(Callback::Credit(budget));
    }

    /// Records earlier rejections by the server.
    pub(crate) fn note_refusals(&mut self, refusals: Vec<Refusal>) {
        self.0.refusals.extend(refusals);
    }

    /// Takes the rejections that preceded this answer. Each is returned once.
    #[inline]
    pub fn take_refusals(&mut self) -> Vec<Refusal> {
        std::mem::take(&mut self.0.refusals)
    }

    /// Sets a replacement in case the answer breaks before any of it was returned, even if the server reports the
    /// error inside the answer. `ask_again` gets the error, and either retries or returns an error.
    ///
    /// If several are set, the first is called first, and the next if that fails too. Callbacks set before this one are
    /// for the answer that broke; those set later stay for the replacement. Has no effect once the answer has begun.
    pub fn on_early_end<F>(&mut self, ask_again: F)
    where
        F: FnOnce(Error) -> Result<BoxFuture<Result<Self>>> + Send + 'static,
    {
        if self.0.beginning.first_token.is_none() {
            self.0
                .beginning
                .callbacks
                .push(Callback::EarlyEnd(Exclusive::new(Box::new(ask_again))));
        }
    }

    /// Sets a callback that is called when the first piece of the answer is returned. From then on the answer is not
    /// replaced. If it breaks before, the callback is dropped without being called, or kept for a
    /// [replacement](Self::on_early_end). Several are called in order. Has no effect once the answer has begun.
    pub fn on_begin(&mut self, on_begin: impl FnOnce() + Send + 'static) {
        self.0.beginning.callbacks.push(Callback::Begin(Exclusive::new(Box::new(on_begin))));
    }

    /// Sets a callback for the end of the answer. It is always called: when the answer is complete, when it breaks,
    /// and when it is dropped early; if an inner service [replaces](Self::on_early_end) the answer, for the
    /// replacement. Several callbacks are called in the order in which they were set.
    pub fn on_end(&mut self, on_end: impl FnOnce(&AnswerOutcome<'_>) + Send + 'static) {
        self.0.beginning.callbacks.push(Callback::End(Exclusive::new(Box::new(on_end))));
    }

    /// Polls until `pick` returns a value for a delta; `None` at the end. Then call [`conclude`](Self::conclude).
    #[inline]
    pub fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut pick: impl FnMut(Delta<'_>) -> Option<T>,
    ) -> Poll<Option<T>> {
        loop {
            // One round: the deltas that were parsed, then a piece of the body.
            // Deltas in front of an error or of the end are thus delivered before it.
            let this = &mut *self.0;
            if let Some(again) = &mut this.again {
                // What was parsed of an answer is not delivered once it is being replaced.
                match ready!(again.get_mut().as_mut().poll(cx)) {
                    Some(Ok(mut answer)) => {
                        // The new answer inherits what was not reported yet.
                        answer.0.refusals.splice(0..0, std::mem::take(&mut this.refusals));
                        let left = std::mem::take(&mut this.beginning);
                        answer.0.beginning.callbacks.extend(left.callbacks);
                        *self = answer;
                    }
                    Some(Err(error)) => this.replace(error),
                    None => {
                        let received = this.pipeline.received();
                        let late = Error::timed_out(TimeoutKind::Total, &this.watch, received);
                        this.stop(Some(late));
                    }
                }
                continue;
            }
            if this.scan.is_some() {
                if let Some(picked) = this.next_scanned(&mut pick) {
                    return Poll::Ready(Some(picked));
                }
                if this.end_scan() {
                    continue;
                }
            }
            while let Some(delta) = this.pipeline.next_delta() {
                match delta {
                    Delta::Text(text) | Delta::Refusal(text) => this.text += text.len(),
                    Delta::Thinking(thinking) => this.thinking += thinking.len(),
                    _ => {}
                }
                // These are not part of the answer.
                if !matches!(delta, Delta::Problem(_) | Delta::PromptProgress(_)) {
                    this.watch.note_content();
                    this.beginning.note(&this.watch);
                }
                if let Some(picked) = picked(delta, this.destination.as_ref(), &mut pick) {
                    return Poll::Ready(Some(picked));
                }
            }
            if !this.reading {
                return Poll::Ready(None);
            }
            ready!(this.poll_read(cx));
        }
    }

    /// Builds the message and checks that it is an answer. Call it after [`poll_with`](Self::poll_with) has returned
    /// `None`; an earlier call is an interrupt: it drops the rest, which is no failure.
    #[must_use]
    pub fn conclude(mut self) -> Concluded {
        self.0.conclude()
    }

    /// Returns the secrets that the answer's server may repeat; none if the server is not known.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        secrets_of(self.0.destination.as_ref())
    }

    /// Returns the tokens reported so far and the time spent; `None` if the server has reported none.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.0.usage()
    }

    /// Abandons the answer and returns the blocks delivered so far.
    #[must_use]
    pub fn handed_out(mut self) -> Vec<ContentBlock> {
        self.0.tell_end(None, None, true);
        self.0.forget_replaced();
        if let Some(scan) = self.0.scan.take() {
            return scan.into_told();
        }
        let (mut text, mut thinking) = (self.0.text, self.0.thinking);
        let mut blocks = self.0.pipeline.take_answer().blocks;
        for block in &mut blocks {
            match block {
                ContentBlock::Text(block) => cut(&mut block.text, &mut text),
                ContentBlock::Thinking(block) => cut(&mut block.thinking, &mut thinking),
                _ => {}
            }
        }
        blocks
    }

    /// Abandons the answer and returns all blocks that arrived.
    #[must_use]
    pub fn arrived(mut self) -> Vec<ContentBlock> {
        self.0.tell_end(None, None, true);
        self.0.forget_replaced();
        self.0.next_scanned(&mut |_| None::<()>);
        if let Some(mut scan) = self.0.scan.take() {
            scan.finish(true);
            while scan.next_delta().is_some() {}
            return scan.into_blocks();
        }
        self.0.pipeline.take_answer().blocks
    }
}

impl Arriving {
    /// Ends the scan at the end of the text, and reading if the rest is not needed. True if there may be more.
    fn end_scan(&mut self) -> bool {
        let Some(scan) = &mut self.scan else { return false };
        if self.reading && scan.is_done() {
            self.body = None;
            self.end(None);
            return true;
        }
        if self.reading || scan.is_finished() {
            return false;
        }
        let aggregator = self.pipeline.aggregator();
        let reason = aggregator.finish_reason();
        let is_whole = aggregator.is_complete() && !reason.is_length() && !reason.is_filtered();
        scan.finish(self.failure.is_some() || !is_whole);
        true
    }

    /// Moves one piece of the body into the pipeline.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { body: Some(body), pipeline, watch, destination, .. } = self else {
            self.reading = false;
            return Poll::Ready(());
        };
        let end = match ready!(body.poll_piece(watch, cx)) {
            Piece::Bytes(bytes) => {
                watch.note_bytes();
                let (payloads, held_back) =
                    (pipeline.payloads(), pipeline.aggregator().held_back());
                let progress = pipeline.push(bytes);
                body.charge(pipeline.payloads() - payloads);
                if pipeline.aggregator().held_back() != held_back {
                    watch.note_content(); // although no delta has it yet
                }
                // Deltas have no connection that a server may forget to close.
                if destination.is_some()
                    && let Some(within) = pipeline.patience()
                {
                    watch.expect_end(within);
                }
                match progress {
                    Ok(StreamStatus::Done) => Ok(()),
                    Ok(_) => return Poll::Ready(()),
                    Err(error) => Err(Error::pipeline(error, pipeline.received())),
                }
            }
            Piece::End => {
                self.body = None;
                Ok(())
            }
            Piece::Broken(error) => self.broken(error),
            Piece::Expired(kind) => self.expired(kind),
        };
        self.end(end.err());
        Poll::Ready(())
    }

    /// Ends reading, unless the answer is retried.
    fn end(&mut self, failure: Option<Error>) {
        // The end of the body completes a document, or an event without its blank line: it may be an error, too.
        let held_back = self.pipeline.finish().err();
        let held_back = held_back.map(|error| Error::pipeline(error, self.pipeline.received()));
        // An error that the server reported takes precedence over the way its connection ended.
        let failure = self.reported().or(failure).or(held_back);
        match failure.or_else(|| self.missing()) {
            Some(error) => self.replace(error.masked(secrets_of(self.destination.as_ref()))),
            None => self.stop(None),
        }
    }

    /// Asks one service after the other for a replacement, or ends reading. An answer that has begun has none to ask.
    fn replace(&mut self, mut error: Error) {
        (self.again, self.body) = (None, None);
        while let Some((inner, early_end)) = self.beginning.take_replacement() {
            self.tell(inner, None, Some(&error), false);
            match early_end.into_inner()(error) {
                Ok(again) => {
                    self.again = Some(Exclusive::new(Box::pin(self.watch.within_total(again))));
                    return;
                }
                Err(next) => error = next,
            }
        }
        self.stop(Some(error));
    }

    /// Ends reading.
    fn stop(&mut self, failure: Option<Error>) {
        (self.again, self.failure, self.reading) = (None, failure, false);
        self.whole = Some(self.watch.elapsed());
    }

    /// Handles a broken connection: an error, unless the answer is complete.
    #[cold]
    fn broken(&mut self, error: BoxError) -> Result<()> {
        self.body = None;
        if self.pipeline.break_off(UncleanEnd::Broken) {
            return Ok(());
        }
        let (received, begun) = (self.pipeline.received(), self.pipeline.aggregator().has_begun());
        // A stream of deltas may fail with an `Error`, which stays as it is.
        Err(match self.destination {
            None => Error::chat(error, received, begun),
            Some(_) => Error::transport(error, received, begun),
        })
    }

    /// Handles a timeout: an error, unless the answer is complete.
    #[cold]
    fn expired(&mut self, kind: TimeoutKind) -> Result<()> {
        // Closing tells the server to stop.
        self.body = None;
        if self.pipeline.break_off(UncleanEnd::Silent) {
            return Ok(());
        }
        Err(Error::timed_out(kind, &self.watch, self.pipeline.received()))
    }

    /// Like the loop of [`AnswerStream::poll_with`], but looks for calls in the text.
    #[cold]
    fn next_scanned<T>(&mut self, pick: &mut impl FnMut(Delta<'_>) -> Option<T>) -> Option<T> {
        let Self { scan: Some(scan), pipeline, watch, beginning, destination, .. } = self else {
            return None;
        };
        loop {
            let delta = match scan.next_delta() {
                Some(delta) => delta,
                None => match pipeline.next_delta()? {
                    Delta::Text(text) => {
                        scan.push(text);
                        // Text that is held back counts as content too.
                        watch.note_content();
                        continue;
                    }
                    delta @ (Delta::Problem(_) | Delta::PromptProgress(_)) => {
                        match picked(delta, destination.as_ref(), pick) {
                            None => continue,
                            picked => return picked,
                        }
                    }
                    delta => match scan.pass(delta) {
                        Some(delta) => delta,
                        None => {
                            watch.note_content();
                            continue;
                        }
                    },
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

impl Stream for AnswerStream {
    type Item = Result<AnswerDelta>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<AnswerDelta>>> {
        self.poll_delta(cx)
    }
}

/// Passes a delta on. The quotations in a problem are masked first.
#[inline]
fn picked<T>(
    delta: Delta<'_>,
    destination: Option<&Arc<Destination>>,
    pick: &mut impl FnMut(Delta<'_>) -> Option<T>,
) -> Option<T> {
    match delta {
        Delta::Problem(problem) => {
            pick(Delta::Problem(&quotation::problem(problem, secrets_of(destination))))
        }
        delta => pick(delta),
    }
}

/// Cuts a text to the remaining length, in bytes, and subtracts it.
fn cut(text: &mut String, left: &mut usize) {
    // False past the end: a text that is shorter stays whole.
    if text.is_char_boundary(*left) {
        text.truncate(*left);
    }
    *left -= text.len().min(*left);
}

impl fmt::Debug for AnswerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerStream")
            .field("destination", &self.0.destination)
            .field("received", &self.0.pipeline.received())
            .finish_non_exhaustive()
    }
}
