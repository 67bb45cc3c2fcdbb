use oa_types::FinishReason;
use serde::{Deserialize, Serialize};

/// An early end of a turn, in the middle of a step.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CutBy {
    /// The user interrupted.
    User,
    /// A budget that the turn does not count, such as time, is used up.
    Budget {
        /// The reason for the end.
        reason: FinishReason,
    },
}
