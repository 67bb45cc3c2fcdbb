use crate::limits::Limits;
use crate::quirks::Quirks;

/// Options of an aggregator.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The limits on memory.
    pub limits: Limits,
    /// The server's quirks, if known.
    pub quirks: Quirks,
    /// The seed of the nine letters and digits of generated ids. Use another number for each answer of a conversation.
    pub id_seed: u64,
}
