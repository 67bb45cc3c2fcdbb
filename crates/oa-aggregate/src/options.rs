use crate::limits::Limits;
use crate::quirks::Quirks;

/// What an aggregator is to know beforehand.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// What a peer may make it hold.
    pub limits: Limits,
    /// What is known of the server.
    pub quirks: Quirks,
    /// From this, ids are made up for calls that come without one: nine letters and digits. Another
    /// number for each answer keeps them apart within a conversation.
    pub id_seed: u64,
}
