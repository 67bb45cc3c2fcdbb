//! The steps of a turn, and what comes of them, as data.

use oa_types::{ContentBlock, ErrorRecord, FinishReason, History, Message, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::Decision;
use crate::answer::Answer;
use crate::call::{Call, Fit};
use crate::repair::{LOST, unanswered};

/// The next thing to perform, with everything that it takes: an [`Action`](crate::Action) that can leave the
/// process.
///
/// A journal records outcomes, not steps: a step is made anew of the outcomes before it, history and all.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// Wait until somebody has decided about one of the calls that were asked about.
    Approve(ApprovalStep),
    /// Ask the model.
    Ask(AskStep),
    /// Find out whether a call may run.
    Decide(DecideStep),
    /// The turn is over, or waits for the caller. There is no outcome to tell.
    End {
        /// The reason of the end.
        reason: FinishReason,
    },
    /// Look at the result of a call.
    Review(ReviewStep),
    /// Run calls.
    Run(RunStep),
    /// Show this to the caller. There is no outcome to tell.
    Show {
        /// A call or what was wrong with it, a result, or the final text.
        block: ContentBlock,
    },
    /// Find out whether a prompt may be sent, and in what words.
    SubmitPrompt(PromptStep),
}

/// The outcome of a [`Step`], which [`Turn::take`](crate::Turn::take) takes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "step", content = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepOutcome {
    /// Of [`Step::Approve`].
    Approve(ApprovalOutcome),
    /// Of [`Step::Ask`].
    Ask(AskOutcome),
    /// Of [`Step::Decide`].
    Decide(DecideOutcome),
    /// Of [`Step::Review`].
    Review(ReviewOutcome),
    /// Of [`Step::Run`].
    Run(RunOutcome),
    /// Of [`Step::SubmitPrompt`].
    SubmitPrompt(PromptOutcome),
}

/// A call within a step.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepCall {
    /// The place of the call in [`Turn::calls`](crate::Turn::calls).
    pub place: usize,
    /// The key by which the call is known wherever it runs; see [`Turn::call_key`](crate::Turn::call_key).
    pub key: String,
    /// The call, with the input that it runs with.
    pub call: Call,
    /// True if the call was handed out to be run before, and nothing is known of what came of that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_have_run: bool,
}

/// A prompt at its gate.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PromptStep {
    /// The prompt as the caller gave it.
    pub prompt: Message,
    /// The conversation before it.
    pub history: History,
}

/// The outcome of a prompt's gate.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PromptOutcome {
    /// It is sent as it is.
    Allow,
    /// It is not sent, and the conversation stays as it was.
    Block {
        /// The reason, for the caller.
        reason: String,
    },
    /// Somebody wants to go on without it.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// The gate failed: the prompt is not sent.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
    /// It is sent with these words in the place of its own. Its images stay.
    Replace {
        /// The words.
        text: String,
    },
}

/// A request to the model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AskStep {
    /// The number of the request in its turn machine, from 1. It is the same in every replay, so that it can name
    /// an entry of a journal and seed the ids that are made up for calls.
    pub number: u64,
    /// True if tools are offered.
    pub tools: bool,
    /// The conversation that is sent.
    pub history: History,
    /// A number for each of its messages: equal numbers mean equal messages.
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
        /// The words that the model is told if the answer is not of the form that was asked for: then it is asked
        /// again within the same turn, unless a limit is reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        correction: Option<String>,
    },
    /// The answer was cut off.
    Cut {
        /// The reason.
        by: CutBy,
        /// The part of the answer that had arrived.
        partial: Vec<ContentBlock>,
    },
    /// There is no answer, or it broke off.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
        /// True if the answer had begun: then the prompt stays in history, otherwise it is taken back.
        has_begun: bool,
        /// The part of the answer that had arrived.
        partial: Vec<ContentBlock>,
    },
}

/// A call about which somebody decides.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DecideStep {
    /// The call.
    pub call: StepCall,
    /// The conversation, which ends with the answer that has made the call.
    pub history: History,
}

/// The outcome of a decision.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecideOutcome {
    /// Somebody wants to go on without it.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// It is decided.
    Decided {
        /// The decision.
        decision: Decision,
        /// A verdict on the input of the decision.
        #[serde(default, skip_serializing_if = "Fit::is_unchecked")]
        fit: Fit,
    },
    /// Nobody could decide: the call must not run, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
}

/// Calls about which somebody is asked.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ApprovalStep {
    /// Those about which nobody has decided yet, in call order.
    pub calls: Vec<StepCall>,
}

/// The outcome of waiting for an approval: about one call, whichever is decided first.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalOutcome {
    /// Somebody wants to go on without it.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// Somebody has decided. [`Decision::Wait`] ends the turn until [`approve`](crate::Turn::approve) tells.
    Decided {
        /// The id of the call.
        id: String,
        /// The decision.
        decision: Decision,
    },
    /// Nobody could be asked: the call must not run, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
}

/// Calls that run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunStep {
    /// The calls, in call order. They may run at once.
    pub calls: Vec<StepCall>,
}

/// The outcome of running calls.
///
/// The model is told of a call without a result here that it may have taken effect: either it was cut, or its result
/// was lost.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The results, in the order of completion. A second one of the same call is not taken.
    pub results: Vec<CallResult>,
    /// The reason why the calls that have no result were cut, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutBy>,
}

/// The result of one call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallResult {
    /// The place of the call in [`Turn::calls`](crate::Turn::calls).
    pub place: usize,
    /// The result: a string reaches the model as it is, anything else as JSON.
    pub content: Value,
    /// The outcome of the call.
    pub outcome: Outcome,
}

/// A result at which somebody looks.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReviewStep {
    /// The call; its state holds the result.
    pub call: StepCall,
    /// The conversation, in which the result stands.
    pub history: History,
}

/// The outcome of looking at a result.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReviewOutcome {
    /// Somebody wants to go on without it.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// Nobody could look at it: it stays as it is, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
    /// The result stays as it is.
    Keep,
    /// This is the result.
    Replace {
        /// The content of the result.
        content: Value,
    },
}

/// The reason why a turn ends in the middle of a step.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CutBy {
    /// The user interrupted.
    User,
    /// A budget that is not counted by the turn is used up: time.
    Budget {
        /// The reason of the end.
        reason: FinishReason,
    },
}

impl CallResult {
    /// Creates the result of a call.
    #[must_use]
    pub fn new(place: usize, content: Value, outcome: Outcome) -> Self {
        Self { place, content, outcome }
    }

    /// Creates the result of a call that had started, and whose own result is lost: the model reads that it may
    /// have taken effect.
    #[must_use]
    pub fn lost(call: &StepCall) -> Self {
        Self::new(call.place, unanswered(&call.call.block.name, LOST), Outcome::Unknown)
    }
}

impl RunOutcome {
    /// Creates the outcome of calls that came to these results.
    #[must_use]
    pub fn new(results: Vec<CallResult>) -> Self {
        Self { results, cut: None }
    }
}

impl AskOutcome {
    /// Creates the outcome of a request that was answered, by an answer that needs no correction.
    #[must_use]
    pub fn answered(answer: Answer) -> Self {
        Self::Answered { answer, correction: None }
    }
}

impl DecideOutcome {
    /// Creates the outcome of a decision about an input that nobody has checked.
    #[must_use]
    pub fn decided(decision: Decision) -> Self {
        Self::Decided { decision, fit: Fit::Unchecked }
    }
}
