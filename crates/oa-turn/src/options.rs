use oa_types::Cost;
use serde::{Deserialize, Serialize};

/// The party that answers the model's calls.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// The loop runs the calls and continues.
    Auto,
    /// The caller answers the calls and continues the turn.
    #[default]
    Manual,
}

/// The options of a turn: its mode and its limits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Options {
    /// The party that answers calls. [`Mode::Manual`] by default.
    pub mode: Mode,
    /// The maximum number of rounds of tool calls per prompt. 5 by default. An invalid call of the output tool does not
    /// count.
    pub max_rounds: u32,
    /// The maximum number of prompts in the conversation. Unlimited by default.
    pub max_turns: Option<u32>,
    /// The maximum number of calls per prompt. Unlimited by default.
    pub max_calls: Option<u32>,
    /// The number of tokens per prompt after which no more calls run. Unlimited by default.
    pub max_tokens: Option<u64>,
    /// The cost per prompt after which no more calls run. Unlimited by default.
    pub max_cost: Option<Cost>,
    /// The number of consecutive identical calls with identical results after which the model is warned. One more ends
    /// the turn. Calls are compared by the input that they run with. Each call is counted separately, whatever else
    /// the answer contains; an answer without the call resets its count. Calls of the output tool are not counted. 3 by
    /// default; `None` disables the guard.
    pub repeat_guard: Option<u32>,
    /// True if one last request without tools is sent after a limit is reached, unless the tokens or the cost are used
    /// up. It offers the output tool, if there is one. False by default.
    pub last_answer_without_tools: bool,
    /// True if only the text of the last answer is shown, once it is complete. False by default.
    pub final_text_only: bool,
    /// True if results replace their calls in the text, and the turn ends with that text and no further request. If a
    /// call fails, the model is asked as usual. Auto mode only. False by default.
    pub inline_results: bool,
    /// True if the driver plans each request first, with [`Action::Plan`](crate::Action::Plan). False by default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub plan_steps: bool,
    /// True if the driver decides after the calls of each step whether the turn ends there, with
    /// [`Action::CheckStop`](crate::Action::CheckStop). False by default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub check_stop: bool,
    /// True if the driver reviews each answer without calls before the turn ends with it, with
    /// [`Action::ReviewAnswer`](crate::Action::ReviewAnswer). False by default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub review_answers: bool,
    /// The maximum number of answers per prompt that a review may refuse and ask for again. 2 by default.
    #[serde(skip_serializing_if = "is_two")]
    pub max_answer_retries: u32,
    /// True if the driver may shorten the conversation before each request, with
    /// [`Action::Shorten`](crate::Action::Shorten), and once more if the server rejects it as too long. False by
    /// default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shorten: bool,
    /// The treatment of messages that were [steered](crate::Turn::steer) into a turn after its last request.
    /// [`SteerAfterEnd::Continue`] by default.
    #[serde(skip_serializing_if = "SteerAfterEnd::is_default")]
    pub steer_after_end: SteerAfterEnd,
}

fn is_two(number: &u32) -> bool {
    *number == 2
}

impl SteerAfterEnd {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The treatment of messages that were steered into a turn after its last request.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SteerAfterEnd {
    /// The turn continues with them, within the same budgets.
    #[default]
    Continue,
    /// They wait for the next turn.
    Keep,
}

impl Options {
    /// Returns the defaults for a loop that runs calls itself.
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
            plan_steps: false,
            check_stop: false,
            shorten: false,
            review_answers: false,
            max_answer_retries: 2,
            steer_after_end: SteerAfterEnd::Continue,
        }
    }
}
