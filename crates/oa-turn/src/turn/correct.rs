use oa_types::{FinishReason, Message};

use super::Turn;
use super::phase::Phase;

impl Turn {
    /// Continues a turn after its last answer: sends this message to the model and asks again, within the same
    /// budgets. It does not count as a prompt.
    ///
    /// If the request fails, the message stays in history: [`continue_turn`](Self::continue_turn) and
    /// [`retry`](Self::retry) ask again, with neither the prompt nor the message added twice.
    ///
    /// Returns true if the turn continues. It does so only right after an answer without calls, only if no limit is
    /// reached, and only with a message that [could be a prompt](Self::check_message).
    pub fn correct(&mut self, message: Message) -> bool {
        if !self.may_go_on() || Self::check_message(&message).is_err() {
            return false;
        }
        self.final_text = Box::default();
        self.conversation.push(message);
        // A failure removes neither the answer nor this message, so that the turn can be retried.
        self.request(None);
        true
    }

    /// Like [`correct`](Self::correct), but a turn without a correction because its tokens or its cost are used up
    /// ends for that reason: the answer that it ends with is not the one that was wanted.
    pub(super) fn correct_within_limits(&mut self, words: String) -> bool {
        if self.is_unfinished()
            && let Some((reason, _)) = self.exhausted()
        {
            self.set_end_reason(reason);
            return false;
        }
        self.correct(Message::user(words))
    }

    /// Returns true if the turn is about to end with an answer without calls, and no limit keeps it from asking again.
    pub(super) fn may_go_on(&self) -> bool {
        self.is_unfinished() && self.exhausted().is_none()
    }

    /// Returns true if the turn is about to end with an answer without calls, and for no reason that is final.
    fn is_unfinished(&self) -> bool {
        let (Phase::Answered { reason, handed: false, .. } | Phase::Ending { reason, .. }) =
            &self.phase
        else {
            return false;
        };
        let is_over = reason.is_limit()
            || matches!(reason, FinishReason::Interrupted | FinishReason::Stopped)
            || self.plan.as_ref().is_some_and(|plan| plan.end.is_some());
        !is_over && self.round.calls.is_empty()
    }
}
