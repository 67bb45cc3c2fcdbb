//! The steps of a turn and their outcomes, as data.

use oa_types::{
    ContentBlock, Cost, ErrorRecord, FinishReason, History, ImageBlock, Message, Outcome,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::Decision;
use crate::answer::Answer;
use crate::budget::{BudgetLeft, Spent};
use crate::call::{Call, Fit};
use crate::cut_by::CutBy;
use crate::plan::StepPlan;
use crate::repair::{LOST, unanswered};
use crate::shorten::{ShortenOutcome, ShortenStep};

/// The next step to perform: an [`Action`](crate::Action) with all the data that it needs, so that another process can
/// perform it.
///
/// A journal records outcomes, not steps: each step, including its history, follows from the outcomes before it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// Wait for a decision on one of the calls for which permission was requested.
    Approve(ApprovalStep),
    /// Ask the model.
    Ask(AskStep),
    /// Decide whether the turn ends after the calls of a step. The data is that of the finished step.
    CheckStop(PlanStep),
    /// Decide whether a call may run.
    Decide(DecideStep),
    /// The turn has ended, or waits for the caller. This step has no outcome.
    End {
        /// The reason for the end.
        reason: FinishReason,
    },
    /// Plan the next request.
    Plan(PlanStep),
    /// Review the result of a call.
    Review(ReviewStep),
    /// Review an answer without calls.
    ReviewAnswer(ReviewAnswerStep),
    /// Run calls.
    Run(RunStep),
    /// Shorten the conversation if it is too long for the model.
    Shorten(ShortenStep),
    /// Show a block to the caller. This step has no outcome.
    Show {
        /// A call or its error, a result, or the final text.
        block: ContentBlock,
    },
    /// Decide whether a prompt may be sent, and with what text.
    SubmitPrompt(PromptStep),
}

/// The outcome of a [`Step`], for [`Turn::take`](crate::Turn::take).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "step", content = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepOutcome {
    /// The outcome of [`Step::Approve`].
    Approve(ApprovalOutcome),
    /// The outcome of [`Step::Ask`].
    Ask(AskOutcome),
    /// The outcome of [`Step::CheckStop`].
    CheckStop(StopOutcome),
    /// The outcome of [`Step::Decide`].
    Decide(DecideOutcome),
    /// The outcome of [`Step::Plan`].
    Plan(PlanOutcome),
    /// The outcome of [`Step::Review`].
    Review(ReviewOutcome),
    /// The outcome of [`Step::ReviewAnswer`].
    ReviewAnswer(ReviewAnswerOutcome),
    /// The outcome of [`Step::Run`].
    Run(RunOutcome),
    /// The outcome of [`Step::Shorten`].
    Shorten(ShortenOutcome),
    /// The outcome of [`Step::SubmitPrompt`].
    SubmitPrompt(PromptOutcome),
}

/// A call within a step.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepCall {
    /// The index of the call in [`Turn::calls`](crate::Turn::calls).
    pub place: usize,
    /// The idempotency key of the call; see [`Turn::call_key`](crate::Turn::call_key).
    pub key: String,
    /// The call and the input that it runs with.
    pub call: Call,
    /// True if the call was handed out to run before, with an unknown outcome.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_have_run: bool,
}

/// A prompt to review.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PromptStep {
    /// The prompt as the caller gave it.
    pub prompt: Message,
    /// The conversation before it.
    pub history: History,
    /// True if the message was steered into a turn in progress.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steered: bool,
}

/// The outcome of reviewing a prompt.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PromptOutcome {
    /// The prompt is sent unchanged.
    Allow,
    /// The prompt is not sent, and the conversation does not change. The turn ends, unless the message was steered
    /// into it; then it continues.
    Block {
        /// The reason, for the caller.
        reason: String,
    },
    /// The turn ended early.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// The review failed: the prompt is not sent.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
    /// The prompt is sent with this text instead of its own. Its images stay.
    Replace {
        /// The new text.
        text: String,
    },
}

