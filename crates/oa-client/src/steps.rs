use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use oa_aggregate::UsedIds;
use oa_chat::{AnswerStream, ChatRequest, Concluded, Conversation, Error};
use oa_events::AgentEvent;
use oa_executor::{Batch, ResultStore, Run, ToolEvent};
use oa_tools::{Cancel, IdempotencyKey};
use oa_turn::{
    Answer, AskOutcome, AskStep, CallResult, CutBy, DecideOutcome, DecideStep, Decision, Fit,
    Perform, PlanOutcome, PlanStep, PromptOutcome, PromptStep, ReviewAnswerOutcome,
    ReviewAnswerStep, ReviewOutcome, ReviewStep, RunOutcome, RunStep, ShortenOutcome, ShortenStep,
    Spent, StepCall, StopOutcome,
};
use oa_types::{ContentBlock, Outcome, ToolUseBlock};
use serde_json::Value;
use tokio::time::sleep;

use crate::call_ids::replace_in;
use crate::decision::{Admission, Decided, Prepared, Refused};
use crate::hooks;
use crate::nested::RunningBatch;
use crate::settings::Settings;
use crate::work::{SharedUsage, locked, refused};

/// The steps of an agent, performed one at a time: for engines that run turns themselves, such as durable ones.
///
/// A [`Client`](crate::Client) performs the same steps with the same options. Here, each step is a function from data
/// to data, so a journal can record its outcome and a replay can skip it. Wrap this in your own [`Perform`] and call
/// its methods for steps that are not recorded yet, or pass it to [`drive`](oa_turn::drive) directly.
///
/// Use one value per turn, because the executor's caps count the calls that it has run. Features that span several
/// steps are the driver's responsibility: [`max_run_time`](crate::AgentOptionsBuilder::max_run_time), [structured
/// output](crate::AgentOptions::for_output) with its retries, changes of a [tool
/// source](crate::AgentOptionsBuilder::tool_source), the detection of truncated prompts and cache misses, and the
/// events of steered messages and refused answers.
///
/// ```
/// use oa_client::AgentOptions;
/// use oa_testkit::{MemoryServer, Reply};
/// use oa_tools::tool;
/// use oa_turn::drive;
/// use oa_types::Message;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = MemoryServer::new([
/// #     Reply::new().call("double", json!({"n": 21})),
/// #     Reply::text("It is 42."),
/// # ]);
/// let options = AgentOptions::builder()
///     .model("any")
///     .tool(tool("double", "Double a number").param("n", "integer").build(|args| async move {
///         Ok(json!(args["n"].as_i64().unwrap_or_default() * 2))
///     }))
///     .auto_execute_tools(true)
/// #   .transport(model)
///     .build()?;
///
/// let mut turn = options.turn();
/// turn.prompt(Message::user("What is twice 21?"))?;
/// drive(&mut turn, &options.steps()).await?;
/// assert_eq!(turn.history()[3].text(), "It is 42.");
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// When polled outside of a tokio runtime, or in one without time or I/O.
///
/// # Cancel safety
///
/// Dropping the future of a step closes its connection or cancels its tools. The turn does not change, and the step
/// can be performed again.
#[derive(Clone)]
pub struct AgentSteps {
    settings: Arc<Settings>,
    conversation: u64,
    cancel: Cancel,
    run: Run,
    on_event: Option<Arc<dyn Fn(AgentEvent) + Send + Sync>>,
    asks_within_turn: bool,
    reruns: bool,
    results: Option<ResultStore>,
}

