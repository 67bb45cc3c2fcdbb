//! Budgets that several turns share: an agent and its sub-agents.

use oa_types::{Cost, FinishReason};

use super::Turn;
use super::phase::Rest;
use crate::budget::{BudgetLeft, Spent};

impl Turn {
    /// Returns what the turn has spent so far, including what it was [charged](Self::charge).
    #[must_use]
    pub fn spent(&self) -> Spent {
        let budget = &self.progress.budget;
        Spent { calls: budget.calls, tokens: budget.tokens, cost: budget.cost }
    }

    /// Returns what is left of the budgets: the turn's own, and those [from outside](Self::set_outer_budget).
    #[must_use]
    pub fn left(&self) -> BudgetLeft {
        let options = &self.options;
        let limits = BudgetLeft::new(options.max_calls, options.max_tokens, options.max_cost);
        let own = limits.after(self.spent());
        self.progress.shared.as_deref().map_or(own, |shared| own.and(*shared))
    }

    /// Charges the turn's budgets for something other than its answers: what a sub-agent has spent, or an answer that
    /// was cut off or failed. If no tokens or no money are left, the turn ends by that limit, without another request.
    pub fn charge(&mut self, spent: Spent) {
        if !spent.is_zero() {
            self.progress.shared.get_or_insert_default();
            self.spend(spent);
        }
    }

    /// Sets what is left of the budgets of the agent that runs this one. It limits this turn in addition to its own
    /// options, with the same finish reasons, before each request and before calls run.
    ///
    /// From now on, what this turn spends is deducted. Set it again whenever others may have spent some of it.
    pub fn set_outer_budget(&mut self, left: BudgetLeft) {
        **self.progress.shared.get_or_insert_default() = left;
    }

    pub(super) fn spend(&mut self, spent: Spent) {
        let Spent { calls, tokens, cost } = self.spent().plus(spent);
        let budget = &mut self.progress.budget;
        (budget.calls, budget.tokens, budget.cost) = (calls, tokens, cost);
        if let Some(shared) = &mut self.progress.shared {
            **shared = shared.after(spent);
        }
    }

    /// Ends the turn instead of sending a request, if others have used up the budget.
    pub(super) fn is_used_up_by_others(&mut self) -> bool {
        self.progress.shared.is_some() && self.ends_used_up()
    }

    /// Ends the turn if its tokens or its cost are used up.
    pub(super) fn ends_used_up(&mut self) -> bool {
        let Some((reason, _)) = self.exhausted() else { return false };
        let reason = self.progress.last.take().map_or(reason, |last| last.reason);
        self.end(reason, Rest::Done);
        true
    }

    /// Returns the outer budget that is used up, if one is.
    pub(super) fn exhausted_outside(&self) -> Option<(FinishReason, &'static str)> {
        let shared = self.progress.shared.as_deref()?;
        if shared.tokens == Some(0) {
            Some((FinishReason::MaxRunTokens, "not run: token limit"))
        } else if shared.cost == Some(Cost::ZERO) {
            Some((FinishReason::MaxRunCost, "not run: cost limit"))
        } else {
            None
        }
    }
}
