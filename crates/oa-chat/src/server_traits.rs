use oa_aggregate::ThinkTags;
use oa_types::wire::{MessageFormat, ThinkingField, TokenLimit};

/// A server's quirks in requests and thinking. The defaults work with every local server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerTraits {
    /// The format of messages.
    pub format: MessageFormat,
    /// The name of the token limit.
    pub token_limit: TokenLimit,
    /// True if usage is requested.
    pub asks_for_usage: bool,
    /// The treatment of think tags in the text.
    pub think_tags: ThinkTags,
    /// True if an assistant message is required between a tool message and a user message (QUIRKS row 89).
    pub bridges_tool_and_user: bool,
    /// True if a conversation may begin with the assistant (QUIRKS row 88).
    pub lets_assistant_begin: bool,
    /// True if it can report how far it has read the prompt (QUIRKS row 122).
    pub reports_prompt_progress: bool,
    /// The request member that controls thinking, if there is one.
    pub thinking: Option<ThinkingField>,
}

impl Default for ServerTraits {
    fn default() -> Self {
        Self {
            format: MessageFormat::default(),
            token_limit: TokenLimit::default(),
            asks_for_usage: true,
            think_tags: ThinkTags::default(),
            bridges_tool_and_user: false,
            lets_assistant_begin: false,
            reports_prompt_progress: false,
            thinking: None,
        }
    }
}

/// The known traits of one model, from a [`ServerProfile`](crate::ServerProfile).
#[derive(Clone, Debug)]
pub(crate) struct KnownModel {
    pub(crate) name: String,
    pub(crate) traits: ServerTraits,
    /// The server rejects requests with tools for this model.
    pub(crate) lacks_tools: bool,
    /// True if its answers follow a schema, false if they do not; `None` if unknown.
    pub(crate) keeps_schema: Option<bool>,
}