impl AgentSteps {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        Self {
            results: settings.result_store(),
            settings,
            conversation: 0,
            cancel: Cancel::new(),
            run: Run::new(),
            on_event: None,
            asks_within_turn: false,
            reruns: false,
        }
    }

    /// Sets the number of the conversation. A router prefers the server that last answered this conversation, and
    /// generated call ids depend on it. 0 by default, which to a router is no conversation.
    #[must_use]
    pub fn with_conversation(mut self, conversation: u64) -> Self {
        self.conversation = conversation;
        self
    }

    /// Sets the interrupt signal. Once it is triggered, the step in progress ends with [`CutBy::User`], and its outcome
    /// has the part of an answer that [`on_event`](Self::on_event) has received.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Calls a function for each event as it happens. It must not block. Events are not part of the outcome: a step
    /// that is performed again repeats them.
    #[must_use]
    pub fn on_event(mut self, tell: impl Fn(AgentEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(tell));
        self
    }

    /// Asks for permission within the turn, which keeps its budgets. A call whose permission is
    /// [`Later`](oa_hooks::Permission::Later) is decided as [`Decision::Ask`], and your [`Perform::approve`] waits for
    /// the answer. By default it is [`Decision::Wait`], which ends the turn.
    #[must_use]
    pub fn ask_within_turn(mut self) -> Self {
        self.asks_within_turn = true;
        self
    }

    /// Runs calls again that [may have run](oa_turn::StepCall::may_have_run) before. Use it only if your tools may run
    /// twice, for example because they use the idempotency key. By default the model reads that the result was lost.
    #[must_use]
    pub fn rerun_lost_calls(mut self) -> Self {
        self.reruns = true;
        self
    }

    /// Returns the request for a step, with the agent's options.
    #[must_use]
    pub fn request(&self, step: &AskStep) -> ChatRequest {
        let Settings { chat, backend, config, .. } = &*self.settings;
        // Revisions are compared within one turn only, and these steps may be of several.
        let mut conversation = Conversation::with_id(self.conversation);
        let (request, _) =
            conversation.request(chat, backend.service(), &step.history, &step.revisions);
        let request = request
            .with_id_seed(self.conversation.wrapping_add(step.number))
            .hold_text(config.turn.inline_results);
        let request = self.settings.offer_reader(request, self.results.as_ref());
        let request = match &step.plan {
            Some(plan) => request.with_plan(plan),
            None => request,
        };
        if step.tools { request } else { request.without_tools() }
    }

    /// Runs a part of a step; `None` if the step is canceled first.
    async fn unless_cancelled<T>(&self, part: impl Future<Output = T>) -> Option<T> {
        // The signal is polled first, so a step that is performed after the cancel has no effect.
        let (mut part, mut cancelled) = (pin!(part), pin!(self.cancel.cancelled()));
        poll_fn(|cx| match cancelled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => part.as_mut().poll(cx).map(Some),
        })
        .await
    }

    fn tell(&self, event: AgentEvent) {
        if let Some(tell) = &self.on_event {
            tell(event);
        }
    }

    fn tell_refusals(&self, answer: &mut AnswerStream) {
        for refusal in answer.take_refusals() {
            self.tell(refused(refusal));
        }
    }

    /// Reads an answer to its end.
    async fn read(&self, mut answer: AnswerStream, step: &AskStep) -> AskOutcome {
        // Computed from history alone, so a replay of this step replaces the same ids.
        let used = UsedIds::of(&step.history);
        self.tell_refusals(&mut answer);
        self.tell(AgentEvent::AnswerStart);
        let shows_text = !self.settings.config.turn.final_text_only;
        let mut has_begun = false;
        loop {
            let next = poll_fn(|cx| {
                answer.poll_with(cx, |delta| AgentEvent::from_delta(delta, shows_text))
            });
            match self.unless_cancelled(next).await {
                None => {
                    let mut usage = answer.usage().unwrap_or_default();
                    self.settings.config.price(&mut usage);
                    let (partial, spent) = (answer.handed_out(), Spent::from(&usage));
                    return AskOutcome::Cut { by: CutBy::User, partial, spent };
                }
                Some(None) => break,
                Some(Some(mut event)) => {
                    replace_in(&mut event, || &used);
                    has_begun |=
                        !matches!(event, AgentEvent::Problem(_) | AgentEvent::PromptProgress(_));
                    self.tell(event);
                }
            }
        }
        // The refusals include those of an answer that this one replaced.
        self.tell_refusals(&mut answer);
        let Concluded { mut message, failure, closing, .. } = answer.conclude();
        used.replace_all(&mut message);
        if let Some(closing) = closing {
            self.unless_cancelled(closing).await;
        }
        if let Some(usage) = &mut message.usage {
            self.settings.config.price(usage);
        }
        let answer = Answer::from(&message);
        match failure {
            None => {
                self.tell(AgentEvent::AnswerEnd(Arc::new(message)));
                AskOutcome::answered(answer)
            }
            Some(error) => failed(&error, has_begun, answer),
        }
    }
}

