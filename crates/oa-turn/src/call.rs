use oa_types::ToolUseBlock;
use serde_json::Value;

/// One call of the last answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call {
    /// As the model made it; a malformed one has an empty input here.
    pub block: ToolUseBlock,
    /// How far it has come.
    pub state: CallState,
}

/// How far a call has come.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallState {
    /// Nobody has decided about it.
    Undecided,
    /// It may run, or runs, with this input; in manual mode the caller is to answer it.
    Allowed(Value),
    /// It has a result that stands in history.
    Answered {
        /// The result.
        content: Value,
        /// Whether it says that the call failed or was not run.
        is_error: bool,
        /// Whether it has been looked at.
        reviewed: bool,
    },
}

impl Call {
    pub(crate) fn new(block: ToolUseBlock) -> Self {
        Self { block, state: CallState::Undecided }
    }

    /// Whether it has no result yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.state, CallState::Answered { .. })
    }

    pub(crate) fn awaits_review(&self) -> bool {
        matches!(self.state, CallState::Answered { reviewed: false, .. })
    }
}
