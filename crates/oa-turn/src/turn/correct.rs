use oa_types::{FinishReason, Message};

use super::Turn;
use super::phase::Phase;

impl Turn {
    /// Goes on behind an answer that was to be the last of its turn: this message is said to the model, and
    /// it is asked again, within the budgets of the same turn. If the request fails, the message is taken
    /// back. It is no prompt and does not count as one.
    ///
    /// Returns whether it goes on: not unless an answer without calls has just been taken, nor once a
    /// limit is reached.
    pub fn correct(&mut self, message: Message) -> bool {
        let Phase::Ending { reason, .. } = &self.phase else { return false };
        let is_over = matches!(
            reason,
            FinishReason::Interrupted
                | FinishReason::MaxRunCost
                | FinishReason::MaxRunTime
                | FinishReason::MaxRunTokens
                | FinishReason::MaxToolCalls
                | FinishReason::MaxToolIterations
                | FinishReason::RepeatedToolCall
        );
        if is_over || self.spent().is_some() || !self.round.calls.is_empty() {
            return false;
        }
        self.final_text = Box::default();
        let prompt = Some(self.history().len());
        self.conversation.push(message);
        self.phase = Phase::Requesting { sent: false, prompt };
        true
    }
}
