use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::audio::AudioBlock;
use crate::extra::Extra;
use crate::image::ImageBlock;

/// A complete piece of a message.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text, in a message of any role.
    Text(TextBlock),
    /// The model's reasoning before its answer.
    Thinking(ThinkingBlock),
    /// An image input.
    Image(ImageBlock),
    /// An audio input.
    Audio(AudioBlock),
    /// A tool call.
    ToolUse(ToolUseBlock),
    /// A tool call that cannot be run.
    ToolUseError(ToolUseError),
    /// The result of a tool call.
    ToolResult(ToolResultBlock),
}

impl ContentBlock {
    /// Returns the image if this is an image.
    #[must_use]
    pub fn as_image(&self) -> Option<&ImageBlock> {
        match self {
            Self::Image(block) => Some(block),
            _ => None,
        }
    }

    /// Returns the recording if this is audio.
    #[must_use]
    pub fn as_audio(&self) -> Option<&AudioBlock> {
        match self {
            Self::Audio(block) => Some(block),
            _ => None,
        }
    }

    /// Returns true for an image or audio: what a prompt can contain beside text.
    #[must_use]
    pub fn is_media(&self) -> bool {
        matches!(self, Self::Image(_) | Self::Audio(_))
    }

    /// Returns the text if this is a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// Returns the reasoning if this is a thinking block.
    #[must_use]
    pub fn as_thinking(&self) -> Option<&str> {
        match self {
            Self::Thinking(block) => Some(&block.thinking),
            _ => None,
        }
    }

    /// Returns the call if this is a tool call that can be run.
    #[must_use]
    pub fn as_tool_use(&self) -> Option<&ToolUseBlock> {
        match self {
            Self::ToolUse(block) => Some(block),
            _ => None,
        }
    }

    /// Returns the error if this is a tool call that cannot be run.
    #[must_use]
    pub fn as_tool_use_error(&self) -> Option<&ToolUseError> {
        match self {
            Self::ToolUseError(block) => Some(block),
            _ => None,
        }
    }

    /// Returns the result if this is the result of a tool call.
    #[must_use]
    pub fn as_tool_result(&self) -> Option<&ToolResultBlock> {
        match self {
            Self::ToolResult(block) => Some(block),
            _ => None,
        }
    }
}

/// A text block.
impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        TextBlock::new(text).into()
    }
}

/// A text block.
impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        TextBlock::new(text).into()
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
    Audio(AudioBlock),
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
    /// Creates a block with this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

/// The text.
impl fmt::Display for TextBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// A run of the model's reasoning.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ThinkingBlock {
    /// The reasoning text.
    pub thinking: String,
}

impl ThinkingBlock {
    /// Creates a block with this reasoning text.
    #[must_use]
    pub fn new(thinking: impl Into<String>) -> Self {
        Self { thinking: thinking.into() }
    }
}

/// A tool call that can be run: its arguments are a JSON object.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolUseBlock {
    /// The call id, which ties the result to the call: opaque, and unique within the conversation.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, a JSON object.
    pub input: Value,
    /// Members of the call that only its server understands, and expects back (a thought signature).
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl ToolUseBlock {
    /// Creates a call to the tool `name`.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        Self { id: id.into(), name: name.into(), input, extra: Extra::default() }
    }
}

/// A tool call that failed.
///
/// - In a model's answer, it takes the place of a call that cannot be run: it was cut off, has no name, or its
///   arguments are not a JSON object.
/// - Among the blocks of a turn, another precedes the [`ToolResultBlock`] of a call that was denied, names no tool,
///   has invalid arguments, or whose tool returned an error, panicked or timed out. Calls that were canceled or not
///   run have only a result.
///
/// The result of the same [`id`](Self::id), if there is one, describes the same failure. To show it once, show the
/// error, and skip results with the id of an error.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolUseError {
    /// A description of the problem, for the user and the model.
    pub error: String,
    /// The arguments as the model wrote them, cut to the first few kilobytes.
    pub raw_data: String,
    /// The call id, generated if the server sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name, if it was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ToolUseError {
    /// Creates an error for a call with the arguments `raw_data`.
    #[must_use]
    pub fn new(error: impl Into<String>, raw_data: impl Into<String>) -> Self {
        Self { error: error.into(), raw_data: raw_data.into(), id: None, name: None }
    }
}

/// The result of one tool call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolResultBlock {
    /// The id of the call.
    pub tool_use_id: String,
    /// The result. The model sees it as [`text`](Self::text).
    pub content: Value,
    /// True if the call failed, was refused or was not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The tool's name, which some servers require in addition to the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// Images that the model sees with the result, in the order in which the tool attached them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageBlock>,
}

impl ToolResultBlock {
    /// Creates the result of a successful call.
    #[must_use]
    pub fn new(tool_use_id: impl Into<String>, content: Value) -> Self {
        let tool_use_id = tool_use_id.into();
        Self { tool_use_id, content, is_error: false, name: None, images: Vec::new() }
    }

    /// Returns the content as the model sees it: a string as it is, anything else as JSON.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.content {
            Value::String(text) => Cow::Borrowed(text),
            value => Cow::Owned(value.to_string()),
        }
    }
}
