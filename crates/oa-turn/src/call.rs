use std::sync::Arc;

use oa_types::{ImageBlock, Outcome, ToolUseBlock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One call of the last answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Call {
    /// The call as the model made it. A malformed call has an empty input here.
    #[serde(with = "shared")]
    pub block: Arc<ToolUseBlock>,
    /// The input that the call runs with: the model's, as completed by the tool or changed by a decision.
    pub input: Value,
    /// The result of checking `input`.
    #[serde(default, skip_serializing_if = "Fit::is_unchecked")]
    pub fit: Fit,
    /// The state of the call.
    pub state: CallState,
    /// True if the call had to wait for permission and got it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_approved: bool,
    /// True if the call is to an external tool: it does not run. Once it is admitted, the caller adds its result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_external: bool,
    /// The images of the result, once there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageBlock>,
}

/// The result of checking a call's input against its tool.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "type", content = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fit {
    /// The input is valid and complete.
    Fits,
    /// The input has not been checked.
    #[default]
    Unchecked,
    /// The input is invalid, for this reason: the call must not run.
    Unfit(String),
}

impl Fit {
    pub(crate) fn is_unchecked(&self) -> bool {
        *self == Self::Unchecked
    }
}

/// The state of a call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallState {
    /// Permission was requested, and the turn waits for the decision.
    Asked,
    /// No decision has been made.
    Undecided,
    /// The call still needs permission, and the turn has ended.
    Waiting {
        /// True if everything but the permission has been decided.
        decided: bool,
    },
    /// The call may run or is running. In manual mode, the caller has to answer it.
    Allowed,
    /// The call of an external tool was handed to the caller, who adds its result.
    AwaitsResult,
    /// The call will not run. Its result is added to history once all calls of the answer are decided.
    Refused {
        /// The result.
        content: Value,
        /// The outcome of the call.
        outcome: Outcome,
    },
    /// The call has a result, and the result is in history.
    Answered {
        /// The result.
        content: Value,
        /// The outcome of the call.
        outcome: Outcome,
        /// True if the result has been reviewed.
        reviewed: bool,
    },
}

impl Call {
    pub(crate) fn new(block: ToolUseBlock) -> Self {
        Self {
            input: block.input.clone(),
            block: Arc::new(block),
            fit: Fit::default(),
            state: CallState::Undecided,
            is_approved: false,
            is_external: false,
            images: Vec::new(),
        }
    }

    /// Returns the call with the input that it runs with.
    #[must_use]
    pub fn block_to_run(&self) -> ToolUseBlock {
        let ToolUseBlock { id, name, extra, .. } = &*self.block;
        let mut block = ToolUseBlock::new(&**id, &**name, self.input.clone());
        block.extra.clone_from(extra);
        block
    }

    /// Returns true if the call has no result and has not been refused.
    #[must_use]
    pub fn is_open(&self) -> bool {
        use CallState::{Allowed, Asked, AwaitsResult, Undecided, Waiting};
        matches!(self.state, Allowed | Asked | AwaitsResult | Undecided | Waiting { .. })
    }

    /// Returns true if the call was [handed](crate::Turn::await_result) to the caller, who adds its result.
    #[must_use]
    pub fn waits_for_result(&self) -> bool {
        self.state == CallState::AwaitsResult
    }

    /// Returns true if the call is open and was not handed to the caller.
    pub(crate) fn is_to_run(&self) -> bool {
        self.is_open() && !self.waits_for_result()
    }

    /// Returns true if the caller can answer the call while others wait for permission: it is to an external tool,
    /// valid, and was allowed just now. One that was approved in an earlier turn is handed out with the calls that
    /// run.
    pub(crate) fn is_to_hand_out(&self) -> bool {
        let is_allowed = self.state == CallState::Allowed && !self.is_approved;
        self.is_external && is_allowed && !matches!(self.fit, Fit::Unfit(_))
    }

    /// Returns true if the call waits for permission.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, CallState::Asked | CallState::Waiting { .. })
    }

    /// Returns the result, once it is in history.
    pub(crate) fn content(&self) -> Option<&Value> {
        match &self.state {
            CallState::Answered { content, .. } => Some(content),
            _ => None,
        }
    }

    /// Returns true if the call ran and did not fail.
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

/// Serializes and deserializes the value behind an `Arc`.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        value: &Arc<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}
