//! The steps of a turn, recorded in the engine's journal. The rules of the loop are elsewhere: `oa_turn::drive` decides
//! the next step, and [`AgentSteps`] performs it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oa_client::{AgentOptions, AgentSteps};
use oa_events::AgentEvent;
use oa_executor::ExecutionMode;
use oa_tools::{Cancel, ErrorBody};
use oa_turn::{
    ApprovalOutcome, ApprovalStep, AskOutcome, AskStep, CutBy, DecideOutcome, DecideStep, Decision,
    Fit, Perform, PlanOutcome, PlanStep, PromptOutcome, PromptStep, ReviewAnswerOutcome,
    ReviewAnswerStep, ReviewOutcome, ReviewStep, RunOutcome, RunStep, ShortenOutcome, ShortenStep,
    Spent, StepCall, StopOutcome,
};
use oa_types::{ContentBlock, FinishReason, Message, ToolUseBlock, json_size};
use restate_sdk::context::{DurableFuture, DurableFuturesUnordered, RequestTarget};
use restate_sdk::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync;

use crate::agents::{Shared, publish};
use crate::answer::{bounded, in_time, is_silent, nothing_of_it};
use crate::calls::{self, Started};
use crate::contract::{Given, PendingCall, TurnStatus, WaitsFor};
use crate::control::watched;
use crate::event::{Numbered, SHOW};
use crate::limits::Limits;
use crate::output::Output;
use crate::place::{CANCELLED, Durable, Happened, Place};
use crate::{layout, name, storage, tap};

/// The reason why a step was not performed.
#[derive(Debug)]
pub(crate) enum Stop {
    /// These steered messages enter the turn first.
    Steered(Vec<Message>),
    /// The engine reported an error.
    Terminal(TerminalError),
}

/// Performs the steps of one turn, and records each once in the journal.
pub(crate) struct DurableSteps<'a, 'ctx> {
    ctx: &'a ObjectContext<'ctx>,
    shared: &'a Shared,
    options: &'a AgentOptions,
    place: Place,
    /// Prepares inputs, which needs no journal.
    steps: AgentSteps,
    shown: Numbered,
    /// The futures that the turn waits for, in one queue, because the engine's futures can only be raced together.
    /// Never contended, because a turn performs one step at a time; `Perform` takes `&self`.
    races: sync::Mutex<DurableFuturesUnordered<Durable<'ctx, Happened>>>,
    output: Mutex<Option<Output>>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// The outcome of a request, and that of calls, performed before steered messages entered the turn.
    asked: Option<AskOutcome>,
    ran: Option<RunOutcome>,
    cut: Option<CutBy>,
    is_cancelled: bool,
    pending: Vec<PendingCall>,
    runs: u64,
    is_shortened: bool,
    is_silent: bool,
}

