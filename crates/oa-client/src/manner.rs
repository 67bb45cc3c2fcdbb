use std::borrow::Cow;
use std::sync::Arc;

use oa_types::wire::{MessageFormat, instructions};
use oa_types::{Message, MessageRole};

use crate::dialect::Spoken;

/// How a conversation is written for a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    pub(crate) form: MessageFormat,
    /// Whether a word of the assistant has to stand between a tool's and the user's (QUIRKS row 89).
    pub(crate) bridges_tool_and_user: bool,
    /// True if a conversation may begin with the assistant (QUIRKS row 88). Otherwise a word of the user is put
    /// before it.
    pub(crate) lets_assistant_begin: bool,
    /// True if the user says what the system would, because there is no role for it (QUIRKS row 95).
    pub(crate) user_instructs: bool,
    /// The system prompt, where the user says it: the first message of the user begins with it.
    pub(crate) opening: Option<Arc<str>>,
    /// The dialect in which calls and results are text.
    pub(crate) spoken: Option<Arc<Spoken>>,
}

impl Manner {
    /// Returns what the system message of a conversation says, where it is sent as one: behind the system prompt,
    /// since servers take one such message, at the first place.
    pub(crate) fn instructions<'a>(&self, history: &'a [Message]) -> Option<Cow<'a, str>> {
        history.first().filter(|_| !self.user_instructs).and_then(instructions_of)
    }
}

/// Returns what a message says if it is the system's.
pub(crate) fn instructions_of(message: &Message) -> Option<Cow<'_, str>> {
    Some(message).filter(|message| message.role == MessageRole::System).and_then(instructions)
}

impl PartialEq for Manner {
    fn eq(&self, other: &Self) -> bool {
        let same_dialect = match (&self.spoken, &other.spoken) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        same_dialect
            && self.form == other.form
            && self.bridges_tool_and_user == other.bridges_tool_and_user
            && self.lets_assistant_begin == other.lets_assistant_begin
            && self.user_instructs == other.user_instructs
            && self.opening == other.opening
    }
}
