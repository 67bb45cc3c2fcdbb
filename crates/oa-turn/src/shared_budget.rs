use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::budget::{BudgetLedger, BudgetLeft, Spent};

/// The budget of an agent that is shared with its sub-agents. The lock is held only for arithmetic.
#[derive(Debug)]
pub struct SharedBudget {
    ledger: Mutex<BudgetLedger>,
    outer: Option<Arc<Self>>,
}

impl SharedBudget {
    /// Creates a budget with what an agent has left, within the budget of its own parent.
    #[must_use]
    pub fn new(left: BudgetLeft, outer: Option<Arc<Self>>) -> Self {
        Self { ledger: Mutex::new(BudgetLedger::new(left)), outer }
    }

    /// Records what a sub-agent has spent, here and in all outer budgets.
    pub fn charge(&self, spent: Spent) {
        // Each lock is released before the next is taken, so nested budgets cannot deadlock.
        locked(&self.ledger).charge(spent);
        if let Some(outer) = &self.outer {
            outer.charge(spent);
        }
    }

    /// Returns what is left, here and in all outer budgets.
    #[must_use]
    pub fn left(&self) -> BudgetLeft {
        let left = locked(&self.ledger).left();
        self.outer.as_ref().map_or(left, |outer| left.and(outer.left()))
    }

    /// Returns what sub-agents have spent since the last call.
    #[must_use = "what is taken is not returned again"]
    pub fn take(&self) -> Spent {
        locked(&self.ledger).take()
    }
}

/// The parent's budget, as seen by one sub-agent.
#[derive(Debug)]
pub struct OuterBudget {
    shared: Arc<SharedBudget>,
    /// The amount that the sub-agent has reported to the parent.
    reported: Mutex<Spent>,
}

impl OuterBudget {
    /// Creates the view for a sub-agent that has spent nothing yet.
    #[must_use]
    pub fn new(shared: Arc<SharedBudget>) -> Self {
        Self { shared, reported: Mutex::default() }
    }

    /// Returns the parent's budget.
    #[must_use]
    pub fn shared(&self) -> &Arc<SharedBudget> {
        &self.shared
    }

    /// Reports the total that the sub-agent has spent, and returns what it has left. `below` is the part that its own
    /// sub-agents have spent since the last report; they have already reported it to all outer budgets.
    pub fn report(&self, now: Spent, below: Spent) -> BudgetLeft {
        // Locked until the charge is made: two reports at once would both charge the same difference.
        let mut reported = locked(&self.reported);
        let known = reported.plus(below);
        self.shared.charge(now.since(known));
        *reported = now;
        self.shared.left()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use oa_types::Cost;

    use super::*;

    fn tokens(tokens: u64) -> Spent {
        Spent::new(0, tokens, Cost::ZERO)
    }

    #[test]
    fn each_level_is_charged_once() {
        let left = BudgetLeft { tokens: Some(100), ..BudgetLeft::default() };
        let outer = Arc::new(SharedBudget::new(left, None));
        let inner = Arc::new(SharedBudget::new(BudgetLeft::default(), Some(Arc::clone(&outer))));
        let (child, grandchild) =
            (OuterBudget::new(Arc::clone(&outer)), OuterBudget::new(Arc::clone(&inner)));
        assert_eq!(grandchild.report(tokens(10), Spent::default()).tokens, Some(90));
        // The child takes what its own child has spent, and adds 5.
        let below = inner.take();
        assert_eq!(below, tokens(10));
        assert_eq!(child.report(tokens(15), below).tokens, Some(85));
        assert_eq!(child.report(tokens(15), Spent::default()).tokens, Some(85));
        assert_eq!(outer.take(), tokens(15));
        assert_eq!(outer.take(), Spent::default());
    }
}
