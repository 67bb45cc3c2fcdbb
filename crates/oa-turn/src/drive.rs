//! The loop over everything that performs the steps of a turn.

use std::{error, fmt};

use oa_types::{ContentBlock, ErrorRecord, FinishReason, ToolUseBlock};
use serde_json::Value;

use crate::action::Decision;
use crate::call::Fit;
use crate::repair::unanswered;
use crate::step::{
    ApprovalOutcome, ApprovalStep, AskOutcome, AskStep, DecideOutcome, DecideStep, PromptOutcome,
    PromptStep, ReviewOutcome, ReviewStep, RunOutcome, RunStep, Step, StepOutcome,
};
use crate::turn::Turn;

/// Performs the steps of a turn: asks a model, runs tools, and decides about both.
///
/// Steps and outcomes are data. An implementation over a journal records each outcome before it returns it, and
/// returns what is recorded in place of performing the step; then [`drive`] makes the same decisions in each replay.
/// What happened (an answer, a refusal, the failure of a server, an interrupt) is an outcome, and is recorded. An
/// `Err` says that nothing has happened: the step was not performed, and is to be performed later.
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
/// /// Outcomes in the order in which they came about.
/// #[derive(Default)]
/// struct Journal {
///     entries: RefCell<Vec<Value>>,
///     place: RefCell<usize>,
///     performed: RefCell<u32>,
/// }
///
/// impl Journal {
///     /// Returns what is recorded, or performs it and records it.
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
/// // A replay performs nothing, and comes to the same.
/// assert_eq!(converse(&journal).0, history);
/// assert_eq!(*journal.performed.borrow(), 3);
/// ```
pub trait Perform {
    /// The reason why a step was not performed: a crash, a connection that is gone, an engine that suspends.
    type Error;

    /// Looks at a prompt before it enters the conversation. Only prompts that were handed over by
    /// [`Turn::prompt`] come here, each once. By default all are let through.
    fn submit_prompt(
        &self,
        _step: PromptStep,
    ) -> impl Future<Output = Result<PromptOutcome, Self::Error>> {
        async { Ok(PromptOutcome::Allow) }
    }

    /// Asks the model.
    fn ask(&self, step: AskStep) -> impl Future<Output = Result<AskOutcome, Self::Error>>;

    /// Decides whether a call may run, and with what input. All calls of an answer are decided before any of them
    /// runs. By default all may run as they are.
    ///
    /// With [`Decision::Ask`] the turn goes on to the next call, and comes back by [`approve`](Self::approve)
    /// once all are asked about. Its budgets stay.
    fn decide(&self, step: DecideStep) -> impl Future<Output = Result<DecideOutcome, Self::Error>> {
        async move {
            let call = step.call.call;
            Ok(DecideOutcome::Decided { decision: Decision::Run(call.input), fit: call.fit })
        }
    }

    /// Waits until somebody has decided about one of the calls that [`decide`](Self::decide) asks about. By
    /// default the first is refused: nobody can be asked.
    fn approve(
        &self,
        step: ApprovalStep,
    ) -> impl Future<Output = Result<ApprovalOutcome, Self::Error>> {
        async move {
            let error = || {
                let message = "no call waits for an approval";
                let error = ErrorRecord::new("invalid_input", message);
                ApprovalOutcome::Failed { error: Box::new(error) }
            };
            Ok(step.calls.first().map_or_else(error, |call| {
                let block = &call.call.block;
                let content = unanswered(&block.name, "not run: nobody could be asked about it");
                ApprovalOutcome::Decided {
                    id: block.id.clone(),
                    decision: Decision::Refuse(content),
                }
            }))
        }
    }

    /// Runs calls, and waits until all have ended. A journal records the result of each call by itself, under its
    /// key, so that a call which had ended is not run again because another had not.
    fn run(&self, step: RunStep) -> impl Future<Output = Result<RunOutcome, Self::Error>>;

    /// Looks at the result of a call, each once. By default all stay as they are.
    fn review(
        &self,
        _step: ReviewStep,
    ) -> impl Future<Output = Result<ReviewOutcome, Self::Error>> {
        async { Ok(ReviewOutcome::Keep) }
    }

    /// Completes the input of a call, as soon as the answer is there, and says whether its tool can run with it.
    /// It is asked in replays, too, so that it must always say the same of the same call. By default
    /// nobody checks inputs.
    fn prepare(&self, call: &ToolUseBlock) -> (Value, Fit) {
        (call.input.clone(), Fit::Unchecked)
    }

    /// Shows something to the caller: a call, a result, the final text. It is shown in replays, too. By default
    /// nobody looks.
    fn show(&self, _block: ContentBlock) {}
}

/// The end of [`drive`] before the end of the turn.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DriveError<E> {
    /// The turn has failed, as an outcome tells. It has ended, and can be gone on from as after
    /// [`Turn::fail`].
    Failed(Box<ErrorRecord>),
    /// Nothing is in progress: no turn was begun.
    Idle,
    /// A step was not performed. The turn stands where it stood, and can be driven on.
    Perform(E),
}

/// Performs the steps of a turn up to its end, and returns why it ended.
///
/// The turn must have begun: by [`Turn::prompt`], [`Turn::submit`], [`Turn::continue_turn`], or in another process
/// that has left a [snapshot](Turn::snapshot). It may end because calls wait for the caller (in manual mode), or for
/// somebody's permission ([`FinishReason::ApprovalPending`]); then it is continued, and driven again.
///
/// # Errors
///
/// `Failed` if an outcome tells of a failure, `Perform` if a step was not performed, `Idle` if there is no turn.
///
/// # Cancel safety
///
/// Dropping the future drops the step that is being performed. The turn stands where it stood, and the next `drive`
/// has the step performed again; [`StepCall::may_have_run`](crate::StepCall::may_have_run) marks calls that had started.
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
            Step::Decide(step) => perform.decide(step).await.map(StepOutcome::Decide),
            Step::Review(step) => perform.review(step).await.map(StepOutcome::Review),
            Step::Run(step) => perform.run(step).await.map(StepOutcome::Run),
            Step::SubmitPrompt(step) => {
                perform.submit_prompt(step).await.map(StepOutcome::SubmitPrompt)
            }
        };
        let outcome = outcome.map_err(DriveError::Perform)?;
        let has_calls = matches!(outcome, StepOutcome::Ask(AskOutcome::Answered { .. }));
        turn.take(outcome).map_err(DriveError::Failed)?;
        if has_calls {
            for place in 0..turn.calls().len() {
                let (input, fit) = perform.prepare(&turn.calls()[place].block);
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
            Self::Perform(error) => write!(f, "a step was not performed: {error}"),
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
