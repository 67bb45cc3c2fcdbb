use serde::{Deserialize, Serialize};

use crate::block::{ContentBlock, ToolUseBlock};
use crate::extra::Extra;
use crate::finish::FinishReason;
use crate::message::{Message, MessageRole};
use crate::usage::Usage;

/// A complete answer of the model, with the server's metadata.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AssistantMessage {
    /// Text, reasoning and calls, in the order in which they started.
    pub content: Vec<ContentBlock>,
    /// The reason why the answer ended.
    pub finish_reason: FinishReason,
    /// Token counts, times and cost, as far as they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that answered, as named by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The server's id for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Members of the message that only its server understands, and expects back.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl AssistantMessage {
    /// Creates an answer with these blocks and no metadata.
    #[inline]
    #[must_use]
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self {
            content,
            finish_reason: FinishReason::Unspecified,
            usage: None,
            model: None,
            id: None,
            extra: Extra::default(),
        }
    }

    /// Returns all text of the answer, concatenated without separators.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect()
    }

    /// Returns the tool calls of the answer, in order, without those that cannot be run.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUseBlock> {
        self.content.iter().filter_map(ContentBlock::as_tool_use)
    }
}

impl From<AssistantMessage> for Message {
    fn from(message: AssistantMessage) -> Self {
        let mut into = Self::new(MessageRole::Assistant, message.content);
        into.extra = message.extra;
        into
    }
}
