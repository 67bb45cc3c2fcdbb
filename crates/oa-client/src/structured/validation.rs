//! The driver's part of structured output: validates answers before the turn takes them.

use oa_output::Validation;
use oa_turn::{Answer, AskOutcome, StepOutcome};
use oa_types::AssistantMessage;

use crate::driver::Driver;

impl Driver {
    /// Validates an answer, if structured output is wanted.
    pub(crate) fn validate(&mut self, message: &mut AssistantMessage) -> Validation {
        self.output.as_mut().map_or(Validation::Unchanged, |output| output.validate(message))
    }

    /// Passes an answer to the turn, with its correction.
    pub(crate) fn take_answer(&mut self, answer: Answer, validation: Validation) {
        let correction = validation.into_correction();
        let taken = self.turn.take(StepOutcome::Ask(AskOutcome::Answered { answer, correction }));
        debug_assert!(taken.is_ok(), "an answer is not a failure");
    }

    /// Removes invalid answers from history once they are not needed any more.
    pub(crate) fn forget_failures(&mut self) {
        self.output = None;
        let idle = self.turn.end_output();
        debug_assert!(idle.is_ok(), "the turn was ended before");
    }
}