impl<'a, 'ctx> DurableSteps<'a, 'ctx> {
    pub(crate) fn new(
        ctx: &'a ObjectContext<'ctx>,
        shared: &'a Shared,
        options: &'a AgentOptions,
        place: Place,
        output: Option<Output>,
        interrupted: Durable<'ctx, Happened>,
    ) -> Self {
        let mut races = DurableFuturesUnordered::new();
        races.push(interrupted);
        // An entry of the journal, made at the same place in each attempt. Whether it is made is part of the
        // digest.
        if let Some(limit) = options.max_run_time() {
            let limit = Limits::held_time(limit);
            let time_up: Durable<'ctx, Happened> =
                Box::pin(ctx.sleep(limit).map(|_| Happened::TimeUp));
            races.push(time_up);
        }
        Self {
            ctx,
            shared,
            options,
            steps: options.steps(),
            shown: Numbered::new(&place.session, place.turn, SHOW, place.began),
            place,
            races: sync::Mutex::new(races),
            output: Mutex::new(output),
            progress: Mutex::default(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if an operator canceled the invocation.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.progress().is_cancelled
    }

    /// Returns true if the conversation may have been shortened in this turn.
    pub(crate) fn is_shortened(&self) -> bool {
        self.progress().is_shortened
    }

    /// Returns true if the last answer has neither text nor calls.
    pub(crate) fn is_silent(&self) -> bool {
        self.progress().is_silent
    }

    fn output(&self) -> MutexGuard<'_, Option<Output>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value of structured output at the end of the turn, and the number of attempts.
    pub(crate) fn value(
        &self,
        reason: &FinishReason,
        last: Option<&Message>,
    ) -> Result<(Option<Value>, u32), TerminalError> {
        match &mut *self.output() {
            None => Ok((None, 0)),
            Some(output) => match output.end(reason, last) {
                Ok(value) => Ok((value, output.tries())),
                Err(why) => Err(TerminalError::new_with_code(422, why)),
            },
        }
    }

    fn cut(&self) -> Option<CutBy> {
        self.progress().cut.clone()
    }

    /// Records the early end of the turn, and returns it.
    fn note_cut(&self, by: CutBy) -> CutBy {
        self.progress().cut.get_or_insert(by).clone()
    }

    fn note_cancelled(&self) -> CutBy {
        self.progress().is_cancelled = true;
        self.note_cut(CutBy::User)
    }

    /// Adds a future to wait for.
    async fn race(&self, future: Durable<'ctx, Happened>) {
        self.races.lock().await.push(future);
    }

    /// Waits for the next event. `Err` is the early end of the turn.
    async fn next(&self) -> Result<Happened, CutBy> {
        if let Some(by) = self.cut() {
            return Err(by);
        }
        let next = self.races.lock().await.next().await;
        match next {
            Ok(Some((_, Happened::TimeUp))) => {
                Err(self.note_cut(CutBy::Budget { reason: FinishReason::MaxRunTime }))
            }
            // The queue is not empty while the turn goes on: `Interrupted` leaves it only by ending the turn.
            Ok(Some((_, Happened::Interrupted)) | None) => Err(self.note_cut(CutBy::User)),
            Ok(Some((_, happened))) => Ok(happened),
            Err(_) => Err(self.note_cancelled()),
        }
    }

    /// Returns the recorded outcome of a step, or performs it and records its outcome. `None` is the early end of the
    /// turn.
    async fn journal<T, Fut>(
        &self,
        name: String,
        perform: impl FnOnce(AgentSteps, Cancel) -> Fut + Send + 'static,
    ) -> Result<Result<T, CutBy>, Stop>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
    {
        // `cut` follows from recorded events alone, so a replay omits the same entries.
        if let Some(by) = self.cut() {
            return Ok(Err(by));
        }
        let Place { session, turn, watch, is_lost, .. } = self.place.clone();
        let (shared, options, step) = (self.shared.clone(), self.options.clone(), name.clone());
        // Taken here, because it is set only while the handler is polled.
        let cancelled = tap::heard();
        let closure = move || async move {
            if is_lost {
                // Recorded as the end of the turn; the recorded steps before it were replayed.
                return Err(storage::other_writer().into());
            }
            let cancel = Cancel::new();
            // Made within the closure: each attempt publishes its events under a number of its own.
            let steps = options
                .steps()
                .with_conversation(name::conversation(&session, turn))
                .with_cancel(cancel.clone())
                .on_event(shared.publisher(&session, turn, &step))
                .ask_within_turn();
            let work = perform(steps, cancel.clone());
            // The outcome of a canceled step is not recorded: the next await reports the cancellation.
            Ok(Json(watched(shared.control.clone(), &watch, &cancel, cancelled, work).await))
        };
        match self.ctx.run(closure).name(name).await {
            Ok(Json(outcome)) => Ok(Ok(outcome)),
            // The closure itself fails only for a lost conversation; another error is the engine's.
            Err(error) if error.code() == CANCELLED && !storage::is_other_writer(&error) => {
                Ok(Err(self.note_cancelled()))
            }
            Err(error) => Err(Stop::Terminal(error)),
        }
    }

    /// Takes the messages that were steered into the session.
    async fn steered(&self) -> Vec<Message> {
        // Users steer the outermost session only.
        if !self.place.within.is_empty() || self.cut().is_some() {
            return Vec::new();
        }
        let target = RequestTarget::object("AgentInbox", &*self.place.session, "take");
        match self.ctx.request::<(), Json<Vec<Message>>>(target, ()).call().await {
            Ok(Json(messages)) => messages,
            Err(_) => {
                self.note_cancelled();
                Vec::new()
            }
        }
    }

    fn tell(&self, event: AgentEvent) {
        publish(self.shared.sink.as_deref(), &self.shown, event);
    }

    /// Publishes the end of the turn.
    pub(crate) fn tell_end(&self, reason: Option<&FinishReason>) {
        if let Some(reason) = reason {
            self.tell(AgentEvent::TurnEnd(reason.clone()));
        }
    }

    /// Makes calls wait for a decision or a result: each gets a durable promise and a timeout, and is published.
    pub(crate) async fn wait_for(&self, calls: &[StepCall], waits_for: WaitsFor) {
        for call in calls {
            let (block, input) = (&call.call.block, call.call.input.clone());
            // After each decision, `approve` is called with all calls that are still undecided.
            if self.progress().pending.iter().any(|pending| pending.id == block.id) {
                continue;
            }
            let (awakeable, given) = self.ctx.awakeable::<Json<Given>>();
            let given: Durable<'ctx, Happened> = Box::pin(given.map({
                let awakeable = awakeable.clone();
                move |given| {
                    let given = given.ok().map(|Json(given)| Box::new(given));
                    Happened::Given { awakeable, given }
                }
            }));
            let limit: Durable<'ctx, Happened> =
                Box::pin(self.ctx.sleep(self.shared.limits.longest_wait).map({
                    let awakeable = awakeable.clone();
                    move |_| Happened::Given { awakeable, given: None }
                }));
            self.race(given).await;
            self.race(limit).await;
            let (id, tool) = (block.id.clone(), block.name.clone());
            self.progress().pending.push(PendingCall { id, tool, input, waits_for, awakeable });
        }
        self.write_pending();
    }

    fn write_pending(&self) {
        let pending = self.progress().pending.clone();
        match pending.is_empty() {
            true => self.ctx.clear(layout::PENDING),
            false => self.ctx.set(layout::PENDING, Json(pending)),
        }
    }

    /// Waits for a decision or a result of one of the waiting calls; `None` if none came in time.
    pub(crate) async fn next_given(&self) -> Result<(PendingCall, Option<Given>), CutBy> {
        loop {
            let Happened::Given { awakeable, given } = self.next().await? else { continue };
            let pending = {
                let pending = &mut self.progress().pending;
                // Each call has two futures in the queue, its answer and its time limit. The later one finds
                // no call.
                let place = pending.iter().position(|pending| pending.awakeable == awakeable);
                place.map(|place| pending.remove(place))
            };
            if let Some(pending) = pending {
                self.write_pending();
                return Ok((pending, given.map(|given| *given)));
            }
        }
    }

    /// Runs calls concurrently, as many at once as the options allow.
    async fn run_calls(&self, step: &RunStep) -> Result<RunOutcome, Stop> {
        let run = {
            let mut progress = self.progress();
            progress.runs += 1;
            progress.runs
        };
        let executor = self.options.executor();
        let at_once = match executor.mode {
            ExecutionMode::Sequential => 1,
            _ => executor.max_parallel.unwrap_or(usize::MAX).max(1),
        };
        let mut waiting: VecDeque<&StepCall> = step.calls.iter().collect();
        let (mut running, mut outcome): (Vec<Started>, _) = (Vec::new(), RunOutcome::default());
        let stop = |running: Vec<Started>, mut outcome: RunOutcome, by| {
            // The turn gives a result to each call that has none.
            for started in running {
                started.stop(self.ctx);
            }
            outcome.cut = Some(by);
            outcome
        };
        loop {
            // The order of entries follows from the calls and their recorded ends, which a replay repeats.
            while running.len() < at_once
                && let Some(call) = waiting.pop_front()
            {
                if call.call.is_external || calls::is_agent(self.shared, call) {
                    match self.admit(step, call).await {
                        Ok(Ok(None)) => {}
                        Ok(Ok(Some(refused))) => {
                            outcome.results.extend(refused.results);
                            continue;
                        }
                        Ok(Err(by)) => return Ok(stop(running, outcome, by)),
                        Err(failed) => {
                            // The turn fails, and nothing else would stop the calls that have started.
                            running.into_iter().for_each(|started| started.stop(self.ctx));
                            return Err(failed);
                        }
                    }
                }
                let (ctx, shared, place) = (self.ctx, self.shared, &self.place);
                // What the sub-agents of this round that have ended have spent is gone.
                let left = step.left.after(outcome.spent);
                let (started, ended) =
                    calls::start(ctx, shared, place, run, step, call, left).await;
                running.push(started);
                self.race(ended).await;
            }
            if running.is_empty() {
                return Ok(outcome);
            }
            match self.next().await {
                // Places repeat in each round, so the number of the run is compared, too.
                Ok(Happened::Called { run: of, place, outcome: ended }) if of == run => {
                    let is_it = |started: &Started| started.place() == place;
                    let Some(at) = running.iter().position(is_it) else { continue };
                    let started = running.remove(at);
                    let ended = started.ended(self.ctx, *ended);
                    outcome.results.extend(ended.results);
                    outcome.spent = outcome.spent.plus(ended.spent);
                }
                // The time limit of an approval that was decided before; no call waits for an answer while
                // calls run.
                Ok(_) => {}
                Err(by) => return Ok(stop(running, outcome, by)),
            }
        }
    }

    /// Decides whether a call may start the turn of a sub-agent, or be handed to the caller, as the last gate does for a
    /// tool. Returns the outcome of a call that does not start: its result, or none for an external call that waits.
    async fn admit(
        &self,
        step: &RunStep,
        call: &StepCall,
    ) -> Result<Result<Option<RunOutcome>, CutBy>, Stop> {
        let mut step = step.clone();
        step.calls = vec![call.clone()];
        let (options, call) = (self.options.clone(), call.clone());
        // Recorded, because rules may have changed when the turn is replayed.
        self.journal(name::of_call("admit", &call), |steps, _| async move {
            if !call.call.is_external && calls::may_start(&options, &call) {
                return None;
            }
            // The gate in here refuses it for the same reason, so the tool's own code does not run. An external
            // tool has none.
            let Ok(refused) = steps.run(step).await;
            Some(refused)
        })
        .await
    }
}

