use oa_turn::Checkpoint;

/// The checkpoints of a conversation, once somebody has asked for them.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    /// True while the driver stops at checkpoints.
    pub(crate) stops: bool,
    /// The checkpoint at which it has stopped.
    pub(crate) reached: Option<Checkpoint>,
    /// The last one that was told.
    pub(crate) last: Option<Checkpoint>,
}
