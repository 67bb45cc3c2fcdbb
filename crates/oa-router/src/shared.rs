use std::sync::Arc;

use oa_chat::AnyChat;

use crate::dispatcher::Dispatcher;

/// The state that clones of a router share.
pub(crate) struct Shared {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) services: Vec<AnyChat>,
    pub(crate) names: Vec<String>,
}
