use oa_types::{Cost, FinishReason};
use serde::{Deserialize, Serialize};

use crate::guard::Guard;

/// The counts of a turn from its begin to its end. The next turn begins with an empty one.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Progress {
    pub(super) budget: Budget,
    pub(super) guard: Guard,
    /// The reason to end, once a limit is reached.
    pub(super) last: Option<Last>,
    /// True if the turn was begun by a prompt, so that it counts as one.
    pub(super) counts: bool,
}

/// The budget that was used.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Budget {
    pub(super) rounds: u32,
    pub(super) calls: u32,
    pub(super) tokens: u64,
    pub(super) cost: Cost,
}

/// A limit is reached.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Last {
    pub(super) reason: FinishReason,
    /// True if one more answer, without tools, was asked for.
    pub(super) asked: bool,
}
