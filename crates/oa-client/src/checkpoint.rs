use std::collections::VecDeque;

use oa_events::AgentEvent;
use oa_turn::Checkpoint;

/// The checkpoints of a conversation, present once a caller has asked for them.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    /// True while the driver stops at checkpoints.
    pub(crate) stops: bool,
    /// The checkpoint at which the driver has stopped.
    pub(crate) reached: Option<Checkpoint>,
    /// The checkpoint reported last.
    pub(crate) last: Option<Checkpoint>,
    /// The events on the way to a checkpoint, which a failure leaves alone.
    pub(crate) passed: VecDeque<AgentEvent>,
}
