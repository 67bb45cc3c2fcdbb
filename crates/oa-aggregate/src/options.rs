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
    /// The seed of ids that are generated for calls without one: nine letters and digits. Use a different number for
    /// each answer of a conversation.
    pub id_seed: u64,
}