/// The decision whether a turn ends after the calls of a step.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopOutcome {
    /// The turn continues.
    Continue,
    /// The turn ended early.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// No decision could be made, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
    /// The turn ends with [`FinishReason::Stopped`], before steered messages enter and the conversation is shortened.
    Stop,
}

/// A request to plan.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlanStep {
    /// The number of the request in its turn, from 1; 0 for [`Step::CheckStop`] of calls that had waited.
    pub step: u32,
    /// The calls of the last answer of this turn, with their results.
    pub last_calls: Vec<Call>,
    /// The tokens used in this turn; 0 if unknown.
    pub tokens: u64,
    /// The cost of this turn; zero if unknown.
    pub cost: Cost,
    /// The conversation to send.
    pub history: History,
}

/// The outcome of planning a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanOutcome {
    /// The turn ended early.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// The request could not be planned, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
    /// The plan.
    Planned {
        /// The plan.
        plan: Box<StepPlan>,
    },
}

/// A request to the model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AskStep {
    /// The number of the request in its [`Turn`](crate::Turn), from 1. It is the same in every replay, so it can name a
    /// journal entry and seed generated call ids.
    pub number: u64,
    /// True if the request offers tools.
    pub tools: bool,
    /// The plan of the request, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<StepPlan>,
    /// The conversation to send.
    pub history: History,
    /// The revision of each message. Equal revisions mean equal messages.
    pub revisions: Vec<u64>,
}

/// The outcome of a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AskOutcome {
    /// The model has answered.
    Answered {
        /// The answer.
        answer: Answer,
        /// The message to the model if its answer does not match the requested format. The model is then asked again
        /// within the same turn, unless a limit is reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        correction: Option<String>,
    },
    /// The turn ended early, in the middle of the answer.
    Cut {
        /// The reason.
        by: CutBy,
        /// The part of the answer that had arrived.
        partial: Vec<ContentBlock>,
        /// The amount that the server reported for it. It counts toward the budgets.
        #[serde(default, skip_serializing_if = "Spent::is_zero")]
        spent: Spent,
    },
    /// The request failed, before or during the answer.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
        /// True if the answer had begun. The prompt then stays in history; otherwise it is removed.
        has_begun: bool,
        /// The part of the answer that had arrived.
        partial: Vec<ContentBlock>,
        /// The amount that the server reported for it. It counts toward the budgets.
        #[serde(default, skip_serializing_if = "Spent::is_zero")]
        spent: Spent,
    },
}

/// A call to decide on.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DecideStep {
    /// The call.
    pub call: StepCall,
    /// The conversation, which ends with the answer that made the call.
    pub history: History,
}

/// The outcome of a decision.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecideOutcome {
    /// The turn ended early.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// The decision was made.
    Decided {
        /// The decision.
        decision: Decision,
        /// The input that was refused, if it is not that of the step: a hook may change an input that a rule then
        /// denies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused_input: Option<Value>,
        /// The result of checking the decision's input.
        #[serde(default, skip_serializing_if = "Fit::is_unchecked")]
        fit: Fit,
    },
    /// No decision could be made: the call must not run, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
}

/// Calls that wait for permission.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ApprovalStep {
    /// The undecided calls, in call order.
    pub calls: Vec<StepCall>,
}

/// The outcome of waiting for approval. It concerns one call: the first to be decided.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalOutcome {
    /// The turn ended early.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// A decision was made. [`Decision::Wait`] ends the turn until [`approve`](crate::Turn::approve) is called.
    Decided {
        /// The id of the call.
        id: String,
        /// The decision.
        decision: Decision,
    },
    /// Permission could not be requested: the call must not run, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
}

/// Calls to run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunStep {
    /// The calls, in call order. They may run concurrently. Those of external tools do not run: check whether they may
    /// still be handed to the caller.
    pub calls: Vec<StepCall>,
    /// The rest of the budgets, for sub-agents among the calls.
    #[serde(default, skip_serializing_if = "BudgetLeft::is_unlimited")]
    pub left: BudgetLeft,
}

