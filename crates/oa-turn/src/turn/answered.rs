//! Finished answers: their review, and answers that were refused.

use std::ops::Range;

use oa_types::{ContentBlock, ErrorRecord, FinishReason, Message};

use super::Turn;
use super::phase::{Phase, Rest};
use super::progress::Last;
use crate::step::{ReviewAnswerOutcome, ReviewAnswerStep};

impl Turn {
    /// Keeps the answer, after [`Action::ReviewAnswer`](crate::Action::ReviewAnswer). The turn ends with it. Earlier
    /// refused answers, with the replies to them, are removed from history.
    pub fn keep_answer(&mut self) {
        let Phase::Answered { reason, handed: true, .. } = &self.phase else { return };
        let reason = reason.clone();
        self.end(reason, Rest::Done);
    }

    /// Refuses the answer, after [`Action::ReviewAnswer`](crate::Action::ReviewAnswer), and asks again within the same
    /// turn and budgets. The model reads the reason.
    ///
    /// While the turn continues, the refused answer and the reason stay in history: the model has to see what to
    /// change. Both are removed once an answer is kept or the turn ends in any other way. So later prompts and stored
    /// conversations contain neither refused answers nor words that the user did not write.
    ///
    /// Returns false, and changes nothing, if no retry is left: because of
    /// [`max_answer_retries`](crate::Options::max_answer_retries), or because the turn's tokens or cost are used up.
    /// The answer must then be [blocked](Self::block_answer). After a limit on calls, the model is asked again without
    /// tools.
    pub fn retry_answer(&mut self, reason: &str) -> bool {
        let Phase::Answered { reason: ended, place, handed: true } = &self.phase else {
            return false;
        };
        let (ended, place) = (ended.clone(), *place);
        if self.progress.retries >= self.options.max_answer_retries || self.exhausted().is_some() {
            return false;
        }
        // `answer` has taken the limit. With it back, the next request has no tools, and the turn ends so.
        if ended.is_limit() {
            self.progress.last = Some(Last { reason: ended, asked: true });
        }
        self.progress.retries += 1;
        self.final_text = Box::default();
        let words = format!("Your answer was not accepted: {reason}\n\nPlease answer again.");
        self.conversation.push(Message::user(words));
        let refused = place..self.history().len();
        self.refused.push(refused);
        // A failure does not remove the messages before the answer.
        self.request(None);
        true
    }

    /// Rejects the answer without a retry, after [`Action::ReviewAnswer`](crate::Action::ReviewAnswer). The turn ends
    /// as after [`fail`](Self::fail): the answer is removed from history, and the prompt can be sent again or the turn
    /// continued.
    pub fn block_answer(&mut self) {
        if matches!(self.phase, Phase::Answered { handed: true, .. }) {
            self.fail();
        }
    }

    /// Returns the data for reviewing an answer, after [`Action::ReviewAnswer`](crate::Action::ReviewAnswer).
    #[must_use]
    pub fn answer_review(&self) -> ReviewAnswerStep {
        let mut history = self.history().clone();
        let place = match self.phase {
            Phase::Answered { place, .. } => place,
            _ => history.len(),
        };
        let answer = history.get(place).cloned();
        let answer = answer.unwrap_or_else(|| Message::assistant(Vec::new()));
        if place < history.len() {
            history.make_mut().truncate(place);
        }
        ReviewAnswerStep { answer, retries: self.progress.retries, history }
    }

    pub(super) fn take_answer_review(
        &mut self,
        outcome: ReviewAnswerOutcome,
    ) -> Result<(), Box<ErrorRecord>> {
        if !matches!(self.phase, Phase::Answered { handed: true, .. }) {
            return Ok(());
        }
        match outcome {
            ReviewAnswerOutcome::Block { reason } => {
                self.fails(blocked(format!("a hook blocked the answer: {reason}")))
            }
            ReviewAnswerOutcome::Cut { by } => self.take_cut(by),
            ReviewAnswerOutcome::Failed { error } => self.fails(error),
            ReviewAnswerOutcome::Keep => {
                self.keep_answer();
                Ok(())
            }
            ReviewAnswerOutcome::Retry { reason } if self.retry_answer(&reason) => Ok(()),
            ReviewAnswerOutcome::Retry { reason } => {
                let message =
                    format!("a hook refused the answer, and no retries are left: {reason}");
                self.fails(blocked(message))
            }
        }
    }

    /// Ends the turn with an answer without calls, after its review if there is one. `place` is the index of the
    /// answer in history.
    pub(super) fn end_answered(&mut self, reason: FinishReason, place: usize) {
        if self.options.review_answers {
            self.phase = Phase::Answered { reason, place, handed: false };
        } else {
            self.phase = Phase::ending(reason);
        }
    }

    /// Changes the reason for which the turn ends.
    pub(super) fn set_end_reason(&mut self, because: FinishReason) {
        if let Phase::Answered { reason, .. } | Phase::Ending { reason, .. } = &mut self.phase {
            *reason = because;
        }
    }

    /// Ends the turn, or suspends it until the caller acts.
    pub(super) fn end(&mut self, reason: FinishReason, rest: Rest) {
        self.forget_refused();
        // The turn has not failed, and from here on nothing removes its prompt.
        self.failure = None;
        self.phase = Phase::Ending { reason, rest };
    }

    /// Removes an answer under review from history and returns its blocks.
    pub(super) fn take_answer_back(&mut self) -> Vec<ContentBlock> {
        let Phase::Answered { place, .. } = self.phase else { return Vec::new() };
        let answer = self.history().get(place).map(|answer| answer.content.clone());
        self.remove(place..self.history().len());
        answer.unwrap_or_default()
    }

    /// Removes the refused answers and the replies to them.
    pub(super) fn forget_refused(&mut self) {
        // From the last to the first, because a removal moves only the messages after it.
        while let Some(refused) = self.refused.pop() {
            self.remove(refused);
        }
    }

    fn remove(&mut self, messages: Range<usize>) {
        self.round.removed(&messages);
        self.conversation.remove(messages);
    }
}

fn blocked(message: String) -> Box<ErrorRecord> {
    Box::new(ErrorRecord::new("blocked", message))
}
