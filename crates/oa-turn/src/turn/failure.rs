//! Turns that failed, and prompts that are sent again after that.

use oa_types::{ContentBlock, Message, MessageRole, Outcome};

use super::Turn;
use super::failed::{Asked, Failure};
use super::phase::Phase;
use crate::answer::unfinished;
use crate::error::Error;

impl Turn {
    /// Ends the turn because a request, a hook or the driver failed. A prompt whose answer had not begun is
    /// taken back.
    pub fn fail(&mut self) {
        self.fail_with(Vec::new());
    }

    /// Ends the turn as [`fail`](Self::fail) does, with what the caller has seen of the answer that broke.
    ///
    /// A broken answer is not recorded as long as the prompt may be sent again: history ends with the
    /// prompt, or with the results that the answer was about, and [`continue_turn`](Self::continue_turn) and
    /// [`retry`](Self::retry) ask anew. A different prompt follows the broken answer, which is then recorded
    /// before it, marked as interrupted.
    pub fn fail_with(&mut self, partial: Vec<ContentBlock>) {
        match self.phase {
            Phase::Idle { .. } => return,
            // Nothing has begun: what waited before the prompt still waits.
            Phase::Prompting { rest, .. } => {
                self.phase = Phase::Idle { rest };
                return;
            }
            _ => {}
        }
        match self.phase.prompt() {
            Some(prompt) if prompt + 1 == self.history().len() => self.take_back(),
            // The answer began, and there was no failure before it that is still to be made good.
            _ if self.failure.is_none() => {
                let is_broken = matches!(self.phase, Phase::Requesting { .. });
                let broken = Some(self.shown(partial)).filter(|_| is_broken).and_then(unfinished);
                self.failure = self
                    .asked
                    .clone()
                    .map(|asked| Box::new(Failure { asked, broken, is_recorded: false }));
            }
            _ => {}
        }
        self.turns = self.turns.saturating_sub(u32::from(self.progress.counts));
        self.answer_cut_calls("not run: the turn failed", Outcome::NotRun);
        self.rest();
    }

    /// Takes note of the prompt as the caller gave it, where a hook has changed the one that was submitted:
    /// it is what [`is_retry`](Self::is_retry) compares with.
    pub fn note_given(&mut self, given: Message) {
        if let Some(asked) = &mut self.asked {
            asked.given = Some(Box::new(given));
        }
    }

    /// Returns whether this is the prompt of the turn that has just failed, and still waits in history for
    /// its answer. Then [`retry`](Self::retry) asks for that, so that the prompt does not stand there twice.
    #[must_use]
    pub fn is_retry(&self, prompt: &Message) -> bool {
        let last = self.history().last().map(|message| message.role);
        let waits = matches!(last, Some(MessageRole::Tool | MessageRole::User));
        let Some(failure) = self.failure.as_ref().filter(|_| waits && self.phase.is_idle()) else {
            return false;
        };
        let Asked { place, given } = &failure.asked;
        let given = given.as_deref().or_else(|| self.history().get(*place));
        given == Some(prompt)
    }

    /// Asks again for the answer to a prompt that [`is_retry`](Self::is_retry) knows: as
    /// [`continue_turn`](Self::continue_turn), but it counts as a prompt.
    ///
    /// # Errors
    ///
    /// As [`check_prompt`](Self::check_prompt) and [`continue_turn`](Self::continue_turn).
    pub fn retry(&mut self, prompt: &Message) -> Result<(), Error> {
        self.check_prompt(prompt)?;
        self.continue_turn()?;
        self.turns = self.turns.saturating_add(1);
        self.progress.counts = true;
        Ok(())
    }

    /// Records the broken answer that a different prompt follows.
    pub(super) fn record_broken(&mut self) {
        if let Some(failure) = &mut self.failure
            && let Some(broken) = failure.broken.clone()
        {
            failure.is_recorded = true;
            self.conversation.push(broken);
        }
    }

    pub(super) fn forget_failure(&mut self) {
        (self.asked, self.failure) = (None, None);
    }

    /// Takes the prompt back, and all that was recorded for it: history is as before, also for a retry of
    /// the prompt before it.
    fn take_back(&mut self) {
        self.conversation.pop();
        self.asked = None;
        if let Some(failure) = &mut self.failure {
            self.asked = Some(failure.asked.clone());
            if std::mem::take(&mut failure.is_recorded) {
                self.conversation.pop();
            }
        }
    }
}
