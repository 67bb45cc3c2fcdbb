//! The generic driver of a turn.

use std::{error, fmt};

use oa_types::{ContentBlock, ErrorRecord, FinishReason, ToolUseBlock};
use serde_json::Value;

use crate::action::Decision;
use crate::call::Fit;
use crate::repair::unanswered;
use crate::shorten::{ShortenOutcome, ShortenStep};
use crate::step::{
    ApprovalOutcome, ApprovalStep, AskOutcome, AskStep, DecideOutcome, DecideStep, PlanOutcome,
    PlanStep, PromptOutcome, PromptStep, ReviewAnswerOutcome, ReviewAnswerStep, ReviewOutcome,
    ReviewStep, RunOutcome, RunStep, Step, StepOutcome, StopOutcome,
};
use crate::turn::Turn;

/// The operations that [`drive`] needs: ask a model, run tools, and decide on both.
///
/// Steps and outcomes are data. An implementation over a journal records each outcome before returning it. On replay
/// it returns the recorded outcome instead of performing the step, so that [`drive`] makes the same decisions.
/// Everything that happened (an answer, a refusal, a server failure, an interrupt) is an outcome, and is recorded. An
/// `Err` means that nothing happened: the step was not performed, and will be performed later.
///
/// ```
/// use std::cell::RefCell;
/// use std::convert::Infallible;
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
///
/// use oa_turn::{
///     Answer, AskOutcome, AskStep, CallResult, Options, Perform, RunOutcome, RunStep, Turn, drive,
/// };
/// use oa_types::{FinishReason, Message, Outcome, TextBlock, ToolUseBlock};
/// use serde_json::{Value, json};
///
/// /// Outcomes in order of completion.
/// #[derive(Default)]
/// struct Journal {
///     entries: RefCell<Vec<Value>>,
///     place: RefCell<usize>,
///     performed: RefCell<u32>,
/// }
///
/// impl Journal {
///     /// Returns the recorded outcome, or performs the step and records its outcome.
///     fn entry(&self, perform: impl FnOnce() -> Value) -> Value {
///         let mut place = self.place.borrow_mut();
///         *place += 1;
///         let recorded = self.entries.borrow().get(*place - 1).cloned();
///         recorded.unwrap_or_else(|| {
///             *self.performed.borrow_mut() += 1;
///             self.entries.borrow_mut().push(perform());
///             self.entries.borrow()[*place - 1].clone()
///         })
///     }
/// }
///
/// impl Perform for Journal {
///     type Error = serde_json::Error;
///
///     async fn ask(&self, step: AskStep) -> Result<AskOutcome, serde_json::Error> {
///         let answer = || match step.number {
///             1 => vec![ToolUseBlock::new("call_1", "add", json!({"a": 1, "b": 2})).into()],
///             _ => vec![TextBlock::new("It is 3.").into()],
///         };
///         serde_json::from_value(self.entry(|| json!(AskOutcome::answered(Answer::new(answer())))))
///     }
///
///     async fn run(&self, step: RunStep) -> Result<RunOutcome, serde_json::Error> {
///         let run = |call: &oa_turn::StepCall| {
///             let input = &call.call.input;
///             let sum = || json!(input["a"].as_i64().zip(input["b"].as_i64()).map(|(a, b)| a + b));
///             CallResult::new(call.place, self.entry(sum), Outcome::Ok)
///         };
///         Ok(RunOutcome::new(step.calls.iter().map(run).collect()))
///     }
/// }
///
/// /// Runs a future that never waits.
/// fn block_on<F: Future>(future: F) -> F::Output {
///     match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
///         Poll::Ready(output) => output,
///         Poll::Pending => unreachable!("nothing here waits"),
///     }
/// }
///
/// let converse = |journal: &Journal| {
///     *journal.place.borrow_mut() = 0;
///     let mut turn = Turn::new(Options::auto()).with_key_seed("session-1");
///     turn.submit(Message::user("What is 1 + 2?")).expect("it is a prompt");
///     let reason = block_on(drive(&mut turn, journal)).expect("nothing fails");
///     (turn.history().clone(), reason)
/// };
/// let journal = Journal::default();
/// let (history, _) = converse(&journal);
/// assert_eq!(history.last().map(Message::text).as_deref(), Some("It is 3."));
/// // A replay performs nothing and gives the same result.
/// assert_eq!(converse(&journal).0, history);
/// assert_eq!(*journal.performed.borrow(), 3);
/// ```
pub trait Perform {
    /// The reason why a step was not performed: a crash, a lost connection, a suspended engine.
    type Error;

