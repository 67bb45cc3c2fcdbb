//! Structured output of a turn. Answers are recorded as the model gave them and validated again in each replay:
//! validation depends only on the answers.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use oa_client::{AgentOptions, Error};
use oa_output::{ErrorKind, OutputValidator};
use oa_turn::AskOutcome;
use oa_types::{AssistantMessage, FinishReason, Message, MessageRole};
use serde_json::Value;

use crate::contract::PromptOutput;

/// The structured output of one turn.
pub(crate) struct Output {
    validator: OutputValidator,
    /// The value of the last answer, if that is valid.
    found: Arc<Mutex<Option<Value>>>,
}

impl Output {
    /// Begins the output that a prompt requests. Also returns the options that request it from the model.
    pub(crate) fn begin(
        options: &AgentOptions,
        wanted: PromptOutput,
    ) -> Result<(AgentOptions, Self), Error> {
        let PromptOutput { format, mode, tool, tries } = wanted;
        let mut of_output = options.output_options(mode, tool)?;
        of_output.tries = tries;
        let found = Arc::new(Mutex::new(None));
        let check = {
            let (format, found) = (format.clone(), Arc::clone(&found));
            move |object: Value| {
                let value = format.check(object).map_err(|error| error.to_string())?;
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                Ok(())
            }
        };
        let validator = OutputValidator::new(format, of_output, Box::new(check));
        let options = options.for_output(&validator)?;
        Ok((options, Self { validator, found }))
    }

    /// Returns the name of the output tool, if there is one.
    pub(crate) fn tool(&self) -> Option<String> {
        self.validator.tool().map(str::to_owned)
    }

    /// Returns the number of answers that were validated.
    pub(crate) fn tries(&self) -> u32 {
        self.validator.tries()
    }

    /// Validates the answer in an outcome, and adds the correction if it is invalid.
    pub(crate) fn validate(&mut self, outcome: AskOutcome) -> AskOutcome {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let AskOutcome::Answered { mut answer, .. } = outcome else { return outcome };
        let mut message = AssistantMessage::new(std::mem::take(&mut answer.blocks));
        message.finish_reason = answer.finish_reason.clone();
        let correction = self.validator.validate(&mut message).into_correction();
        answer.blocks = message.content;
        AskOutcome::Answered { answer, correction }
    }

    /// Returns the value at the end of a turn, whose last message is `last`; `None` after an interrupt. `Err` is the
    /// reason why there is none.
    pub(crate) fn end(
        &mut self,
        reason: &FinishReason,
        last: Option<&Message>,
    ) -> Result<Option<Value>, String> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The turn takes an answer back that a hook refuses, or whose review was cut off.
        let is_kept = |last: &Message| last.role == MessageRole::Assistant && !last.interrupted;
        if found.is_some() && last.is_some_and(is_kept) {
            return Ok(found);
        }
        let error = self.validator.error(reason);
        match error.kind {
            ErrorKind::Interrupted => Ok(None),
            _ => Err(error.to_string()),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("validator", &self.validator).finish_non_exhaustive()
    }
}