impl Perform for DurableSteps<'_, '_> {
    type Error = Stop;

    async fn submit_prompt(&self, step: PromptStep) -> Result<PromptOutcome, Stop> {
        if !self.options.hooks().has_user_prompt_submit() {
            return Ok(PromptOutcome::Allow);
        }
        let outcome = self.journal("prompt".to_owned(), |steps, _| async move {
            let Ok(outcome) = steps.submit_prompt(step).await;
            outcome
        });
        Ok(outcome.await?.unwrap_or_else(|by| PromptOutcome::Cut { by }))
    }

    async fn plan(&self, step: PlanStep) -> Result<PlanOutcome, Stop> {
        let outcome = self.journal(format!("plan {}", step.step), |steps, _| async move {
            let Ok(outcome) = steps.plan(step).await;
            outcome
        });
        Ok(outcome.await?.unwrap_or_else(|by| PlanOutcome::Cut { by }))
    }

    async fn check_stop(&self, step: PlanStep) -> Result<StopOutcome, Stop> {
        let outcome = self.journal(format!("check {}", step.step), |steps, _| async move {
            let Ok(outcome) = steps.check_stop(step).await;
            outcome
        });
        Ok(outcome.await?.unwrap_or_else(|by| StopOutcome::Cut { by }))
    }

