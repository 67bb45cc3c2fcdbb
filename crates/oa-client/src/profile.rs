use oa_aggregate::ThinkTags;
use oa_types::wire::{MessageFormat, TokenLimit};

use crate::thinking::ThinkingField;

/// A server's quirks about requests and thinking; the defaults are what every local server takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Profile {
    pub(crate) form: MessageFormat,
    pub(crate) token_limit: TokenLimit,
    /// Whether usage is asked for.
    pub(crate) asks_for_usage: bool,
    /// Whether thinking stands between tags in the text.
    pub(crate) think_tags: ThinkTags,
    /// Whether a word of the assistant has to stand between a tool's and the user's (QUIRKS row 89).
    pub(crate) bridges_tool_and_user: bool,
    /// True if a conversation may begin with the assistant (QUIRKS row 88).
    pub(crate) lets_assistant_begin: bool,
    /// How it is told how much to think, if it can be told.
    pub(crate) thinking: Option<ThinkingField>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            form: MessageFormat::default(),
            token_limit: TokenLimit::default(),
            asks_for_usage: true,
            think_tags: ThinkTags::default(),
            bridges_tool_and_user: false,
            lets_assistant_begin: false,
            thinking: None,
        }
    }
}
