//! The driver's part of reviewing finished answers with hooks.

use oa_events::AgentEvent;
use oa_hooks::{AnswerDecision, AnswerEvent};
use oa_turn::{ReviewAnswerOutcome, ReviewAnswerStep, StepOutcome};
use tokio::time::sleep;

use crate::driver::Driver;
use crate::error::{self, Error, ErrorKind, Result};
use crate::hooks;
use crate::work::Done;

type Decided = Result<AnswerDecision, oa_hooks::Error>;

impl Driver {
    /// Asks the hooks about an answer.
    #[inline(never)]
    pub(crate) fn review_answer(&mut self) {
        let hooks = self.settings.config.hooks.clone();
        let event = event(self.turn.answer_review());
        self.work.hooks =
            Some(Box::pin(async move { Done::AnswerReview(hooks.answer(event, sleep).await) }));
    }

    /// Reports the hooks' decision about an answer to the turn.
    pub(crate) fn take_answer_review(&mut self, decided: Decided) -> Result<Option<AgentEvent>> {
        let (outcome, failure) = outcome(decided);
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

/// Returns the event of an answer.
pub(crate) fn event(step: ReviewAnswerStep) -> AnswerEvent {
    let ReviewAnswerStep { answer, retries, history, .. } = step;
    AnswerEvent::new(answer, history, retries)
}

/// Returns the hooks' outcome for an answer, and the error if one of them failed.
pub(crate) fn outcome(decided: Decided) -> (ReviewAnswerOutcome, Option<Error>) {
    match decided {
        Ok(AnswerDecision::Block { reason }) => (ReviewAnswerOutcome::Block { reason }, None),
        Ok(AnswerDecision::Continue) => (ReviewAnswerOutcome::Keep, None),
        Ok(AnswerDecision::Retry { reason }) => (ReviewAnswerOutcome::Retry { reason }, None),
        Err(error) => {
            let outcome = ReviewAnswerOutcome::Failed { error: hooks::record(&error) };
            (outcome, Some(error::hook(error)))
        }
    }
}
