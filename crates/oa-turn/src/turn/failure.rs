//! Failed turns, and prompts that are sent again after a failure.

use oa_types::{ContentBlock, Message, MessageRole, Outcome};

use super::Turn;
use super::failed::{Failure, SubmittedPrompt};
use super::phase::Phase;
use crate::answer::unfinished;
use crate::error::Error;

impl Turn {
    /// Ends the turn because a request, a hook or the driver failed. If the answer to its prompt had not begun, the
    /// prompt is removed from history, and a conversation that was shortened for it [in
    /// vain](Self::is_shortened_in_vain) is restored.
    pub fn fail(&mut self) {
        self.fail_with(Vec::new());
    }

    /// Ends the turn like [`fail`](Self::fail), with the part of the broken answer that the caller has seen.
    ///
    /// The broken answer is not recorded at first: history ends with the prompt, or with the results that the answer
    /// followed, and [`continue_turn`](Self::continue_turn) or [`retry`](Self::retry) asks again. If a different prompt
    /// is submitted instead, the broken answer is recorded before it, marked as interrupted.
    pub fn fail_with(&mut self, partial: Vec<ContentBlock>) {
        match self.phase {
            Phase::Idle { .. } => return,
            // The turn has not begun: calls that waited before the prompt still wait.
            Phase::Prompting { rest, .. } => {
                self.phase = Phase::Idle { rest };
                return;
            }
            // The answer is still under review.
            Phase::Answered { .. } => drop(self.take_answer_back()),
            _ => {}
        }
        match self.phase.prompt() {
            // No answer began: history becomes what it was before the prompt.
            Some(prompt) if prompt + 1 == self.history().len() => {
                self.unshorten();
                self.take_back();
            }
            // The answer began, and no earlier failure is still open.
            _ if self.failure.is_none() => {
                // Only a request leaves a broken answer. In other phases the last answer is complete or was
                // taken back.
                let is_broken = matches!(self.phase, Phase::Requesting { .. });
                let broken = Some(self.shown(partial)).filter(|_| is_broken).and_then(unfinished);
                let asked = self.asked.clone();
                self.failure = (asked.is_some() || broken.is_some())
                    .then(|| Box::new(Failure { asked, broken, is_recorded: false }));
            }
            _ => {}
        }
        self.turns = self.turns.saturating_sub(u32::from(self.progress.counts));
        // Before `rest`, which resets the phase that says whether the calls have started.
        self.answer_cut_calls("not run: the turn failed", Outcome::NotRun);
        self.rest();
    }

    /// Records the prompt as the caller gave it, if a hook changed the submitted one. [`is_retry`](Self::is_retry)
    /// compares against it.
    pub fn note_given(&mut self, given: Message) {
        if let Some(asked) = &mut self.asked {
            asked.given = Some(Box::new(given));
        }
    }

    /// Returns true if this is the prompt of the turn that just failed, and it is still in history without an answer.
    /// Then use [`retry`](Self::retry), so that the prompt is not added twice.
    #[must_use]
    pub fn is_retry(&self, prompt: &Message) -> bool {
        let last = self.history().last().map(|message| message.role);
        let waits = matches!(last, Some(MessageRole::Tool | MessageRole::User));
        let failure = self.failure.as_ref().filter(|_| waits && self.phase.is_idle());
        let asked = failure.and_then(|failure| failure.asked.as_ref());
        let Some(SubmittedPrompt { place, given }) = asked else { return false };
        let given = given.as_deref().or_else(|| self.history().get(*place));
        given == Some(prompt)
    }

    /// Asks again for the answer to a prompt for which [`is_retry`](Self::is_retry) is true. Works like
    /// [`continue_turn`](Self::continue_turn), but counts as a prompt.
    ///
    /// # Errors
    ///
    /// The errors of [`check_prompt`](Self::check_prompt) and [`continue_turn`](Self::continue_turn).
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

    /// Removes the prompt and everything recorded for it. A failed turn before it can be retried again.
    fn take_back(&mut self) {
        self.conversation.pop();
        self.asked = None;
        if let Some(failure) = &mut self.failure {
            self.asked = failure.asked.clone();
            // `record_broken` added the broken answer just before the prompt, so it is the last message
            // again.
            if std::mem::take(&mut failure.is_recorded) {
                self.conversation.pop();
            }
        }
    }
}