impl Perform for AgentSteps {
    type Error = Infallible;

    async fn submit_prompt(&self, step: PromptStep) -> Result<PromptOutcome, Infallible> {
        let hooks = &self.settings.config.hooks;
        if !hooks.has_user_prompt_submit() {
            return Ok(PromptOutcome::Allow);
        }
        let event = hooks::prompt_event(&step.prompt, &step.history);
        let outcome = self.unless_cancelled(hooks.user_prompt_submit(event, sleep)).await;
        Ok(outcome.map_or(PromptOutcome::Cut { by: CutBy::User }, hooks::prompt_outcome))
    }

    async fn plan(&self, step: PlanStep) -> Result<PlanOutcome, Infallible> {
        let planned = self.settings.config.steps.clone().plan(step);
        Ok(match self.unless_cancelled(planned).await {
            Some(Ok(plan)) => PlanOutcome::Planned { plan: Box::new(plan) },
            Some(Err(error)) => PlanOutcome::Failed { error: Box::new(error.to_record()) },
            None => PlanOutcome::Cut { by: CutBy::User },
        })
    }

    async fn check_stop(&self, step: PlanStep) -> Result<StopOutcome, Infallible> {
        let failed = |error: Error| StopOutcome::Failed { error: Box::new(error.to_record()) };
        Ok(self.settings.config.steps.check_stop(step).unwrap_or_else(failed))
    }

    async fn shorten(&self, step: ShortenStep) -> Result<ShortenOutcome, Infallible> {
        let Some(plan) = self.settings.plan_shortening(&step, self.results.as_ref()) else {
            return Ok(ShortenOutcome::Keep);
        };
        let used = SharedUsage::default();
        let shortened = Arc::clone(&self.settings).shorten(plan, Arc::clone(&used), step.left);
        let Some((outcome, event)) = self.unless_cancelled(shortened).await else {
            let spent = Spent::from(&*locked(&used));
            return Ok(ShortenOutcome::Cut { by: CutBy::User, spent });
        };
        event.into_iter().for_each(|event| self.tell(AgentEvent::ContextShortened(event)));
        Ok(outcome)
    }

    async fn ask(&self, step: AskStep) -> Result<AskOutcome, Infallible> {
        if let Err(error) = self.settings.check_usable() {
            return Ok(failed(&error, false, Answer::new(Vec::new())));
        }
        let answer = self.settings.backend.ask(self.request(&step));
        Ok(match self.unless_cancelled(answer).await {
            Some(Ok(answer)) => self.read(answer, &step).await,
            Some(Err(error)) => failed(&error, false, Answer::new(Vec::new())),
            None => {
                AskOutcome::Cut { by: CutBy::User, partial: Vec::new(), spent: Spent::default() }
            }
        })
    }

    async fn decide(&self, step: DecideStep) -> Result<DecideOutcome, Infallible> {
        let (config, call) = (&self.settings.config, &step.call.call);
        let gate = config.gate(call, &step.history);
        let Decided { prepared: Prepared { input, fit }, decision, .. } =
            match self.unless_cancelled(gate.decide()).await {
                Some(Ok(decided)) => decided,
                Some(Err(error)) => {
                    return Ok(DecideOutcome::Failed { error: hooks::record(&error) });
                }
                None => return Ok(DecideOutcome::Cut { by: CutBy::User }),
            };
        let later = if self.asks_within_turn { Decision::Ask } else { Decision::Wait };
        let (decision, denied) = decision.apply(&call.block, &input, later);
        denied.into_iter().for_each(|denied| self.tell(denied));
        let is_refused = matches!(decision, Decision::Refuse(_)) && input != call.input;
        Ok(DecideOutcome::Decided { decision, refused_input: is_refused.then_some(input), fit })
    }