    async fn shorten(&self, step: ShortenStep) -> Result<ShortenOutcome, Stop> {
        let outcome = self.journal("shorten".to_owned(), |steps, _| async move {
            let Ok(outcome) = steps.shorten(step).await;
            outcome
        });
        let outcome = outcome.await?;
        if let Ok(ShortenOutcome::Replace { .. }) = &outcome {
            self.progress().is_shortened = true;
        }
        Ok(outcome.unwrap_or_else(|by| ShortenOutcome::Cut { by, spent: Spent::default() }))
    }

    async fn ask(&self, step: AskStep) -> Result<AskOutcome, Stop> {
        // Performed before steered messages entered the turn; see `converse`.
        let held = self.progress().asked.take();
        if let Some(outcome) = held {
            return Ok(outcome);
        }
        // The prompt was admitted, but answers and results have been added since.
        // The conversation that replaced the loaded one is recorded, and lacks nothing.
        let lost = if self.is_shortened() { 0 } else { self.place.lost };
        if json_size(&step.history).saturating_add(lost) > self.shared.limits.session_bytes {
            let reason = FinishReason::Other("session_full".into());
            return Ok(nothing_of_it(CutBy::Budget { reason }));
        }
        let status = TurnStatus {
            turn: self.place.turn,
            invocation: self.ctx.invocation_id().to_owned(),
            requests: step.number,
        };
        self.ctx.set(layout::TURN, Json(status));
        let (deadline, most) = (self.place.deadline, self.shared.limits.answer_bytes);
        let outcome =
            self.journal(format!("ask {}", step.number), move |steps, cancel| async move {
                bounded(in_time(deadline, &cancel, steps.ask(step)).await, most)
            });
        let outcome = outcome.await?.unwrap_or_else(nothing_of_it);
        // Before the outcome may be kept for steered messages: validating it twice would count as two
        // attempts.
        let outcome = match &mut *self.output() {
            Some(output) => output.validate(outcome),
            None => outcome,
        };
        self.progress().is_silent =
            matches!(&outcome, AskOutcome::Answered { answer, .. } if is_silent(&answer.blocks));
        let steered = self.steered().await;
        if steered.is_empty() {
            return Ok(outcome);
        }
        self.progress().asked = Some(outcome);
        Err(Stop::Steered(steered))
    }

