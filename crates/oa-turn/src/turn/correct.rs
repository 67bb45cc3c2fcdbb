use oa_types::{FinishReason, Message};

use super::Turn;
use super::phase::Phase;

impl Turn {
    /// Continues a turn after its last answer: sends this message to the model and asks again, within the same
    /// budgets. If the request fails, the message is removed. It does not count as a prompt.
    ///
    /// Returns true if the turn continues. It does so only right after an answer without calls, and only if no limit
    /// is reached.
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