    async fn run(&self, step: RunStep) -> Result<RunOutcome, Infallible> {
        let config = &self.settings.config;
        // After a crash nobody knows whether these ran. Their result says so, and the model decides what to do.
        let is_lost = |call: &&StepCall| call.may_have_run && !self.reruns;
        let (lost, calls): (Vec<_>, Vec<_>) = step.calls.iter().partition(is_lost);
        let batch = Batch::new().cancel(self.cancel.child()).run(self.run.clone());
        let key = |call: &StepCall| Some(IdempotencyKey::from(&*call.key));
        let to_run = calls.iter().map(|call| (call.place, &call.call, key(call)));
        // The turn hands out the external calls, which have no result here.
        let Admission { blocks, batch, denied, .. } = config.admit(batch, to_run);
        let mut results: Vec<CallResult> = lost.into_iter().map(CallResult::lost).collect();
        for Refused { place, content, event } in denied {
            self.tell(event);
            results.push(CallResult::new(place, content, Outcome::Blocked));
        }
        if blocks.is_empty() {
            return Ok(RunOutcome::new(results));
        }
        let store = self.results.as_ref();
        let mut events = RunningBatch::start(&self.settings, blocks, batch, store, || step.left);
        while let Some(event) = poll_fn(|cx| events.poll(cx)).await {
            if let AgentEvent::Tool(ToolEvent::CallComplete(result)) = &event
                && let Some(call) = calls.iter().find(|call| call.call.block.id == result.call_id)
            {
                let (content, outcome) = (result.result.clone(), result.outcome);
                let made = CallResult::new(call.place, content, outcome);
                results.push(made.with_images(result.images.clone()));
            }
            self.tell(event);
        }
        let mut outcome = RunOutcome::new(results);
        outcome.spent = events.take_spent();
        // Even canceled calls have results by now, so the outcome is complete: the cut only ends the turn after it.
        outcome.cut = self.cancel.is_cancelled().then_some(CutBy::User);
        Ok(outcome)
    }

    async fn review(&self, step: ReviewStep) -> Result<ReviewOutcome, Infallible> {
        let config = &self.settings.config;
        let Some(event) = config.result_event(&step.call.call, &step.history) else {
            return Ok(ReviewOutcome::Keep);
        };
        let change = self.unless_cancelled(config.hooks.post_tool_use(event, sleep)).await;
        let cut = ReviewOutcome::Cut { by: CutBy::User };
        let reviewed = change.map_or(cut, |change| hooks::review_outcome(change).0);
        config.forget_reviewed(self.results.as_ref(), &step.call.call, &reviewed);
        Ok(reviewed)
    }

    async fn review_answer(
        &self,
        step: ReviewAnswerStep,
    ) -> Result<ReviewAnswerOutcome, Infallible> {
        let hooks = &self.settings.config.hooks;
        let decided = hooks.answer(hooks::answer_event(step), sleep);
        let cut = ReviewAnswerOutcome::Cut { by: CutBy::User };
        let decided = self.unless_cancelled(decided).await;
        Ok(decided.map_or(cut, |decided| hooks::answer_outcome(decided).0))
    }

    fn prepare(&self, call: &ToolUseBlock) -> (Value, Fit) {
        let tool = self.settings.config.tools.get(&call.name);
        let Prepared { input, fit } = Prepared::by(tool, call.input.clone());
        (input, fit)
    }

    fn show(&self, block: ContentBlock) {
        self.tell(AgentEvent::Block(block));
    }
}

fn failed(error: &Error, has_begun: bool, answer: Answer) -> AskOutcome {
    let Answer { blocks: partial, tokens, cost, .. } = answer;
    let (error, spent) = (Box::new(error.to_record()), Spent::new(0, tokens, cost));
    AskOutcome::Failed { error, has_begun, partial, spent }
}

impl fmt::Debug for AgentSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSteps")
            .field("settings", &self.settings)
            .field("conversation", &self.conversation)
            .field("asks_within_turn", &self.asks_within_turn)
            .field("reruns", &self.reruns)
            .finish_non_exhaustive()
    }
}
