use oa_context::PromptCut;
use oa_types::{Cost, FinishReason, Usage};
use serde::{Deserialize, Serialize};

/// Metadata of the turns of a client so far, as `Client::turn_metadata` returns it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
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
    /// Usage of sub-agents since the last prompt: `total_tokens` and `cost`. It counts toward the budgets, but is
    /// not contained in the other numbers.
    pub sub_agents: Usage,
    /// Set if the server seems to have cut the prompt of the last answer.
    pub prompt_cut: Option<PromptCut>,
    /// The reason why the last turn ended; `None` while it is in progress, and if it failed.
    pub finish_reason: Option<FinishReason>,
}

impl TurnMetadata {
    /// Begins a turn, without usage.
    #[doc(hidden)]
    pub fn begin(&mut self) {
        (self.turn_usage, self.sub_agents) = Default::default();
    }

    /// Counts an answer that has ended.
    #[doc(hidden)]
    pub fn count(&mut self, usage: Option<Usage>) {
        self.usage = usage;
        if let Some(usage) = usage {
            self.add(&usage);
        }
    }

    /// Adds the usage of another answer, such as a summary.
    #[doc(hidden)]
    pub fn add(&mut self, usage: &Usage) {
        self.turn_usage.add(usage);
        self.total_usage.add(usage);
    }

    /// Adds what sub-agents have used.
    #[doc(hidden)]
    pub fn add_sub_agents(&mut self, tokens: u64, cost: Cost) {
        let mut usage = Usage::default();
        usage.total_tokens = Some(tokens).filter(|tokens| *tokens > 0);
        usage.cost = Some(cost).filter(|cost| *cost > Cost::ZERO);
        self.sub_agents.add(&usage);
    }
}
