//! Conditions that end a turn after the calls of a step.

use oa_types::{ErrorRecord, FinishReason};

use super::Turn;
use super::phase::{Phase, Rest};
use crate::step::{PlanStep, StopOutcome};

impl Turn {
    /// Returns the data for deciding whether the turn ends here, after [`Action::CheckStop`](crate::Action::CheckStop):
    /// the finished step, with its calls and their results.
    #[must_use]
    pub fn stop_check(&self) -> PlanStep {
        // Also after a retry, where `plan_step` has no calls: an earlier turn may have begun the step.
        PlanStep { last_calls: self.calls().to_vec(), ..self.plan_step(self.steps()) }
    }

    /// Begins the check of a step whose calls are over. Returns false if there is none, or it was checked.
    pub(super) fn begins_check(&mut self) -> bool {
        let is_due = self.options.check_stop && self.round.is_unchecked();
        if is_due {
            self.phase = Phase::Checking { handed: false };
        }
        is_due
    }

    pub(super) fn take_stop(&mut self, outcome: StopOutcome) -> Result<(), Box<ErrorRecord>> {
        if self.phase != (Phase::Checking { handed: true }) {
            return Ok(());
        }
        match outcome {
            StopOutcome::Continue => {
                self.round.is_checked = true;
                self.request(None);
                Ok(())
            }
            StopOutcome::Cut { by } => self.take_cut(by),
            StopOutcome::Failed { error } => self.fails(error),
            StopOutcome::Stop => {
                self.round.is_checked = true;
                self.end(FinishReason::Stopped, Rest::Done);
                Ok(())
            }
        }
    }
}
