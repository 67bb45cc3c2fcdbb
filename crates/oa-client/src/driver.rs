//! The loop of every turn: performs the actions of the state machine and reports their results to it.

mod budgets;
mod cache;
mod checkpoints;

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use oa_aggregate::UsedIds;
use oa_chat::{AnswerStream, BoxFuture, Concluded, Conversation};
use oa_events::{AgentEvent, TurnMetadata};
use oa_executor::{ResultStore, RunSignal, ToolEvent};
use oa_output::{OutputValidator, Validation};
use oa_tools::IdempotencyKey;
use oa_turn::{Action, Answer, OverflowSizes, ReviewOutcome, Spent, SteerQueue, StepOutcome, Turn};
use oa_types::{AssistantMessage, ContentBlock, Erased, FinishReason};
use tokio::time::sleep;

use crate::cache_miss::CacheMissCheck;
use crate::call_ids::replace_in;
use crate::checkpoint::Checkpoints;
use crate::error::{self, Error, ErrorKind, Result};
use crate::hooks;
use crate::prompt_cut::PromptCutCheck;
use crate::run::{Cut, Run};
use crate::settings::Settings;
use crate::trace::Trace;
use crate::work::{self, Done, Work};

/// A conversation and the work in progress for it.
pub(crate) struct Driver {
    pub(crate) settings: Arc<Settings>,
    pub(crate) turn: Turn,
    /// The client's signal; `None` if no handle can exist.
    pub(crate) interrupt: Option<Arc<RunSignal>>,
    pub(crate) steer: Option<Arc<SteerQueue>>,
    /// Events that wait for the caller.
    pub(crate) events: VecDeque<AgentEvent>,
    /// True if an answer began after these events.
    pub(crate) began: bool,
    /// True if the next answer replaces one that had begun and was too long.
    replaces: bool,
    pub(crate) message: Option<Arc<AssistantMessage>>,
    /// Boxed, because it is large.
    pub(crate) metadata: Box<TurnMetadata>,
    pub(crate) run: Option<Run>,
    /// Validates answers while structured output is wanted.
    pub(crate) output: Option<Box<OutputValidator>>,
    trace: Option<Box<Trace>>,
    pub(crate) work: Work,
    conversation: Conversation,
    prompt_cut: PromptCutCheck,
    pub(crate) cache: Option<Box<CacheMissCheck>>,
    checkpoints: Option<Box<Checkpoints>>,
    /// Full results, if the model may read them.
    pub(crate) results: Option<ResultStore>,
    /// Present once an answer has arrived.
    used_ids: Option<Box<UsedIds>>,
}

/// Boxed, because it is large and its owner is moved; erased, so that no other crate compiles how it is dropped.
pub(crate) type BoxedDriver = Erased<Driver>;

/// Returns the ids of the conversation's calls.
fn used_ids<'a>(used: &'a mut Option<Box<UsedIds>>, turn: &Turn) -> &'a UsedIds {
    let used = used.get_or_insert_default();
    used.follow(turn.history(), turn.revisions(), turn.last_revision());
    used
}

impl Driver {
    pub(crate) fn new(settings: Arc<Settings>, turn: oa_turn::Options) -> BoxedDriver {
        let results = settings.result_store();
        Erased::new(Self {
            // Constructed in place, because it is large.
            turn: settings.config.turn(turn),
            settings,
            interrupt: None,
            steer: None,
            events: VecDeque::new(),
            began: false,
            replaces: false,
            message: None,
            metadata: Box::default(),
            run: None,
            output: None,
            trace: None,
            work: Work::default(),
            prompt_cut: PromptCutCheck::default(),
            cache: None,
            checkpoints: None,
            conversation: Conversation::new(),
            results,
            used_ids: None,
        })
    }

    /// Adopts the tools that the sources have now.
    pub(crate) fn refresh_tools(&mut self) -> Result<()> {
        if let Some(settings) = self.settings.refreshed(self.output.as_deref())? {
            self.turn.set_external_tools(settings.config.external_tools());
            self.settings = Arc::new(settings);
        }
        Ok(())
    }

    /// Returns the idempotency key of a call, computed once a tool asks for it.
    pub(crate) fn key(&self, call: usize) -> Option<IdempotencyKey> {
        let (key, id) = (self.turn.lazy_call_key(call)?, self.conversation.id());
        Some(IdempotencyKey::lazy(move || {
            if key.seed().is_empty() { format!("{id:016x}{key}") } else { key.to_string() }
        }))
    }

