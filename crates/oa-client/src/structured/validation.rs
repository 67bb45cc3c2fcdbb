//! The driver's part of structured output: validates answers before the turn takes them.

use oa_output::Validation;
use oa_turn::{Answer, AskOutcome, StepOutcome};
use oa_types::{AssistantMessage, Message, MessageRole};

use crate::driver::Driver;

impl Driver {
    /// Validates an answer, if structured output is wanted.
    pub(crate) fn validate(&mut self, message: &mut AssistantMessage) -> Validation {
        self.output
            .as_mut()
            .map_or(Validation::Unchanged, |output| output.validator.validate(message))
    }

    /// Passes an answer to the turn, with its correction.
    pub(crate) fn take_answer(&mut self, answer: Answer, validation: Validation) {
        let begin = self.turn.history().len();
        let (is_failed, correction) = match validation {
            Validation::Unchanged => (false, None),
            Validation::Failed => (true, None),
            Validation::Correct(words) => (false, Some(words)),
        };
        let is_corrected = correction.is_some();
        let outcome = AskOutcome::Answered { answer, correction };
        let taken = self.turn.take(StepOutcome::Ask(outcome));
        debug_assert!(taken.is_ok(), "an answer is no failure");
        // Not if a limit is reached: then the answer stands last.
        let last = self.turn.history().get(begin..).and_then(<[Message]>::last);
        let is_told = last.is_some_and(|last| last.role == MessageRole::User);
        let goes_on = is_failed || is_corrected && is_told;
        if let (true, Some(output)) = (goes_on, &mut self.output) {
            output.failed.extend_from_slice(&self.turn.revisions()[begin..]);
        }
    }

    /// Removes invalid answers from history, once they are of no more use.
    pub(crate) fn forget_failures(&mut self) {
        let Some(output) = self.output.take() else { return };
        self.turn.set_output_tool(None);
        // Calls that wait for the caller would be answered by that.
        let waits = self.turn.calls().iter().any(oa_turn::Call::is_open);
        if output.failed.is_empty() || waits {
            return;
        }
        let idle = self.turn.remove_messages(&output.failed);
        debug_assert!(idle.is_ok(), "the turn was ended before");
    }
}
