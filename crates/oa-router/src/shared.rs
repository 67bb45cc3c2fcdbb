use std::sync::Arc;

use oa_chat::AnyChat;

use crate::desk::Desk;

/// The state that clones of a router share.
pub(crate) struct Shared {
    pub(crate) desk: Arc<Desk>,
    pub(crate) services: Vec<AnyChat>,
    pub(crate) names: Vec<String>,
}
