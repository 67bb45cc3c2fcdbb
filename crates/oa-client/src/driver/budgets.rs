use oa_turn::Spent;

use super::Driver;
use crate::outer_budget::locked;

impl Driver {
    /// Takes what sub-agents have spent off the budgets, and reports it to the parent.
    #[inline]
    pub(crate) fn share_budgets(&mut self) {
        let spent =
            self.work.batch.as_ref().map_or_else(Spent::default, |batch| batch.take_spent());
        self.turn.charge(spent);
        if let Some(outer) = &self.settings.config.outer {
            let mut reported = locked(&outer.reported);
            // Those below have told it to all above them.
            let known = reported.plus(spent);
            let now = self.turn.spent();
            outer.shared.charge(now.since(known));
            *reported = now;
            self.turn.set_outer_budget(outer.shared.left());
        }
    }
}
