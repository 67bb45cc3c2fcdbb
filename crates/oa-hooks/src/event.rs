use oa_types::{History, Outcome};
use serde_json::Value;

/// The name of the point before a tool runs.
pub const HOOK_PRE_TOOL_USE: &str = "pre_tool_use";
/// The name of the point after a tool has answered.
pub const HOOK_POST_TOOL_USE: &str = "post_tool_use";
/// The name of the point before a prompt is sent.
pub const HOOK_USER_PROMPT_SUBMIT: &str = "user_prompt_submit";

/// The model asks for a tool, and it has not run yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PreToolUseEvent {
    /// The tool's name.
    pub tool_name: String,
    /// The arguments that would run: the model's, with defaults filled in and values converted by the tool's schema.
    /// As the model wrote them if they do not fit it.
    pub tool_input: Value,
    /// The call's id.
    pub tool_use_id: String,
    /// The conversation; it ends with the model's message that holds the call.
    pub history: History,
}

impl PreToolUseEvent {
    /// Creates an event about one call.
    #[must_use]
    pub fn new(
        tool_name: impl Into<String>,
        tool_input: Value,
        tool_use_id: impl Into<String>,
        history: impl Into<History>,
    ) -> Self {
        Self {
            tool_name: tool_name.into(),
            tool_input,
            tool_use_id: tool_use_id.into(),
            history: history.into(),
        }
    }
}

/// A call was answered, by its tool or by whatever kept the tool from running.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PostToolUseEvent {
    /// The tool's name.
    pub tool_name: String,
    /// The arguments that the tool ran with, or those that were denied. As the model wrote them for a call that ended
    /// before anybody decided about it.
    pub tool_input: Value,
    /// The call's id.
    pub tool_use_id: String,
    /// The answer, as the model will see it if no hook changes it.
    pub tool_result: Value,
    /// What became of the call.
    pub outcome: Outcome,
    /// The conversation; it includes the result.
    pub history: History,
}

impl PostToolUseEvent {
    /// Creates an event about one call and its answer.
    #[must_use]
    pub fn new(
        tool_name: impl Into<String>,
        tool_input: Value,
        tool_use_id: impl Into<String>,
        tool_result: Value,
        outcome: Outcome,
        history: impl Into<History>,
    ) -> Self {
        Self {
            tool_name: tool_name.into(),
            tool_input,
            tool_use_id: tool_use_id.into(),
            tool_result,
            outcome,
            history: history.into(),
        }
    }
}

/// The user has said something, and the model has not seen it yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UserPromptSubmitEvent {
    /// What the user said.
    pub prompt: String,
    /// The conversation before it.
    pub history: History,
}

impl UserPromptSubmitEvent {
    /// Creates an event about one prompt.
    #[must_use]
    pub fn new(prompt: impl Into<String>, history: impl Into<History>) -> Self {
        Self { prompt: prompt.into(), history: history.into() }
    }
}