    /// Reviews a prompt before it enters the conversation. It is called once for each prompt of [`Turn::prompt`] and
    /// each message of [`Turn::steer`]. By default, all are allowed.
    fn submit_prompt(
        &self,
        _step: PromptStep,
    ) -> impl Future<Output = Result<PromptOutcome, Self::Error>> {
        async { Ok(PromptOutcome::Allow) }
    }

    /// Plans a request. It is called before each request if [`plan_steps`](crate::Options::plan_steps) is set. By
    /// default, requests are sent as they are.
    fn plan(&self, _step: PlanStep) -> impl Future<Output = Result<PlanOutcome, Self::Error>> {
        async { Ok(PlanOutcome::Planned { plan: Box::default() }) }
    }

    /// Decides whether the turn ends after the calls of a step. It is called once for each step with calls if
    /// [`check_stop`](crate::Options::check_stop) is set. By default, the turn continues.
    fn check_stop(
        &self,
        _step: PlanStep,
    ) -> impl Future<Output = Result<StopOutcome, Self::Error>> {
        async { Ok(StopOutcome::Continue) }
    }

    /// Shortens the conversation if it is too long for the model. It is called before each request if
    /// [`shorten`](crate::Options::shorten) is set, and once more if [`ask`](Self::ask) failed with the kind
    /// `context_overflow`. By default, it is sent as it is.
    fn shorten(
        &self,
        _step: ShortenStep,
    ) -> impl Future<Output = Result<ShortenOutcome, Self::Error>> {
        async { Ok(ShortenOutcome::Keep) }
    }

    /// Asks the model.
    fn ask(&self, step: AskStep) -> impl Future<Output = Result<AskOutcome, Self::Error>>;

    /// Decides whether a call may run, and with what input. All calls of an answer are decided before any of them
    /// runs. By default, all calls may run unchanged.
    ///
    /// With [`Decision::Ask`], the remaining calls are decided first; then [`approve`](Self::approve) waits for
    /// permission. Budgets are kept.
    fn decide(&self, step: DecideStep) -> impl Future<Output = Result<DecideOutcome, Self::Error>> {
        async move {
            let call = step.call.call;
            let decision = Decision::Run(call.input);
            Ok(DecideOutcome::Decided { decision, refused_input: None, fit: call.fit })
        }
    }

    /// Waits for a decision on one of the calls for which [`decide`](Self::decide) requested permission. By default,
    /// the first call is refused, because no user can be asked.
    fn approve(
        &self,
        step: ApprovalStep,
    ) -> impl Future<Output = Result<ApprovalOutcome, Self::Error>> {
        async move {
            let error = || {
                let message = "no call is waiting for approval";
                let error = ErrorRecord::new("invalid_input", message);
                ApprovalOutcome::Failed { error: Box::new(error) }
            };
            Ok(step.calls.first().map_or_else(error, |call| {
                let block = &call.call.block;
                let content = unanswered(&block.name, "not run: approval could not be requested");
                ApprovalOutcome::Decided {
                    id: block.id.clone(),
                    decision: Decision::Refuse(content),
                }
            }))
        }
    }

    /// Runs calls, and waits until all have ended. A journal should record the result of each call separately, under
    /// its key, so that completed calls do not run again because another one did not complete.
    fn run(&self, step: RunStep) -> impl Future<Output = Result<RunOutcome, Self::Error>>;

    /// Reviews the result of a call. It is called once for each result. By default, results are kept unchanged.
    fn review(
        &self,
        _step: ReviewStep,
    ) -> impl Future<Output = Result<ReviewOutcome, Self::Error>> {
        async { Ok(ReviewOutcome::Keep) }
    }

    /// Reviews an answer without calls before the turn ends with it. It is called if
    /// [`review_answers`](crate::Options::review_answers) is set. By default, answers are kept.
    fn review_answer(
        &self,
        _step: ReviewAnswerStep,
    ) -> impl Future<Output = Result<ReviewAnswerOutcome, Self::Error>> {
        async { Ok(ReviewAnswerOutcome::Keep) }
    }

