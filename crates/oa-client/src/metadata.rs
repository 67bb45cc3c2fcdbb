use oa_context::PromptCut;
use oa_types::{FinishReason, Usage};

/// Metadata of the turns of a [`Client`](crate::Client) so far.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TurnMetadata {
    /// Number of prompts taken; failed ones do not count.
    pub turns: u32,
    /// Number of rounds of tool calls in the last turn.
    pub rounds: u32,
    /// Usage of the last answer of this turn: tokens if the server reported them, and time; `None` until an
    /// answer has ended. For an interrupted answer, the usage reported by then.
    pub usage: Option<Usage>,
    /// Usage of all answers since the last prompt, including those for summaries.
    pub turn_usage: Usage,
    /// Usage of all answers together. Tokens are counted if the server reports them.
    pub total_usage: Usage,
    /// Set if the server seems to have cut the prompt of the last answer.
    pub prompt_cut: Option<PromptCut>,
    /// The reason why the last turn ended; `None` while it is in progress, and if it failed.
    pub finish_reason: Option<FinishReason>,
}

impl TurnMetadata {
    pub(crate) fn count(&mut self, usage: Option<Usage>) {
        self.usage = usage;
        if let Some(usage) = usage {
            self.add(&usage);
        }
    }

    pub(crate) fn add(&mut self, usage: &Usage) {
        self.turn_usage.add(usage);
        self.total_usage.add(usage);
    }
}
