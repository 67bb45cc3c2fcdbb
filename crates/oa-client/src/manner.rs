use std::sync::Arc;

use oa_types::wire::Form;

/// How a conversation is written for a server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Manner {
    pub(crate) form: Form,
    /// Whether a word of the assistant has to stand between a tool's and the user's (QUIRKS row 89).
    pub(crate) bridges_tool_and_user: bool,
    /// What the first message of the user begins with: the system prompt, where there is no role for it
    /// (QUIRKS row 95).
    pub(crate) opening: Option<Arc<str>>,
}