    /// Waits for the next event; `None` when nothing is in progress.
    #[inline]
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<AgentEvent>>> {
        // An interrupt works at once: its cut drops the events that nobody has read.
        if self.is_interrupted() {
            match ready!(self.poll_step(cx))? {
                // The remaining events precede it.
                Some(event) => self.events.push_back(event),
                None => return Poll::Ready(Ok(None)),
            }
        }
        let event = match self.events.pop_front() {
            None if mem::take(&mut self.began) => Some(AgentEvent::AnswerStart),
            event => event,
        };
        match event {
            Some(event) => Poll::Ready(Ok(Some(event))),
            None => self.poll_step(cx),
        }
    }

    /// Waits for the next block, past all other events; `None` when nothing is in progress.
    #[inline]
    pub(crate) fn poll_block(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<ContentBlock>>> {
        loop {
            match ready!(self.poll_event(cx))? {
                Some(AgentEvent::Block(block)) => return Poll::Ready(Ok(Some(block))),
                Some(_) => {}
                None => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// Waits until an answer begins or nothing is in progress; keeps the events on the way.
    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        while self.work.answer.is_none() {
            match ready!(self.poll_step(cx))? {
                Some(AgentEvent::AnswerStart) => self.began = true,
                Some(event) => self.events.push_back(event),
                None => break,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Performs actions until one of them has an outcome.
    pub(crate) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<AgentEvent>>> {
        if self.run.is_none() && self.turn.is_busy() {
            self.begin_run();
        }
        // The order is part of the contract. A cut comes before everything else. The last events of tools come
        // before what follows from their results. Steered messages enter before the turn chooses its next
        // action. A checkpoint comes after all three, so that what is saved includes them.
        loop {
            if let Some(cut) = self.is_cut(cx) {
                self.cut(cut);
            }
            // The last events of tools come before the actions that follow from them.
            if self.work.batch.is_some()
                && !self.turn.calls().iter().any(|call| call.is_open() && !call.waits_for_result())
            {
                // A sub-agent that was dropped at its timeout has reported its usage.
                self.share_budgets();
                if let Poll::Ready(Some(event)) = self.work.poll_batch(cx) {
                    return Poll::Ready(Ok(Some(event)));
                }
            }
            if let Some(steer) = &self.steer {
                steer.enter(&mut self.turn);
            }
            // After a cut the run is over, and only its end remains to be reported.
            if self.run.is_some() && self.stops_at_checkpoint() {
                return Poll::Ready(Ok(None));
            }
            // While an answer arrives, the only thing to do is to read it.
            let action = if self.work.answer.is_some() {
                None
            } else {
                self.share_budgets();
                self.turn.next_action()
            };
            match action {
                Some(Action::Decide { call }) => self.decide(call),
                Some(Action::End { reason }) => {
                    self.end_run(Some(reason.clone()));
                    let end = AgentEvent::TurnEnd(reason);
                    if self.stops_at_checkpoint() {
                        self.events.push_back(end);
                        return Poll::Ready(Ok(None));
                    }
                    return Poll::Ready(Ok(Some(end)));
                }
                Some(Action::Request { tools }) => {
                    self.refresh_tools().map_err(|it| self.fail(it))?;
                    self.work.futures.get_mut().request = Some(self.request(tools));
                }
                Some(Action::Review { call }) => self.review(call),
                Some(Action::ReviewAnswer) => self.review_answer(),
                Some(Action::Run { calls }) => {
                    if let Some(denied) = self.run(&calls) {
                        return Poll::Ready(Ok(Some(denied)));
                    }
                }
                Some(Action::CheckStop { .. }) => {
                    let outcome = self.settings.config.steps.check_stop(self.turn.stop_check());
                    let outcome = StepOutcome::CheckStop(outcome.map_err(|it| self.fail(it))?);
                    drop(self.turn.take(outcome));
                }
                Some(Action::Shorten { .. }) => self.shorten(),
                Some(Action::Show { block }) => {
                    return Poll::Ready(Ok(Some(AgentEvent::Block(block))));
                }
                Some(Action::Submit { prompt, steered }) => {
                    if let Some(steered) = self.submit_prompt(&prompt, steered) {
                        return Poll::Ready(Ok(Some(steered)));
                    }
                }
                Some(Action::Plan { step }) => {
                    let (hooks, seen) =
                        (self.settings.config.steps.clone(), self.turn.plan_step(step));
                    self.work.wait_for(async move { Done::Plan(hooks.plan(seen).await) });
                }
                // Nothing to start: an answer arrives, or work begun by an earlier action is in progress.
                Some(_) | None => {
                    let done = match self.work.poll_delta(cx, self.turn.shows_text()) {
                        Poll::Ready(Some(mut event)) => {
                            replace_in(&mut event, || used_ids(&mut self.used_ids, &self.turn));
                            self.note_delta(&event);
                            return Poll::Ready(Ok(Some(event)));
                        }
                        Poll::Ready(None) => self.work.poll(cx),
                        Poll::Pending => Poll::Pending,
                    };
                    match done {
                        Poll::Ready(Some(done)) => {
                            if let Some(event) = self.take(done)? {
                                return Poll::Ready(Ok(Some(event)));
                            }
                        }
                        Poll::Ready(None) => return Poll::Ready(Ok(None)),
                        Poll::Pending => {
                            // Nothing is ready, so register the wakers of the interrupt and of the deadline.
                            let cut = ready!(self.poll_cut(cx));
                            self.cut(cut);
                        }
                    }
                }
            }
        }
    }

    /// Reports to the state machine that the answer has begun; a problem in the stream does not count.
    #[inline]
    fn note_delta(&mut self, event: &AgentEvent) {
        match (event, &self.trace) {
            (AgentEvent::Problem(_), Some(trace)) => trace.warn(event),
            (AgentEvent::Problem(_), None) | (AgentEvent::PromptProgress(_), _) => {}
            _ => self.turn.begin_answer(),
        }
    }

    /// Reports completed work to the state machine.
    ///
    /// Out of line, like the functions below: their stack is not needed while the driver waits.
    #[inline(never)]
    fn take(&mut self, done: Done) -> Result<Option<AgentEvent>> {
        match done {
            Done::Answer(ended) => return self.conclude(ended),
            Done::AnswerReview(decided) => return self.take_answer_review(decided),
            Done::Decisions(decided) => {
                let decided = decided.map_err(|error| self.fail(error::hook(error)))?;
                return Ok(self.take_decided(decided));
            }
            Done::Plan(plan) => {
                let plan = plan.map_err(|error| self.fail(error))?;
                self.turn.plan(plan);
            }
            Done::Prompt(outcome) => return self.take_prompt(outcome),
            Done::Shortened(shortened) => return self.take_shortened(*shortened),
            // The request may fit once the conversation is shortened.
            Done::Response(Err(error))
                if error.kind() == ErrorKind::ContextOverflow
                    && self.turn.retry_shorter(OverflowSizes::from(&error.to_record())) => {}
            Done::Response(response) => {
                let mut answer = response.map_err(|error| self.fail(error))?;
                self.tell_refusals(&mut answer);
                self.work.answer = Some(answer);
                // An answer that replaces another is reported once.
                return Ok((!mem::take(&mut self.replaces)).then_some(AgentEvent::AnswerStart));
            }
            Done::Review(change) => {
                let (outcome, failure) = hooks::review_outcome(change);
                if let Some(Action::Review { call }) = self.turn.pending_action() {
                    let (results, call) = (self.results.as_ref(), &self.turn.calls()[call]);
                    self.settings.config.forget_reviewed(results, call, &outcome);
                }
                let taken = self.turn.take(StepOutcome::Review(outcome));
                if let (Err(_), Some(error)) = (taken, failure) {
                    return Err(self.fail(error));
                }
            }
            Done::Tool(event) => {
                if let AgentEvent::Tool(event) = &event {
                    self.note_tool(event);
                }
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Records an event of a tool in the spans, and a result in the conversation.
    fn note_tool(&mut self, event: &ToolEvent) {
        if let Some(trace) = &mut self.trace {
            trace.tool(event);
        }
        if let ToolEvent::CallComplete(result) = event {
            let mut calls = self.turn.calls().iter();
            if let Some(call) = calls.position(|call| call.block.id == result.call_id) {
                let (content, images) = (result.result.clone(), result.images.clone());
                self.turn.finish_call_with_images(call, content, images, result.outcome);
            }
        }
    }

    /// Turns a finished answer into a message and reports it to the state machine; no event if another replaces it.
    #[inline(never)]
    fn conclude(&mut self, mut ended: AnswerStream) -> Result<Option<AgentEvent>> {
        // The refusals include those of an answer that this one replaced.
        self.tell_refusals(&mut ended);
        if let Some(trace) = &mut self.trace {
            trace.came_from(ended.secrets());
        }
        // The message is final before history and the caller get it: first unique ids, then the price, last the
        // validator, which may turn a call of the output tool into text.
        let Concluded { mut message, failure, closing, .. } = ended.conclude();
        used_ids(&mut self.used_ids, &self.turn).replace_all(&mut message);
        self.work.closing = closing.map(Box::new);
        if let Some(usage) = &mut message.usage {
            self.settings.config.price(usage);
        }
        self.metadata.count(message.usage);
        if let Some(trace) = &mut self.trace {
            trace.answer(&message, failure.as_ref());
        }
        let usage = message.usage.unwrap_or_default();
        let cut = self.prompt_cut.answered(&self.turn, &usage);
        self.metadata.prompt_cut = cut;
        let miss = self.check_cache(&usage);
        let validation = match failure {
            Some(_) => Validation::Unchanged,
            None => self.validate(&mut message),
        };
        let answer = Answer::from(&message);
        let message = Arc::new(message);
        let event = AgentEvent::AnswerEnd(Arc::clone(&message));
        self.message = Some(message);
        // The turn counts the usage of an answer that it takes. A failed one is not taken, but it was paid for.
        if failure.is_some() {
            self.turn.charge(Spent::new(0, answer.tokens, answer.cost));
        }
        match failure {
            Some(failure)
                if failure.kind() == ErrorKind::ContextOverflow
                    && answer.blocks.is_empty()
                    && self.turn.retry_shorter(OverflowSizes::from(&failure.to_record())) =>
            {
                // Nothing of the answer was shown, so the caller sees one answer, with one start and end.
                self.replaces = true;
                return Ok(None);
            }
            Some(failure) => return Err(self.fail_with(failure, answer.blocks)),
            None => {
                // Before: what others have spent may end the turn here. After: the agents above learn the cost.
                self.share_budgets();
                self.take_answer(answer, validation);
                self.share_budgets();
                self.prepare_open_calls();
            }
        }
        let (cut, miss) = (cut.map(AgentEvent::PromptCut), miss.map(AgentEvent::CacheMiss));
        cut.into_iter().chain(miss).for_each(|event| self.warn(event));
        Ok(Some(event))
    }

    fn tell_refusals(&mut self, answer: &mut AnswerStream) {
        let refusals = answer.take_refusals().into_iter().map(work::refused);
        refusals.for_each(|refusal| self.warn(refusal));
    }

    fn warn(&mut self, event: AgentEvent) {
        if let Some(trace) = &self.trace {
            trace.warn(&event);
        }
        self.events.push_back(event);
    }

    #[inline(never)]
    fn review(&mut self, call: usize) {
        let (reviewed, history) = (&self.turn.calls()[call], self.turn.history());
        let Some(event) = self.settings.config.result_event(reviewed, history) else {
            let kept = self.turn.take(StepOutcome::Review(ReviewOutcome::Keep));
            debug_assert!(kept.is_ok(), "keeping a result cannot fail");
            return;
        };
        let hooks = self.settings.config.hooks.clone();
        self.work.wait_for(async move { Done::Review(hooks.post_tool_use(event, sleep).await) });
    }

    #[inline(never)]
    fn request(&mut self, tools: bool) -> BoxFuture<Result<AnswerStream>> {
        let Settings { chat, backend, .. } = &*self.settings;
        let (history, revisions) = (self.turn.history(), self.turn.revisions());
        let (request, bytes) =
            self.conversation.request(chat, backend.service(), history, revisions);
        self.prompt_cut.sent(&self.settings, tools, bytes);
        let mut request = request.hold_text(self.turn.inlines_results());
        request = self.settings.offer_reader(request, self.results.as_ref());
        if let Some(plan) = self.turn.step_plan() {
            request = request.with_plan(plan);
        }
        if let Some(trace) = &mut self.trace {
            // The plan may name another model.
            trace.request(&self.settings, request.model());
        }
        let answer = backend.ask(if tools { request } else { request.without_tools() });
        // The end of the previous answer comes first, so that its connection can serve this request.
        match self.work.closing.take() {
            Some(closing) => Box::pin(async move {
                closing.await;
                answer.await
            }),
            None => answer,
        }
    }

    pub(crate) fn begin_run(&mut self) {
        if let Some(interrupt) = &self.interrupt {
            interrupt.begin_run();
        }
        self.run = Some(Run::new(self.settings.config.max_run_time));
        self.trace = Some(Trace::begin(&self.settings));
        self.message = None;
        (self.metadata.finish_reason, self.metadata.usage, self.replaces) = (None, None, false);
    }

    pub(crate) fn end_run(&mut self, reason: Option<FinishReason>) {
        if let Some(interrupt) = &self.interrupt {
            interrupt.end_run();
        }
        self.run = None;
        if let Some(trace) = self.trace.take() {
            trace.end(reason.as_ref(), self.turn.rounds());
        }
        self.metadata.finish_reason = reason;
    }

    /// True if the run is interrupted and the interrupt has not been handled yet.
    fn is_interrupted(&self) -> bool {
        self.run.is_some() && self.interrupt.as_ref().is_some_and(|it| it.is_interrupted())
    }

    /// Returns the reason to cut the run, if one is known without waiting.
    fn is_cut(&mut self, cx: &mut Context<'_>) -> Option<Cut> {
        if self.is_interrupted() {
            return Some(Cut::Interrupted);
        }
        self.run.as_mut()?.is_over(cx).then_some(Cut::TimeUp)
    }

    /// Waits for a cut.
    pub(crate) fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<Cut> {
        if self.run.is_some()
            && let Some(interrupt) = &self.interrupt
            && interrupt.poll_interrupted(cx).is_ready()
        {
            return Poll::Ready(Cut::Interrupted);
        }
        self.is_cut(cx).map_or(Poll::Pending, Poll::Ready)
    }

    /// Stops the work in progress.
    fn cut(&mut self, cut: Cut) {
        let answer = self.stop_work();
        self.forget_events();
        self.run = None;
        // History gets what the driver has handed out, and nothing that is still in a buffer.
        let words = answer.map(AnswerStream::handed_out).unwrap_or_default();
        match cut {
            Cut::Interrupted => self.turn.interrupt(words),
            Cut::TimeUp => self.turn.stop(cut.reason(), words),
        }
    }

    /// Ends the turn with an error.
    pub(crate) fn fail(&mut self, error: Error) -> Error {
        self.fail_with(error, Vec::new())
    }

    /// Ends the turn with an error, in an answer of which this part had arrived.
    fn fail_with(&mut self, error: Error, partial: Vec<ContentBlock>) -> Error {
        if let Some(trace) = &mut self.trace {
            trace.failed(&error);
        }
        let is_undone = self.turn.is_shortened_in_vain();
        self.drop_work();
        self.turn.fail_with(partial);
        if is_undone {
            let passed = self.checkpoints.as_mut().map(|them| &mut them.passed);
            for events in passed.into_iter().chain([&mut self.events]) {
                events.retain(|event| !matches!(event, AgentEvent::ContextShortened(_)));
            }
        }
        error
    }

    /// Ends the turn and drops its events.
    pub(crate) fn abort(&mut self) {
        self.drop_work();
        self.turn.fail();
    }

    /// Ends a turn that the caller has not read to its end, because another one starts.
    pub(crate) fn abandon(&mut self) {
        self.settle();
        if self.turn.is_busy() {
            let answer = self.drop_work();
            // The caller chose to move on: history gets everything that arrived, read or not.
            self.turn.abandon(answer.map(AnswerStream::arrived).unwrap_or_default());
        }
    }

    /// Drops unread events of an earlier turn, except those about lasting changes to history.
    pub(crate) fn forget_events(&mut self) {
        use AgentEvent::{ContextShortened, SteerBlocked, Steered};
        self.events.retain(|it| matches!(it, ContextShortened(_) | SteerBlocked(_) | Steered(_)));
        self.began = false;
    }

    /// Handles an interrupt that has not been handled yet.
    pub(crate) fn settle(&mut self) {
        // The caller may not have polled since the interrupt. The next turn starts from a valid history.
        if self.is_interrupted() {
            self.cut(Cut::Interrupted);
            while let Some(action) = self.turn.next_action() {
                if let Action::End { reason } = action {
                    self.end_run(Some(reason));
                }
            }
        }
    }

    fn drop_work(&mut self) -> Option<AnswerStream> {
        let answer = self.stop_work();
        self.forget_events();
        self.end_run(None);
        answer
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver({} messages)", self.turn.history().len())
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn driver_fits_the_allocators_cache() {
        // Each prompt of a new client allocates a driver. glibc caches free blocks of up to 1,032 bytes per thread;
        // larger ones take far longer.
        assert!(size_of::<Driver>() <= 1_032, "{}", size_of::<Driver>());
    }
}