    /// Completes and checks the input of a call, as soon as the answer is complete, and again if an approval changes
    /// it. It is also called in replays, so it must always return the same value for the same call. By default, inputs
    /// are not checked.
    fn prepare(&self, call: &ToolUseBlock) -> (Value, Fit) {
        (call.input.clone(), Fit::Unchecked)
    }

    /// Shows a block to the caller: a call, a result, or the final text. It is also called in replays. By default, it
    /// does nothing.
    fn show(&self, _block: ContentBlock) {}
}

/// The error of [`drive`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DriveError<E> {
    /// An outcome reported a failure. The turn has ended, and can be continued as after [`Turn::fail`].
    Failed(Box<ErrorRecord>),
    /// No turn is in progress.
    Idle,
    /// A step was not performed. The turn has not changed, and can be driven again.
    Perform(E),
}

/// Performs the steps of a turn until it ends, and returns the reason.
///
/// The turn must have begun: by [`Turn::prompt`], [`Turn::submit`], [`Turn::continue_turn`], or in another process
/// that left a [snapshot](Turn::snapshot). It may end because calls wait for the caller (in manual mode) or for
/// permission ([`FinishReason::ApprovalPending`]); then continue it and call `drive` again.
///
/// # Errors
///
/// `Failed` if an outcome reports a failure, `Perform` if a step was not performed, `Idle` if no turn is in progress.
///
/// # Cancel safety
///
/// Dropping the future drops the step that is being performed. The turn keeps its state, and the next `drive`
/// performs the step again; [`StepCall::may_have_run`](crate::StepCall::may_have_run) marks calls that had started.
pub async fn drive<P: Perform>(
    turn: &mut Turn,
    perform: &P,
) -> Result<FinishReason, DriveError<P::Error>> {
    loop {
        let Some(step) = turn.next_step() else { return Err(DriveError::Idle) };
        let outcome = match step {
            Step::End { reason } => return Ok(reason),
            Step::Show { block } => {
                perform.show(block);
                continue;
            }
            Step::Approve(step) => perform.approve(step).await.map(StepOutcome::Approve),
            Step::Ask(step) => perform.ask(step).await.map(StepOutcome::Ask),
            Step::CheckStop(step) => perform.check_stop(step).await.map(StepOutcome::CheckStop),
            Step::Decide(step) => perform.decide(step).await.map(StepOutcome::Decide),
            Step::Plan(step) => perform.plan(step).await.map(StepOutcome::Plan),
            Step::Review(step) => perform.review(step).await.map(StepOutcome::Review),
            Step::ReviewAnswer(step) => {
                perform.review_answer(step).await.map(StepOutcome::ReviewAnswer)
            }
            Step::Run(step) => perform.run(step).await.map(StepOutcome::Run),
            Step::Shorten(step) => perform.shorten(step).await.map(StepOutcome::Shorten),
            Step::SubmitPrompt(step) => {
                perform.submit_prompt(step).await.map(StepOutcome::SubmitPrompt)
            }
        };
        let outcome = outcome.map_err(DriveError::Perform)?;
        let has_calls = matches!(outcome, StepOutcome::Ask(AskOutcome::Answered { .. }));
        let is_approval = matches!(outcome, StepOutcome::Approve(_));
        turn.take(outcome).map_err(DriveError::Failed)?;
        // No await before all inputs are prepared, so a `drive` that is dropped leaves all of them prepared.
        for place in 0..turn.calls().len() {
            let call = &turn.calls()[place];
            // An approval may have changed the input.
            if has_calls || is_approval && call.is_approved && call.fit == Fit::Unchecked {
                let (input, fit) = perform.prepare(&call.block_to_run());
                turn.set_input(place, input, fit);
            }
        }
    }
}

impl<E: fmt::Display> fmt::Display for DriveError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Idle => f.write_str("no turn is in progress: submit a prompt, or continue"),
            Self::Perform(error) => write!(f, "a step failed: {error}"),
        }
    }
}

impl<E: error::Error + 'static> error::Error for DriveError<E> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Perform(error) => Some(error),
            Self::Failed(_) | Self::Idle => None,
        }
    }
}
