//! The state that routes share.

use std::sync::Arc;

use oa_client::AgentOptions;

use crate::conversations::Conversations;

/// The agent and server options that the routes use.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) name: Arc<str>,
    pub(crate) context_window: Option<u64>,
    pub(crate) conversations: Conversations,
    /// The id of the housekeeping model, and its agent without tools.
    pub(crate) housekeeping: Option<(Arc<str>, AgentOptions)>,
    /// The start time, in seconds since 1970.
    pub(crate) created: u64,
}
