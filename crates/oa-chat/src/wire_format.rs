//! The format of a conversation in a request.

use std::borrow::Cow;
use std::sync::Arc;

use oa_types::wire::{MessageFormat, instructions};
use oa_types::{Message, MessageRole};

use crate::dialect::TextDialect;

/// The format in which a conversation is written for a server. Equal formats write equal bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct WireFormat {
    pub(crate) messages: MessageFormat,
    /// True if an assistant message is required between a tool message and a user message (QUIRKS row 89).
    pub(crate) bridges_tool_and_user: bool,
    /// True if a conversation may begin with the assistant (QUIRKS row 88). Otherwise a short user message precedes it.
    pub(crate) lets_assistant_begin: bool,
    /// True if the first user message carries the system prompt, because there is no system role (QUIRKS row 95).
    pub(crate) user_instructs: bool,
    /// The system prompt, if the first user message begins with it.
    pub(crate) opening: Option<Arc<str>>,
    /// The dialect, if calls and results are in text.
    pub(crate) dialect: Option<Arc<TextDialect>>,
}

impl WireFormat {
    /// Returns the text of a conversation's system message, to be appended to the system prompt, because servers
    /// accept one system message, in first place.
    pub(crate) fn instructions<'a>(&self, history: &'a [Message]) -> Option<Cow<'a, str>> {
        history.first().filter(|_| !self.user_instructs).and_then(instructions_of)
    }
}

/// Returns the text of a system message.
pub(crate) fn instructions_of(message: &Message) -> Option<Cow<'_, str>> {
    Some(message).filter(|message| message.role == MessageRole::System).and_then(instructions)
}

impl PartialEq for WireFormat {
    fn eq(&self, other: &Self) -> bool {
        let same_dialect = match (&self.dialect, &other.dialect) {
            (None, None) => true,
            // Dialects cannot be compared, and options make theirs once. Changed options write anew.
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        same_dialect
            && self.messages == other.messages
            && self.bridges_tool_and_user == other.bridges_tool_and_user
            && self.lets_assistant_begin == other.lets_assistant_begin
            && self.user_instructs == other.user_instructs
            && self.opening == other.opening
    }
}