/// The outcome of running calls.
///
/// A call without a result here was cut off, or its result was lost. The model reads that it may have taken effect. A
/// call of an external tool without a result here is handed to the caller; its result is an error if it must not be.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The results, in order of completion. Further results of the same call are ignored.
    pub results: Vec<CallResult>,
    /// The early end of the turn that cut off the calls without a result, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutBy>,
    /// The amount that sub-agents among the calls have spent.
    #[serde(default, skip_serializing_if = "Spent::is_zero")]
    pub spent: Spent,
}

/// The result of one call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallResult {
    /// The index of the call in [`Turn::calls`](crate::Turn::calls).
    pub place: usize,
    /// The result. The model receives a string unchanged, and anything else as JSON.
    pub content: Value,
    /// The outcome of the call.
    pub outcome: Outcome,
    /// The images that the model sees with the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageBlock>,
}

/// A result to review.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReviewStep {
    /// The call; its state holds the result.
    pub call: StepCall,
    /// The conversation, including the result.
    pub history: History,
}

/// The outcome of reviewing a result.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReviewOutcome {
    /// The turn ended early.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// The review failed: the result is kept unchanged, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
    /// The result is kept unchanged.
    Keep,
    /// The result is replaced.
    Replace {
        /// The new content of the result.
        content: Value,
        /// The new images of the result. If absent, the result has none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<ImageBlock>,
    },
}

/// An answer without calls to review.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReviewAnswerStep {
    /// The answer. It has no content if the model said nothing.
    pub answer: Message,
    /// The number of answers that were refused earlier in this turn.
    pub retries: u32,
    /// The conversation before the answer.
    pub history: History,
}

/// The outcome of reviewing an answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReviewAnswerOutcome {
    /// The answer is removed from the conversation, and the turn fails; see
    /// [`Turn::block_answer`](crate::Turn::block_answer).
    Block {
        /// The reason, for the caller.
        reason: String,
    },
    /// The turn ended early. If text is shown as it arrives, the answer stays, marked as interrupted.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// The review failed: the answer is removed from the conversation, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
    /// The turn ends with the answer.
    Keep,
    /// The model reads the reason and answers again; see [`Turn::retry_answer`](crate::Turn::retry_answer). If no retry
    /// is left, the answer is blocked.
    Retry {
        /// The reason, for the model.
        reason: String,
    },
}

impl CallResult {
    /// Creates the result of a call.
    #[must_use]
    pub fn new(place: usize, content: Value, outcome: Outcome) -> Self {
        Self { place, content, outcome, images: Vec::new() }
    }

    /// Sets the images of the result.
    #[must_use]
    pub fn with_images(mut self, images: Vec<ImageBlock>) -> Self {
        self.images = images;
        self
    }

    /// Creates the result of a call that had started and whose result was lost. The model reads that it may have taken
    /// effect.
    #[must_use]
    pub fn lost(call: &StepCall) -> Self {
        Self::new(call.place, unanswered(&call.call.block.name, LOST), Outcome::Unknown)
    }
}

impl RunOutcome {
    /// Creates the outcome of calls with these results.
    #[must_use]
    pub fn new(results: Vec<CallResult>) -> Self {
        Self { results, cut: None, spent: Spent::default() }
    }
}

impl AskOutcome {
    /// Creates the outcome of a request whose answer needs no correction.
    #[must_use]
    pub fn answered(answer: Answer) -> Self {
        Self::Answered { answer, correction: None }
    }
}

impl DecideOutcome {
    /// Creates the outcome of a decision whose input has not been checked.
    #[must_use]
    pub fn decided(decision: Decision) -> Self {
        Self::Decided { decision, refused_input: None, fit: Fit::Unchecked }
    }
}
