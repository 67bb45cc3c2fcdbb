use oa_types::{AssistantMessage, FinishReason, Usage};
use serde::{Deserialize, Serialize};

/// The answer to a prompt, as `Client::ask` returns it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Reply {
    /// The text of all rounds of the turn, joined by [`TurnText`](crate::TurnText), without answers that a hook
    /// refused.
    pub text: String,
    /// The last answer.
    pub message: Option<AssistantMessage>,
    /// Usage of the last answer: tokens if the server reported them, and time.
    pub usage: Option<Usage>,
    /// Usage of all answers to the prompt together.
    #[serde(default)]
    pub turn_usage: Usage,
    /// Usage of sub-agents, which is not in `turn_usage`: `total_tokens` and `cost`.
    #[serde(default)]
    pub sub_agents: Usage,
    /// The reason why the turn ended. In manual mode a reply may end with calls that wait for results.
    pub finish_reason: FinishReason,
}

impl Reply {
    /// Creates a reply without a message and usage.
    #[must_use]
    pub fn new(text: impl Into<String>, finish_reason: FinishReason) -> Self {
        let (turn_usage, sub_agents) = Default::default();
        Self {
            text: text.into(),
            message: None,
            usage: None,
            turn_usage,
            sub_agents,
            finish_reason,
        }
    }
}
