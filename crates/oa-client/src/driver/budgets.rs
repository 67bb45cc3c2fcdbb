use std::mem;

use oa_chat::AnswerStream;
use oa_executor::ToolEvent;
use oa_turn::Spent;

use super::Driver;
use crate::work::{Work, locked};

impl Driver {
    /// Charges the budgets for what sub-agents have spent, and reports it to the parent.
    #[inline]
    pub(crate) fn share_budgets(&mut self) {
        // Most drivers have neither running tools nor a parent.
        if self.work.batch.is_some() || self.settings.config.outer.is_some() {
            let batch = self.work.batch.as_ref();
            self.share(batch.map_or_else(Spent::default, |batch| batch.take_spent()));
        }
    }

    #[inline(never)]
    fn share(&mut self, nested: Spent) {
        // Sub-agents have charged the agents above for `nested` themselves, so `report` leaves it out.
        self.turn.charge(nested);
        self.metadata.add_sub_agents(nested.tokens, nested.cost);
        if let Some(outer) = &self.settings.config.outer {
            let left = outer.report(self.turn.spent(), nested);
            self.turn.set_outer_budget(left);
        }
    }

    /// Stops the work in progress, counts its usage, and returns the answer that was arriving.
    pub(crate) fn stop_work(&mut self) -> Option<AnswerStream> {
        let Work { answer, batch, futures, summary, .. } = mem::take(&mut self.work);
        // Sub-agents and a summary report their usage when they are dropped.
        let (ended, nested) = batch.map_or_else(Default::default, |batch| batch.stop());
        drop(futures);
        // What has ended stays, also if its event was not read yet.
        ended.into_iter().for_each(|ended| self.note_tool(&ToolEvent::CallComplete(ended)));
        if let Some(answer) = &answer {
            let mut usage = answer.usage();
            if let Some(usage) = &mut usage {
                self.settings.config.price(usage);
                self.turn.charge(Spent::from(&*usage));
            }
            self.metadata.count(usage);
        }
        if let Some(used) = summary {
            let used = *locked(&used);
            self.metadata.add(&used);
            self.turn.charge(Spent::from(&used));
        }
        self.share(nested);
        answer
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The call of this sub-agent was cut. The usage of its answer counts for the agents above it.
        if self.settings.config.outer.is_some() {
            self.stop_work();
        }
    }
}
