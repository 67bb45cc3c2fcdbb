use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::extra::Extra;
use crate::image::ImageBlock;

/// One finished piece of a message.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text of any role.
    Text(TextBlock),
    /// What the model thought before it answered.
    Thinking(ThinkingBlock),
    /// A picture for the model to look at.
    Image(ImageBlock),
    /// The model asks for a tool to be run.
    ToolUse(ToolUseBlock),
    /// The model tried to ask for a tool, but the call cannot be run.
    ToolUseError(ToolUseError),
    /// What a tool answered.
    ToolResult(ToolResultBlock),
}

impl ContentBlock {
    /// Returns the text if this is a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

macro_rules! from_block {
    ($($variant:ident($block:ty)),*) => {$(
        impl From<$block> for ContentBlock {
            fn from(block: $block) -> Self {
                Self::$variant(block)
            }
        }
    )*};
}

from_block!(
    Text(TextBlock),
    Thinking(ThinkingBlock),
    Image(ImageBlock),
    ToolUse(ToolUseBlock),
    ToolUseError(ToolUseError),
    ToolResult(ToolResultBlock)
);

/// A run of text.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TextBlock {
    /// The text.
    pub text: String,
}

impl TextBlock {
    /// Creates a block of this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

/// A run of the model's thinking (also called reasoning).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ThinkingBlock {
    /// What was thought.
    pub thinking: String,
}

impl ThinkingBlock {
    /// Creates a block of this thinking.
    #[must_use]
    pub fn new(thinking: impl Into<String>) -> Self {
        Self { thinking: thinking.into() }
    }
}

/// A tool call that can be run: its arguments are a JSON object.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolUseBlock {
    /// What ties the result to the call; opaque, and unique within the conversation.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, a JSON object.
    pub input: Value,
    /// Members of the call that only its server understands, and wants back (a thought signature).
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl ToolUseBlock {
    /// Creates a call of the tool `name`.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        Self { id: id.into(), name: name.into(), input, extra: Extra::default() }
    }
}

/// A tool call that cannot be run: cut off, without a name, or with arguments that are no JSON object.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolUseError {
    /// What is wrong with it, for the user and for the model.
    pub error: String,
    /// The arguments as the model wrote them; the first few kilobytes if they are longer.
    pub raw_data: String,
    /// The call's id, made up if the server sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name, if the model got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ToolUseError {
    /// Creates an error about a call whose arguments read `raw_data`.
    #[must_use]
    pub fn new(error: impl Into<String>, raw_data: impl Into<String>) -> Self {
        Self { error: error.into(), raw_data: raw_data.into(), id: None, name: None }
    }
}

/// The answer to one tool call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolResultBlock {
    /// The id of the call it answers.
    pub tool_use_id: String,
    /// What the tool returned; a string goes to the model as it is, anything else as JSON.
    pub content: Value,
    /// Whether the call failed, was refused or was not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The tool's name; some servers want it beside the id.
    ///
    /// Without spare capacity, so that no block is larger than a call: every piece of text is moved as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
}

impl ToolResultBlock {
    /// Creates the answer of a call that succeeded.
    #[must_use]
    pub fn new(tool_use_id: impl Into<String>, content: Value) -> Self {
        Self { tool_use_id: tool_use_id.into(), content, is_error: false, name: None }
    }
}
