//! The state that routes share.

use std::sync::Arc;

use crate::conversations::Conversations;

/// An agent as the routes see it.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) name: Arc<str>,
    pub(crate) context_window: Option<u64>,
    pub(crate) conversations: Conversations,
}
