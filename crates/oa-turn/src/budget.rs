//! Budgets shared by several turns: the arithmetic, without a lock.

use oa_types::{Cost, Usage};
use serde::{Deserialize, Serialize};

/// The amount of its budgets that a turn has used, including its sub-agents.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Spent {
    /// The calls that ran.
    pub calls: u32,
    /// The tokens of all answers.
    pub tokens: u64,
    /// The cost of all answers.
    pub cost: Cost,
}

impl Spent {
    /// Creates an amount.
    #[must_use]
    pub fn new(calls: u32, tokens: u64, cost: Cost) -> Self {
        Self { calls, tokens, cost }
    }

    /// Returns true if nothing was spent.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(more.calls),
            tokens: self.tokens.saturating_add(more.tokens),
            cost: self.cost.saturating_add(more.cost),
        }
    }

    /// Returns what was spent since an earlier amount: zero where the earlier one is larger.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            tokens: self.tokens.saturating_sub(earlier.tokens),
            cost: self.cost.saturating_sub(earlier.cost),
        }
    }
}

impl From<&Usage> for Spent {
    fn from(usage: &Usage) -> Self {
        let tokens = usage.total().unwrap_or_default();
        Self::new(0, tokens, usage.cost.unwrap_or_default())
    }
}

/// A budget shared by several turns: what was left of it, and what they have spent since.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BudgetLedger {
    left: BudgetLeft,
    spent: Spent,
    taken: Spent,
}

impl BudgetLedger {
    /// Opens a ledger with what is left of a budget.
    #[must_use]
    pub fn new(left: BudgetLeft) -> Self {
        Self { left, ..Self::default() }
    }

    /// Records what one of the turns has spent.
    pub fn charge(&mut self, spent: Spent) {
        self.spent = self.spent.plus(spent);
    }

    /// Returns what is left.
    #[must_use]
    pub fn left(&self) -> BudgetLeft {
        self.left.after(self.spent)
    }

    /// Returns what was spent since the last call, for [`Turn::charge`](crate::Turn::charge).
    pub fn take(&mut self) -> Spent {
        let new = self.spent.since(self.taken);
        self.taken = self.spent;
        new
    }
}

/// The rest of a turn's budgets; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BudgetLeft {
    /// The calls that may still run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// The tokens left. At zero, no more calls run and no more requests are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The cost left, with the same effect at zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl BudgetLeft {
    /// Creates an amount.
    #[must_use]
    pub fn new(calls: Option<u32>, tokens: Option<u64>, cost: Option<Cost>) -> Self {
        Self { calls, tokens, cost }
    }

    /// Returns true if nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what is left after spending more.
    #[must_use]
    pub fn after(self, spent: Spent) -> Self {
        Self {
            calls: self.calls.map(|left| left.saturating_sub(spent.calls)),
            tokens: self.tokens.map(|left| left.saturating_sub(spent.tokens)),
            cost: self.cost.map(|left| left.saturating_sub(spent.cost)),
        }
    }

    /// Returns what is left if both limits apply: the smaller amount of each.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Self {
            calls: smaller(self.calls, other.calls),
            tokens: smaller(self.tokens, other.tokens),
            cost: smaller(self.cost, other.cost),
        }
    }
}
