//! The driver's part of reviewing finished answers with hooks.

use oa_events::AgentEvent;
use oa_hooks::AnswerDecision;
use oa_turn::{ReviewAnswerOutcome, StepOutcome};
use tokio::time::sleep;

use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::hooks;
use crate::work::Done;

impl Driver {
    /// Asks the hooks about an answer.
    #[inline(never)]
    pub(crate) fn review_answer(&mut self) {
        let hooks = self.settings.config.hooks.clone();
        let event = hooks::answer_event(self.turn.answer_review());
        self.work.wait_for(async move { Done::AnswerReview(hooks.answer(event, sleep).await) });
    }

    /// Reports the hooks' decision about an answer to the turn.
    pub(crate) fn take_answer_review(
        &mut self,
        decided: Result<AnswerDecision, oa_hooks::Error>,
    ) -> Result<Option<AgentEvent>> {
        let (outcome, failure) = hooks::answer_outcome(decided);
        let retry = match &outcome {
            ReviewAnswerOutcome::Retry { reason } => Some(reason.clone()),
            _ => None,
        };
        match self.turn.take(StepOutcome::ReviewAnswer(outcome)) {
            Ok(()) => Ok(retry.map(AgentEvent::AnswerRetry)),
            Err(record) => {
                let blocked = || Error::new(ErrorKind::Blocked, record.message);
                Err(self.fail(failure.unwrap_or_else(blocked)))
            }
        }
    }
}
