use oa_types::{Cost, FinishReason};
use serde::{Deserialize, Serialize};

use crate::budget::BudgetLeft;
use crate::guard::Guard;

/// The counters of one turn. The next turn starts with empty ones.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Progress {
    pub(super) budget: Budget,
    pub(super) guard: Guard,
    /// The limit that was reached, if any.
    pub(super) last: Option<Last>,
    /// True if a prompt began the turn, so that the turn counts toward `max_turns`.
    pub(super) counts: bool,
    /// The rest of the budgets shared with other turns, if there are any. It outlives the turn. Boxed, because
    /// most agents share none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shared: Option<Box<BudgetLeft>>,
    /// The number of answers that were refused and retried.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) retries: u32,
}

impl Progress {
    /// Returns the counters of a turn that begins, with a prompt that counts or without one.
    pub(super) fn next(&self, counts: bool) -> Self {
        Self { counts, shared: self.shared.clone(), ..Self::default() }
    }
}

/// The budget used so far.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Budget {
    /// The requests handed out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) steps: u32,
    pub(super) rounds: u32,
    pub(super) calls: u32,
    pub(super) tokens: u64,
    pub(super) cost: Cost,
}

/// A limit that was reached, which ends the turn.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Last {
    pub(super) reason: FinishReason,
    /// True if one more answer without tools was requested.
    pub(super) asked: bool,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
