use oa_types::Cost;
use serde::{Deserialize, Serialize};

/// The party that answers the model's calls.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// The loop runs them and goes on.
    Auto,
    /// The caller answers them, and says when to go on.
    #[default]
    Manual,
}

/// The limits of one prompt, and the way in which it is answered.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Options {
    /// The party that answers calls.
    pub mode: Mode,
    /// Rounds of tool calls for one prompt. 5 by default.
    pub max_rounds: u32,
    /// Prompts that are taken in all. Without a limit by default.
    pub max_turns: Option<u32>,
    /// Calls that are run for one prompt. Without a limit by default.
    pub max_calls: Option<u32>,
    /// Tokens that one prompt may cost before calls are no longer run. Without a limit by default.
    pub max_tokens: Option<u64>,
    /// Money that one prompt may cost before calls are no longer run. Without a limit by default.
    pub max_cost: Option<Cost>,
    /// After this many identical calls with identical results the model is told, and after one more the turn
    /// ends. Calls are compared by the input that runs. Each call is counted by itself, whatever stands beside it in an answer, and anew after an
    /// answer that did not ask for it. 3 by default; `None` switches the guard off.
    pub repeat_guard: Option<u32>,
    /// True if a limit is followed by one last request without tools.
    pub last_answer_without_tools: bool,
    /// True if only the text of the last answer is shown, once it has ended.
    pub final_text_only: bool,
    /// True if results are put into the text where their calls stand: the turn ends with that text, and
    /// without another request. After a call that failed the model is asked as ever. In auto mode alone.
    pub inline_results: bool,
}

impl Options {
    /// The defaults of a loop that runs calls itself.
    #[must_use]
    pub fn auto() -> Self {
        Self { mode: Mode::Auto, ..Self::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Manual,
            max_rounds: 5,
            max_turns: None,
            max_calls: None,
            max_tokens: None,
            max_cost: None,
            repeat_guard: Some(3),
            last_answer_without_tools: false,
            final_text_only: false,
            inline_results: false,
        }
    }
}
