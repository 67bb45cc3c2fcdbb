//! The state that routes share.

use std::sync::Arc;

use oa_client::AgentOptions;

use crate::conversations::Conversations;

/// An agent as the routes see it.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) name: Arc<str>,
    pub(crate) context_window: Option<u64>,
    pub(crate) conversations: Conversations,
    /// The id and the agent without tools, for the housekeeping prompts of front ends.
    pub(crate) housekeeping: Option<(Arc<str>, AgentOptions)>,
    /// The time of the start, in seconds since 1970.
    pub(crate) created: u64,
}
