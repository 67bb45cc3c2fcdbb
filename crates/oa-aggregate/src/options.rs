use crate::limits::Limits;
use crate::quirks::Quirks;

/// Options of an aggregator.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The memory that a peer may make it hold.
    pub limits: Limits,
    /// The server's quirks, as far as they are known.
    pub quirks: Quirks,
    /// The seed of the ids that are made up for calls without one: nine letters and digits. Another
    /// number for each answer keeps them apart within a conversation.
    pub id_seed: u64,
}
