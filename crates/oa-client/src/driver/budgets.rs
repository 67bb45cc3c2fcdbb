use oa_turn::Spent;

use super::Driver;

impl Driver {
    /// Takes what sub-agents have spent off the budgets, and reports it to the parent.
    #[inline]
    pub(crate) fn share_budgets(&mut self) {
        let spent =
            self.work.batch.as_ref().map_or_else(Spent::default, |batch| batch.take_spent());
        self.turn.charge(spent);
        if let Some(outer) = &self.settings.config.outer {
            let left = outer.report(self.turn.spent(), spent);
            self.turn.set_outer_budget(left);
        }
    }
}
