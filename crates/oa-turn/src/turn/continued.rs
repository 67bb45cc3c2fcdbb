//! Turns that begin without a prompt.

use oa_types::MessageRole;

use super::Turn;
use super::phase::Phase;
use crate::error::{Error, ErrorKind};
use crate::options::Mode;

impl Turn {
    /// Continues the conversation from its current state, with fresh budgets.
    ///
    /// # Errors
    ///
    /// - `Busy` while a turn is in progress.
    /// - `OpenCalls` if calls have no result, or wait for permission; the message names their ids.
    /// - `NothingToContinue` unless the last message is a user's message or a result. Answers are never prefilled.
    /// - `InvalidHistory`, as [`check_history`](Self::check_history).
    pub fn continue_turn(&mut self) -> Result<(), Error> {
        let open = self.round.open_ids();
        // In manual mode the caller may continue before it has taken `Action::End`.
        let answered = match self.phase {
            Phase::Calling { .. } => !self.has_unshown(),
            // The last result has already continued the turn, as requested.
            Phase::Continuing { prompt } => prompt.is_none() && self.round.handed.is_none(),
            _ => false,
        };
        if self.options.mode == Mode::Auto || !answered {
            self.must_be_idle()?;
        }
        if self.phase.awaits_approval() {
            return self.go_on_with_calls();
        }
        if !open.is_empty() {
            let message = format!("calls have no result yet: {}", open.join(", "));
            return Err(Error::new(ErrorKind::OpenCalls, message));
        }
        let last = self.history().last();
        if !last.is_some_and(|last| matches!(last.role, MessageRole::Tool | MessageRole::User)) {
            return Err(Error::nothing_to_continue(last));
        }
        self.check_history()?;
        self.begin(None);
        Ok(())
    }

    /// Continues the turn now, or once the last open call is answered. Returns true if it continues now.
    ///
    /// Works like [`continue_turn`](Self::continue_turn), except in manual mode while calls are still being shown: then
    /// the request is remembered until all of them have results.
    ///
    /// # Errors
    ///
    /// As [`continue_turn`](Self::continue_turn).
    pub fn continue_when_answered(&mut self) -> Result<bool, Error> {
        if self.options.mode == Mode::Manual && self.is_busy() && self.has_unshown() {
            match &mut self.phase {
                Phase::Calling { continues, .. } => *continues = true,
                // Such an answer has no calls, so no result would ever continue the turn.
                Phase::Answered { .. } | Phase::Ending { .. } => {
                    return Err(Error::nothing_to_continue(self.history().last()));
                }
                // The turn is already continuing.
                _ => {}
            }
            return Ok(false);
        }
        self.continue_turn().map(|()| true)
    }
}
