mod form;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::audio::AudioBlock;
use crate::block::{ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock};
use crate::extra::Extra;
use crate::image::ImageBlock;

/// The author of a message.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MessageRole {
    /// The model.
    Assistant,
    /// Instructions, placed before the conversation.
    System,
    /// A tool, returning a result.
    Tool,
    /// The user.
    User,
}

impl MessageRole {
    /// Returns the role's name in the wire format.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Tool => "tool",
            Self::User => "user",
        }
    }
}

impl fmt::Display for MessageRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One message of a conversation.
///
/// Serializes with `content` as a list of blocks. Deserializes that and the format of chat APIs: `content` as a
/// string, `tool_calls` on an assistant message, and `tool_call_id` on a tool message.
///
/// ```
/// use oa_types::Message;
///
/// let message: Message = serde_json::from_str(r#"{"role": "user", "content": "Hi"}"#)?;
/// assert_eq!(message, Message::user("Hi"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Message {
    /// The author.
    pub role: MessageRole,
    /// The content blocks, in order.
    pub content: Vec<ContentBlock>,
    /// True if the answer was interrupted; `content` then holds the part that arrived. Never sent to a server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Members of the message that only its server understands, and expects back (reasoning details).
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl Message {
    /// Creates a message with this role and content.
    #[inline]
    #[must_use]
    pub fn new(role: MessageRole, content: Vec<ContentBlock>) -> Self {
        Self { role, content, interrupted: false, extra: Extra::default() }
    }

    /// Creates a user message with this text.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(MessageRole::User, vec![TextBlock::new(text).into()])
    }

    /// Creates a user message with several blocks, such as text and images.
    #[must_use]
    pub fn user_with_blocks(content: Vec<ContentBlock>) -> Self {
        Self::new(MessageRole::User, content)
    }

    /// Creates a user message with text and one image.
    #[must_use]
    pub fn user_with_image(text: impl Into<String>, image: ImageBlock) -> Self {
        Self::new(MessageRole::User, vec![TextBlock::new(text).into(), image.into()])
    }

    /// Creates a user message with text and one recording.
    #[must_use]
    pub fn user_with_audio(text: impl Into<String>, audio: AudioBlock) -> Self {
        Self::new(MessageRole::User, vec![TextBlock::new(text).into(), audio.into()])
    }

    /// Creates an assistant message.
    #[inline]
    #[must_use]
    pub fn assistant(content: Vec<ContentBlock>) -> Self {
        Self::new(MessageRole::Assistant, content)
    }

    /// Creates a system message.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(MessageRole::System, vec![TextBlock::new(text).into()])
    }

    /// Creates a tool message with one result.
    #[must_use]
    pub fn tool(result: ToolResultBlock) -> Self {
        Self::new(MessageRole::Tool, vec![result.into()])
    }

    /// Returns all text of the message, concatenated without separators.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect()
    }

    /// Returns the tool calls of the message, in order, without those that cannot be run.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUseBlock> {
        self.content.iter().filter_map(ContentBlock::as_tool_use)
    }
}

/// A user message with this text.
impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

/// A user message with this text.
impl From<&String> for Message {
    fn from(text: &String) -> Self {
        Self::user(text)
    }
}

/// A user message with this text.
impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::user(text)
    }
}
