//! Budgets that an agent shares with its sub-agents.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_turn::{BudgetLedger, BudgetLeft, Spent};

/// The budget of an agent that runs sub-agents. It is locked only for arithmetic.
#[derive(Debug)]
pub(crate) struct SharedBudget {
    pub(crate) ledger: Mutex<BudgetLedger>,
    pub(crate) outer: Option<Arc<Self>>,
}

impl SharedBudget {
    pub(crate) fn charge(&self, spent: Spent) {
        locked(&self.ledger).charge(spent);
        if let Some(outer) = &self.outer {
            outer.charge(spent);
        }
    }

    pub(crate) fn left(&self) -> BudgetLeft {
        let left = locked(&self.ledger).left();
        self.outer.as_ref().map_or(left, |outer| left.and(outer.left()))
    }
}

/// The budget of the parent, as a sub-agent sees it.
#[derive(Debug)]
pub(crate) struct OuterBudget {
    pub(crate) shared: Arc<SharedBudget>,
    /// The amount that the sub-agent has spent, as far as the parent knows.
    pub(crate) reported: Mutex<Spent>,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
