//! Messages that enter a turn in progress.

use oa_types::Message;

use super::Turn;
use super::phase::{Phase, Rest};
use crate::error::{Error, ErrorKind};
use crate::options::SteerAfterEnd;

/// The maximum number of waiting messages.
const MOST: usize = 64;

impl Turn {
    /// Queues a user message. It enters history before the next request of the turn in progress, never between a call
    /// and its result; without a turn, before the first request of the next one. It passes the same review as prompts
    /// ([`Action::Submit`](crate::Action::Submit)) and does not count as a prompt.
    ///
    /// If the turn is about to end before the message has entered, it continues for one more request, unless a limit,
    /// an interrupt, a plan that ends the turn, inlined results, or [`SteerAfterEnd::Keep`] prevents that. The message
    /// then waits for the next turn. A failed or interrupted turn keeps the messages that have not entered, except one
    /// whose review has failed: it would fail every later turn, too.
    ///
    /// # Errors
    ///
    /// `InvalidPrompt` if it is not a valid prompt, or if 64 messages are already waiting.
    pub fn steer(&mut self, message: Message) -> Result<(), Error> {
        Self::check_steered(&message, self.steered.len())?;
        self.steered.push_back(message);
        Ok(())
    }

    /// Checks a message that is to wait behind this many others.
    pub(crate) fn check_steered(message: &Message, waiting: usize) -> Result<(), Error> {
        Self::check_message(message)?;
        if waiting >= MOST {
            let message = format!("{MOST} messages are already waiting for the next request");
            return Err(Error::new(ErrorKind::InvalidPrompt, message));
        }
        Ok(())
    }

    /// Returns the steered messages that have not entered history.
    #[must_use]
    pub fn steered(&self) -> impl ExactSizeIterator<Item = &Message> {
        self.steered.iter()
    }

    /// Takes the steered messages that have not entered history, in order, so that they never enter. One under review
    /// stays.
    pub fn take_steered(&mut self) -> Vec<Message> {
        let reviewed = usize::from(matches!(self.phase, Phase::Steering { .. }));
        self.steered.drain(reviewed.min(self.steered.len())..).collect()
    }

    /// Drops the steered message that was handed out by [`Action::Submit`](crate::Action::Submit). The turn continues
    /// without it. If the turn was about to end before the message, it ends.
    pub fn refuse_steered(&mut self) {
        if self.drop_steered() {
            self.go_on_without_steered();
        }
    }

    /// Removes the steered message that was handed out. Returns false if there is none.
    pub(super) fn drop_steered(&mut self) -> bool {
        let is_handed = matches!(self.phase, Phase::Steering { handed: true, .. });
        is_handed && self.steered.pop_front().is_some()
    }

    /// Adds the steered message that was handed out to history.
    pub(super) fn enter_steered(&mut self, words: Option<String>) -> Result<(), Error> {
        let Phase::Steering { handed: true, prompt, .. } = self.phase else { return Ok(()) };
        let Some(message) = self.steered.pop_front() else { return Ok(()) };
        let message = match words {
            Some(words) => super::prompt::with_words(&message, words),
            None => message,
        };
        if let Err(error) = Self::check_message(&message) {
            self.go_on_without_steered();
            return Err(error);
        }
        self.conversation.push(message);
        self.final_text = Box::default();
        // A failure does not remove the messages before this one, so a failed turn before the prompt is over.
        if prompt.is_some() {
            self.failure = None;
        }
        self.request(None);
        Ok(())
    }

    /// Continues a turn that is about to end, if a message has been steered into it.
    pub(super) fn goes_on_with_steered(&mut self) -> bool {
        let goes_on = !self.steered.is_empty()
            && self.options.steer_after_end == SteerAfterEnd::Continue
            && self.may_go_on();
        // An answer that awaits its review is reviewed first.
        if let (true, Phase::Ending { reason, .. }) = (goes_on, &self.phase) {
            let ended = Some(reason.clone());
            self.phase = Phase::Steering { handed: false, prompt: None, ended };
            return true;
        }
        false
    }

    /// Continues after a message that did not enter. If the last answer had no calls, there is nothing to ask for.
    fn go_on_without_steered(&mut self) {
        let Phase::Steering { prompt, ended, .. } = &mut self.phase else { return };
        let prompt = *prompt;
        match ended.take() {
            None => self.request(prompt),
            Some(reason) if self.steered.is_empty() => self.end(reason, Rest::Done),
            // The next message may still be accepted and keep the turn from ending.
            ended => self.phase = Phase::Steering { handed: false, prompt, ended },
        }
    }
}
