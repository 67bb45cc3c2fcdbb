use oa_types::{History, ImageBlock, Message, Outcome};
use serde_json::Value;

/// The name of the hook point before a tool runs.
pub const HOOK_PRE_TOOL_USE: &str = "pre_tool_use";
/// The name of the hook point after a tool returned.
pub const HOOK_POST_TOOL_USE: &str = "post_tool_use";
/// The name of the hook point after a finished answer.
pub const HOOK_ANSWER: &str = "answer";
/// The name of the hook point before a prompt is sent.
pub const HOOK_USER_PROMPT_SUBMIT: &str = "user_prompt_submit";

/// A tool call that has not run yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PreToolUseEvent {
    /// The tool's name.
    pub tool_name: String,
    /// The arguments that would run: the model's, with defaults filled in and values converted according to the
    /// tool's schema; unchanged if they do not match the schema.
    pub tool_input: Value,
    /// The call id.
    pub tool_use_id: String,
    /// The conversation, ending with the assistant message that contains the call.
    pub history: History,
}

impl PreToolUseEvent {
    /// Creates an event for one call.
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

/// A finished call, whether the tool ran or something kept it from running.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PostToolUseEvent {
    /// The tool's name.
    pub tool_name: String,
    /// The arguments that ran or were denied; the model's own if the call ended before a decision.
    pub tool_input: Value,
    /// The call id.
    pub tool_use_id: String,
    /// The result, as the model will see it unless a hook changes it.
    pub tool_result: Value,
    /// The images that the model will see with the result.
    pub images: Vec<ImageBlock>,
    /// The outcome of the call.
    pub outcome: Outcome,
    /// The conversation, including the result.
    pub history: History,
}

impl PostToolUseEvent {
    /// Creates an event for one call and its result, without images.
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
            images: Vec::new(),
            outcome,
            history: history.into(),
        }
    }
}

/// A prompt that was not sent yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UserPromptSubmitEvent {
    /// The prompt text.
    pub prompt: String,
    /// The conversation before the prompt.
    pub history: History,
}

impl UserPromptSubmitEvent {
    /// Creates an event for one prompt.
    #[must_use]
    pub fn new(prompt: impl Into<String>, history: impl Into<History>) -> Self {
        Self { prompt: prompt.into(), history: history.into() }
    }
}

/// An answer without calls, before the turn ends with it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AnswerEvent {
    /// The answer, as it is in history; without content if the model said nothing.
    pub message: Message,
    /// The conversation before the answer.
    pub history: History,
    /// The number of answers in this turn that hooks have refused so far.
    pub retries: u32,
}

impl AnswerEvent {
    /// Creates an event for one answer.
    #[must_use]
    pub fn new(message: Message, history: impl Into<History>, retries: u32) -> Self {
        Self { message, history: history.into(), retries }
    }
}
