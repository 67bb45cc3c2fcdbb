use std::sync::Arc;

use oa_chat::AnyChat;

use crate::desk::Desk;

/// What the clones of a router have in common.
pub(crate) struct Shared {
    pub(crate) desk: Arc<Desk>,
    pub(crate) services: Vec<AnyChat>,
    pub(crate) names: Vec<String>,
}
