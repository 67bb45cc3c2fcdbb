use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use http::Response;
use oa_aggregate::{Answer, Delta, Problem, Progress};
use oa_transport::Watch;
use oa_types::wire::ServerError;
use oa_types::{AssistantMessage, ContentBlock, FinishReason, TextBlock, ThinkingBlock, Usage};
use tokio::time::{Sleep, sleep};

use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::pipeline::Pipeline;
use crate::service::AnyBody;

/// How long the last bytes of a body may take after the server said `[DONE]`. They are waited for
/// only so that the connection can be used again.
const LAST_BYTES: Duration = Duration::from_millis(100);

/// The answer to a [`query`](crate::query): blocks as they arrive.
///
/// Each piece of text or thinking is a block of its own; tool calls come whole, after the text, with the
/// input that a hook may have given them; a call that a hook blocked comes as `ToolUseError`. When
/// it has ended, [`message`](Self::message) has the whole answer, [`finish_reason`](Self::finish_reason)
/// and [`usage`](Self::usage) what the server said about it.
///
/// # Cancel safety
///
/// Dropping a pending [`next`](Self::next) loses nothing. Dropping the stream closes the connection,
/// and the server stops.
#[must_use = "streams do nothing unless polled"]
pub struct BlockStream {
    /// None once it has ended or was given up.
    body: Option<AnyBody>,
    /// None once the answer is made.
    pipeline: Option<Box<Pipeline>>,
    /// Whether more of the body is wanted.
    reading: bool,
    /// What is handed out after the text.
    gate: Gate,
    /// What is reported after everything that came before it.
    failure: Option<Error>,
    message: Option<AssistantMessage>,
    content_type: Option<String>,
    watch: Watch,
    last_bytes: Option<Pin<Box<Sleep>>>,
}

impl BlockStream {
    pub(crate) fn new(
        response: Response<AnyBody>,
        pipeline: Pipeline,
        watch: Watch,
        gate: Gate,
    ) -> Self {
        let content_type = response.headers().get(http::header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            body: Some(response.into_body()),
            pipeline: Some(Box::new(pipeline)),
            reading: true,
            gate,
            failure: None,
            message: None,
            content_type,
            watch,
            last_bytes: None,
        }
    }

