//! Calls that cannot be answered.

use oa_types::{FinishReason, Message, MessageRole};

use super::Turn;

impl Turn {
    /// Tells the model that its call was lost, and asks again, because a call without a name cannot have a result.
    /// This counts as a round of calls, so that the limits hold.
    pub(super) fn tell_lost_call(&mut self, error: &str) {
        if self.progress.budget.rounds >= self.options.max_rounds {
            self.set_end_reason(FinishReason::MaxToolIterations);
            return;
        }
        if let Some((reason, _)) = self.exhausted() {
            self.set_end_reason(reason);
            return;
        }
        let words =
            format!("Your tool call could not be used ({error}). Please call the tool again.");
        if self.correct(Message::user(words)) {
            let rounds = &mut self.progress.budget.rounds;
            *rounds = rounds.saturating_add(1);
        }
    }

    /// Returns true if the model was told so about the answer that has just been taken, before which history had this
    /// length.
    pub(super) fn has_told_lost_call(&self, begin: usize) -> bool {
        let said = self.history().get(begin..).and_then(<[Message]>::last);
        said.is_some_and(|said| said.role == MessageRole::User)
    }
}
