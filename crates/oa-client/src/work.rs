//! The work in progress: a request, an answer, hooks, tools.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use oa_chat::{AnswerStream, BoxFuture, Closing, Refusal};
use oa_context::ContextShortened;
use oa_events::AgentEvent;
use oa_hooks::{AnswerDecision, Change, ChangedResult, HookOutcome};
use oa_turn::{ShortenOutcome, StepPlan};
use oa_types::{Exclusive, Usage};

use crate::decision::Decided;
use crate::error::Result;
use crate::nested::RunningBatch;

/// Everything in progress. Dropping it stops everything: connections are closed, hooks dropped, tools canceled.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) futures: Exclusive<Futures>,
    pub(crate) answer: Option<AnswerStream>,
    pub(crate) batch: Option<Box<RunningBatch>>,
    /// The usage of a summary that is being written.
    pub(crate) summary: Option<SharedUsage>,
    /// The last bytes of the previous answer. Boxed, because its size depends on hyper's features.
    pub(crate) closing: Option<Box<Closing>>,
}

#[derive(Default)]
pub(crate) struct Futures {
    pub(crate) request: Option<BoxFuture<Result<AnswerStream>>>,
    /// Decisions of hooks, a plan, or a shortening that the turn waits for, one at a time.
    pub(crate) hooks: Option<BoxFuture<Done>>,
}

/// A completed piece of work.
pub(crate) enum Done {
    /// An answer has ended and can be concluded.
    Answer(AnswerStream),
    /// The hooks' decision about an answer.
    AnswerReview(Result<AnswerDecision, oa_hooks::Error>),
    /// Decisions on calls, by index and in order; the first is for the call that was emitted.
    Decisions(Result<VecDeque<(usize, Decided)>, oa_hooks::Error>),
    /// The plan of a request.
    Plan(Result<StepPlan>),
    /// The hooks' outcome for a prompt.
    Prompt(Result<HookOutcome<String>, oa_hooks::Error>),
    /// The head of a response.
    Response(Result<AnswerStream>),
    /// The hooks' outcome for a result.
    Review(Result<Option<Change<ChangedResult>>, oa_hooks::Error>),
    Shortened(Box<ShortenedTurn>),
    /// An event of a tool or a sub-agent.
    Tool(AgentEvent),
}

/// The outcome of shortening, and the event.
pub(crate) type ShortenedTurn = (ShortenOutcome, Option<ContextShortened>);

/// The usage of requests that may be cut at any time.
pub(crate) type SharedUsage = Arc<Mutex<Usage>>;

/// Locks a mutex that is held only for arithmetic.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work {
    pub(crate) fn wait_for(&mut self, done: impl Future<Output = Done> + Send + 'static) {
        self.futures.get_mut().hooks = Some(Box::pin(done));
    }

    /// Waits for the next piece of the arriving answer; `None` if there is none, or at its end.
    #[inline]
    pub(crate) fn poll_delta(
        &mut self,
        cx: &mut Context<'_>,
        shows_text: bool,
    ) -> Poll<Option<AgentEvent>> {
        match &mut self.answer {
            Some(answer) => answer.poll_with(cx, |delta| AgentEvent::from_delta(delta, shows_text)),
            None => Poll::Ready(None),
        }
    }

    /// Waits for anything but the pieces of an answer; `None` when nothing is in progress.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Done>> {
        // `poll_delta` has returned `None`, so the answer has ended.
        if let Some(answer) = self.answer.take() {
            return Poll::Ready(Some(Done::Answer(answer)));
        }
        let Futures { request, hooks } = self.futures.get_mut();
        let response = poll_slot(request, cx).map(Done::Response);
        if let Some(done) = response.or_else(|| poll_slot(hooks, cx)) {
            return Poll::Ready(Some(done));
        }
        let is_waiting = request.is_some() || hooks.is_some();
        // Tools continue while a hook reviews the result of another.
        if let Poll::Ready(Some(event)) = self.poll_batch(cx) {
            return Poll::Ready(Some(Done::Tool(event)));
        }
        if is_waiting || self.batch.is_some() {
            return Poll::Pending;
        }
        // Only the end of a body is left, which is short and bounded by a timer. Waiting for it here lets a
        // caller that reads to `None` and sends the next prompt reuse the connection.
        if poll_slot(&mut self.closing, cx).is_some() || self.closing.is_none() {
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    /// Waits for the next event of tools and sub-agents; `None` when no tool runs.
    pub(crate) fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let Some(batch) = &mut self.batch else { return Poll::Ready(None) };
        let event = ready!(batch.poll(cx));
        if event.is_none() {
            self.batch = None;
        }
        Poll::Ready(event)
    }
}

/// Polls a future if there is one, and removes it once it is ready.
fn poll_slot<F: Future + Unpin>(slot: &mut Option<F>, cx: &mut Context<'_>) -> Option<F::Output> {
    match Pin::new(slot.as_mut()?).poll(cx) {
        Poll::Ready(output) => {
            *slot = None;
            Some(output)
        }
        Poll::Pending => None,
    }
}

/// Returns the event for a feature that the server does not support.
pub(crate) fn refused(refusal: Refusal) -> AgentEvent {
    match refusal {
        Refusal::Format(words) => AgentEvent::FormatRefused(words),
        Refusal::Thinking(words) => AgentEvent::ThinkingRefused(words),
        Refusal::Tools(words) => AgentEvent::ToolsRefused(words),
        // A refusal that is not known here yet.
        other => AgentEvent::ToolsRefused(format!("{other:?}")),
    }
}