    /// Returns the next block, or `None` at the end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<ContentBlock>> {
        poll_fn(|cx| self.poll_block(cx)).await
    }

    /// Reads to the end and returns all text that was not read before, joined.
    ///
    /// # Errors
    ///
    /// Whatever ends the stream early; what had come is in [`message`](Self::message).
    ///
    /// # Cancel safety
    ///
    /// Text that was read is lost if the future is dropped, but for [`message`](Self::message).
    pub async fn text(&mut self) -> Result<String> {
        let mut text = String::new();
        while let Some(block) = self.next().await {
            if let ContentBlock::Text(block) = block? {
                text.push_str(&block.text);
            }
        }
        Ok(text)
    }

    /// Returns why the answer ended, once it has; `Unspecified` if the server did not say.
    #[must_use]
    pub fn finish_reason(&self) -> Option<&FinishReason> {
        Some(&self.message.as_ref()?.finish_reason)
    }

    /// Returns what the answer cost, once it has ended and if the server said so.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.message.as_ref()?.usage
    }

    /// Returns the whole answer once it has ended; what had come of it if it failed.
    #[must_use]
    pub fn message(&self) -> Option<&AssistantMessage> {
        self.message.as_ref()
    }

    fn poll_block(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ContentBlock>>> {
        while let Some(pipeline) = &mut self.pipeline {
            if let Some(block) = next_block(pipeline) {
                self.watch.note_content();
                return Poll::Ready(Some(Ok(block)));
            }
            if self.reading {
                ready!(self.poll_read(cx));
            } else {
                self.conclude();
            }
        }
        if let Some(call) = ready!(self.gate.poll_next(cx)) {
            return Poll::Ready(Some(call));
        }
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        ready!(self.poll_last_bytes(cx));
        Poll::Ready(None)
    }

    /// Moves one piece of the body into the pipeline.
    #[inline]
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (Some(body), Some(pipeline)) = (&mut self.body, &mut self.pipeline) else {
            self.reading = false;
            return Poll::Ready(());
        };
        let end = match body.as_mut().poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let Ok(bytes) = frame.into_data() else { return Poll::Ready(()) };
                self.watch.note_bytes();
                match pipeline.push(bytes) {
                    Ok(Progress::Done) => Ok(()),
                    Ok(_) => return Poll::Ready(()),
                    Err(error) => Err(Error::pipeline(error, pipeline.received())),
                }
            }
            Poll::Ready(None) => {
                self.body = None;
                Ok(())
            }
            Poll::Ready(Some(Err(error))) => {
                let begun = pipeline.aggregator().has_begun();
                Err(Error::transport(error, pipeline.received(), begun))
            }
            Poll::Pending => {
                let kind = ready!(self.watch.poll_expired(cx));
                Err(Error::timed_out(kind, &self.watch, pipeline.received()))
            }
        };
        let held_back =
            pipeline.finish().map_err(|error| Error::pipeline(error, pipeline.received()));
        self.failure = end.and(held_back).err();
        self.reading = false;
        Poll::Ready(())
    }

    /// Makes the answer and finds out whether it is one.
    fn conclude(&mut self) {
        let Some(pipeline) = self.pipeline.take() else { return };
        let received = pipeline.received();
        // How a body begins that holds no payload, in words that can be shown.
        let strange = (pipeline.payloads() == 0).then(|| {
            let content_type = self.content_type.as_deref().unwrap_or("unknown type");
            let head = ServerError::from_body(pipeline.head()).message;
            format!("no event stream but {received} bytes of {content_type}: {head}")
        });
        let answer = pipeline.into_answer();
        if self.failure.is_none() {
            self.failure = failure(&answer, received, strange);
        }
        let message = AssistantMessage::from(answer);
        if self.failure.is_some() {
            // Nothing of use can follow; closing tells the server to stop.
            self.body = None;
        } else {
            self.gate.open(&message);
        }
        self.message = Some(message);
    }

    /// Waits a moment for the end of the body, so that the connection can be used again.
    fn poll_last_bytes(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(body) = &mut self.body {
            match body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(None | Some(Err(_))) => self.body = None,
                Poll::Pending => {
                    let timer = self.last_bytes.get_or_insert_with(|| Box::pin(sleep(LAST_BYTES)));
                    ready!(timer.as_mut().poll(cx));
                    self.body = None;
                }
            }
        }
        Poll::Ready(())
    }
}

/// The next piece of text or thinking.
#[inline]
fn next_block(pipeline: &mut Pipeline) -> Option<ContentBlock> {
    loop {
        return Some(match pipeline.next_delta()? {
            Delta::Text(text) | Delta::Refusal(text) => ContentBlock::Text(TextBlock::new(text)),
            Delta::Thinking(thinking) => ContentBlock::Thinking(ThinkingBlock::new(thinking)),
            _ => continue,
        });
    }
}

/// What is wrong with an answer whose body came to its end; `strange` tells of a body without payloads.
fn failure(answer: &Answer, received: u64, strange: Option<String>) -> Option<Error> {
    let reported = answer.problems.iter().find_map(|problem| match problem {
        Problem::Server(error) => Some(error),
        _ => None,
    });
    if let Some(error) = reported {
        return Some(Error::in_stream(error, received));
    }
    if !answer.is_empty() || answer.is_finished() {
        return None;
    }
    let message = if received == 0 {
        "the server answered with success and an empty body".to_owned()
    } else if let Some(problem) = answer.problems.first() {
        format!("nothing in the answer could be read: {problem}")
    } else {
        strange
            .unwrap_or_else(|| format!("the stream ended without an answer after {received} bytes"))
    };
    Some(Error::stream(message, received))
}

impl Stream for BlockStream {
    type Item = Result<ContentBlock>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_block(cx)
    }
}

impl fmt::Debug for BlockStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockStream")
            .field("pipeline", &self.pipeline)
            .field("failure", &self.failure)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}