    async fn decide(&self, step: DecideStep) -> Result<DecideOutcome, Stop> {
        let outcome = self.journal(name::of_decision(&step.call), |steps, _| async move {
            let Ok(outcome) = steps.decide(step).await;
            outcome
        });
        Ok(outcome.await?.unwrap_or_else(|by| DecideOutcome::Cut { by }))
    }

    async fn approve(&self, step: ApprovalStep) -> Result<ApprovalOutcome, Stop> {
        self.wait_for(&step.calls, WaitsFor::Approval).await;
        let (pending, given) = match self.next_given().await {
            Ok(given) => given,
            Err(by) => return Ok(ApprovalOutcome::Cut { by }),
        };
        let refused = |reason: &str| {
            let body = ErrorBody::new(&pending.tool, "permission denied").with_reason(reason);
            Decision::Refuse(body.to_value())
        };
        let decision = match given {
            Some(Given::Approved { input }) => Decision::Run(input),
            Some(Given::Denied { reason }) => refused(&reason),
            Some(Given::Result(_)) | None => refused("no decision was made in time"),
        };
        Ok(ApprovalOutcome::Decided { id: pending.id, decision })
    }

    async fn run(&self, step: RunStep) -> Result<RunOutcome, Stop> {
        let held = self.progress().ran.take();
        if let Some(outcome) = held {
            return Ok(outcome);
        }
        let outcome = self.run_calls(&step).await?;
        let steered = self.steered().await;
        if steered.is_empty() {
            return Ok(outcome);
        }
        self.progress().ran = Some(outcome);
        Err(Stop::Steered(steered))
    }

    async fn review(&self, step: ReviewStep) -> Result<ReviewOutcome, Stop> {
        if !self.options.hooks().has_post_tool_use(&step.call.call.block.name) {
            return Ok(ReviewOutcome::Keep);
        }
        let outcome = self.journal(name::of_call("review", &step.call), |steps, _| async move {
            let Ok(outcome) = steps.review(step).await;
            outcome
        });
        Ok(outcome.await?.unwrap_or_else(|by| ReviewOutcome::Cut { by }))
    }

    async fn review_answer(&self, step: ReviewAnswerStep) -> Result<ReviewAnswerOutcome, Stop> {
        let outcome = self.journal("review answer".to_owned(), |steps, _| async move {
            let Ok(outcome) = steps.review_answer(step).await;
            outcome
        });
        Ok(outcome.await?.unwrap_or_else(|by| ReviewAnswerOutcome::Cut { by }))
    }

    fn prepare(&self, call: &ToolUseBlock) -> (Value, Fit) {
        self.steps.prepare(call)
    }

    fn show(&self, block: ContentBlock) {
        self.tell(AgentEvent::Block(block));
    }
}
