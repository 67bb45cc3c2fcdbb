use std::sync::Arc;

use oa_types::wire::Form;

use crate::dialect::Spoken;

/// How a conversation is written for a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    pub(crate) form: Form,
    /// Whether a word of the assistant has to stand between a tool's and the user's (QUIRKS row 89).
    pub(crate) bridges_tool_and_user: bool,
    /// What the first message of the user begins with: the system prompt, where there is no role for it
    /// (QUIRKS row 95).
    pub(crate) opening: Option<Arc<str>>,
    /// The dialect in which calls and results are text.
    pub(crate) spoken: Option<Arc<Spoken>>,
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
            && self.opening == other.opening
    }
}
