use oa_types::{AssistantMessage, FinishReason, Usage};

/// What came of a prompt: what [`Client::ask`](crate::Client::ask) returns.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// All text of the turn, of every round.
    pub text: String,
    /// The last answer.
    pub message: Option<AssistantMessage>,
    /// What the last answer cost: tokens if the server said so, and time.
    pub usage: Option<Usage>,
    /// Why the turn ended. In manual mode a reply may end with calls that wait for results.
    pub finish_reason: FinishReason,
}
