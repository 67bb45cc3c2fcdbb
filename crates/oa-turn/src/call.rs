use oa_types::{Outcome, ToolUseBlock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One call of the last answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Call {
    /// As the model made it; a malformed one has an empty input here.
    pub block: ToolUseBlock,
    /// The input that it runs with: the model's, as completed by the tool or changed by a decision.
    pub input: Value,
    /// A verdict on whether the tool can run with this input, as far as that is known.
    #[serde(default, skip_serializing_if = "Fit::is_unchecked")]
    pub fit: Fit,
    /// The state of the call.
    pub state: CallState,
    /// True if somebody has permitted it who was asked in vain before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_approved: bool,
}

/// A verdict on a call's input: may its tool run with it?
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "type", content = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fit {
    /// It fits, and was completed: this is the input that runs.
    Fits,
    /// Nobody has checked it.
    #[default]
    Unchecked,
    /// It does not fit, for this reason: the call must not run.
    Unfit(String),
}

impl Fit {
    pub(crate) fn is_unchecked(&self) -> bool {
        *self == Self::Unchecked
    }
}

/// The state of a call: how far it has come.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallState {
    /// Somebody is asked whether it may run, and the turn waits for the answer.
    Asked,
    /// Nobody has decided about it.
    Undecided,
    /// Somebody is still to permit it, and the turn has ended meanwhile.
    Waiting {
        /// True if it was decided about before, all but the permission.
        decided: bool,
    },
    /// It may run, or runs; in manual mode the caller is to answer it.
    Allowed,
    /// It will not run. Its result goes into history once all calls of the answer are decided.
    Refused {
        /// The result.
        content: Value,
        /// The outcome of the call.
        outcome: Outcome,
    },
    /// It has a result that stands in history.
    Answered {
        /// The result.
        content: Value,
        /// The outcome of the call.
        outcome: Outcome,
        /// True if it has been looked at.
        reviewed: bool,
    },
}

impl Call {
    pub(crate) fn new(block: ToolUseBlock) -> Self {
        let input = block.input.clone();
        let (state, fit) = (CallState::Undecided, Fit::default());
        Self { block, input, fit, state, is_approved: false }
    }

    /// Returns whether it has no result yet, and none was decided.
    #[must_use]
    pub fn is_open(&self) -> bool {
        use CallState::{Allowed, Asked, Undecided, Waiting};
        matches!(self.state, Allowed | Asked | Undecided | Waiting { .. })
    }

    /// Returns whether somebody is still to permit it.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, CallState::Asked | CallState::Waiting { .. })
    }

    /// Its result, once it stands in history.
    pub(crate) fn content(&self) -> Option<&Value> {
        match &self.state {
            CallState::Answered { content, .. } => Some(content),
            _ => None,
        }
    }

    /// Returns whether it was run and has not failed.
    pub(crate) fn went_well(&self) -> bool {
        matches!(self.state, CallState::Answered { outcome: Outcome::Ok, .. })
    }

    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.state, CallState::Answered { .. })
    }

    pub(crate) fn is_undecided(&self) -> bool {
        self.state == CallState::Undecided
    }

    pub(crate) fn awaits_review(&self) -> bool {
        matches!(self.state, CallState::Answered { reviewed: false, .. })
    }
}
