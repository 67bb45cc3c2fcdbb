//! Structured output: invalid answers and their removal.

use oa_types::{ContentBlock, Outcome};

use super::Turn;
use super::output_state::OutputState;
use crate::call::{Call, CallState};
use crate::error::Error;

impl Turn {
    /// Begins structured output: from now until [`end_output`](Self::end_output), invalid answers are noted. An answer
    /// is invalid if its outcome has a [correction](crate::AskOutcome::Answered), if it is a malformed call of the
    /// output tool, or if the model is asked again because its call cannot be answered.
    ///
    /// `tool` is the name of the output tool, if the model gives its final answer by a call. Results of its calls are
    /// not reviewed: no [`Action::Review`](crate::Action::Review) is returned for them.
    pub fn begin_output(&mut self, tool: Option<String>) {
        self.output = Some(Box::new(OutputState { tool, invalid: Vec::new() }));
    }

    /// Ends structured output. Invalid answers and their corrections are removed from history, unless calls wait for
    /// the caller, because the removal would answer those. An invalid answer stays if nothing followed it.
    ///
    /// # Errors
    ///
    /// `Busy` while a turn is in progress, if there is something to remove.
    pub fn end_output(&mut self) -> Result<(), Error> {
        let Some(output) = self.output.take() else { return Ok(()) };
        if output.invalid.is_empty() || self.calls().iter().any(Call::is_open) {
            return Ok(());
        }
        self.remove_messages(&output.invalid)
    }

    /// Returns true if a tool is the output tool.
    pub(super) fn is_output_tool(&self, name: &str) -> bool {
        self.output_tool() == Some(name)
    }

    pub(super) fn output_tool(&self) -> Option<&str> {
        self.output.as_ref()?.tool.as_deref()
    }

    /// Returns true if an answer is a malformed call of the output tool and no other call.
    pub(super) fn is_malformed_output(&self, answer: &[ContentBlock]) -> bool {
        let Some(tool) = self.output_tool() else { return false };
        let mut calls = answer.iter().filter_map(|block| match block {
            ContentBlock::ToolUse(_) => Some(None),
            ContentBlock::ToolUseError(error) => error.name.as_deref().map(Some),
            _ => None,
        });
        calls.next() == Some(Some(tool)) && calls.next().is_none()
    }

    /// Returns true if the last answer was an invalid call of the output tool and nothing else. It does not count as a
    /// round of calls but as an attempt, like any other invalid answer, and attempts have a limit of their own.
    pub(super) fn is_attempt(&self) -> bool {
        let is_malformed = |call: &Call| match call.state {
            CallState::Answered { outcome: Outcome::Malformed, .. } => {
                self.is_output_tool(&call.block.name)
            }
            _ => false,
        };
        !self.round.calls.is_empty() && self.round.calls.iter().all(is_malformed)
    }

    /// Notes that the messages from this index on are an invalid answer and its correction.
    pub(super) fn note_invalid(&mut self, begin: usize) {
        if let Some(output) = &mut self.output {
            let revisions = self.conversation.revisions().get(begin..);
            output.invalid.extend_from_slice(revisions.unwrap_or_default());
        }
    }
}
