//! Prompts: their validation, and their entry into the conversation.

use oa_types::{ContentBlock, Message, MessageRole, Outcome, TextBlock};

use super::Turn;
use super::failed::SubmittedPrompt;
use super::phase::Phase;
use crate::error::{Error, ErrorKind};

impl Turn {
    /// Checks that a prompt would be accepted if no turn were in progress.
    ///
    /// # Errors
    ///
    /// `InvalidPrompt` if it is empty, or not a user's message of text and images; `InvalidHistory`, as
    /// [`check_history`](Self::check_history); `MaxTurns` if the limit of prompts is reached.
    pub fn check_prompt(&self, prompt: &Message) -> Result<(), Error> {
        Self::check_message(prompt)?;
        self.check_history()?;
        if let Some(max) = self.options.max_turns.filter(|max| self.turns >= *max) {
            let message = format!("the limit of {max} turns has been reached");
            return Err(Error::new(ErrorKind::MaxTurns, message));
        }
        Ok(())
    }

    /// Checks that a message could be a prompt: a user's message of text, images or audio that is not blank.
    ///
    /// # Errors
    ///
    /// `InvalidPrompt` if it could not.
    pub fn check_message(prompt: &Message) -> Result<(), Error> {
        let refuse = |why: &str| Err(Error::new(ErrorKind::InvalidPrompt, why));
        if prompt.role != MessageRole::User {
            return refuse("the prompt must be a user message");
        }
        let mut is_blank = true;
        for block in &prompt.content {
            match block {
                block if block.is_media() => is_blank = false,
                ContentBlock::Text(block) => {
                    is_blank &= block.text.chars().all(char::is_whitespace);
                }
                _ => return refuse("the prompt may contain only text, images and audio"),
            }
        }
        if is_blank {
            return refuse("the prompt is empty");
        }
        Ok(())
    }

    /// Adds a prompt and begins its turn. Open calls are answered with "not run".
    ///
    /// # Errors
    ///
    /// `Busy` while a turn is in progress, and the errors of [`check_prompt`](Self::check_prompt).
    pub fn submit(&mut self, prompt: Message) -> Result<(), Error> {
        self.must_be_idle()?;
        self.check_prompt(&prompt)?;
        self.enter(prompt, None);
        Ok(())
    }

    /// Submits a prompt for review before it enters the conversation: [`Action::Submit`](crate::Action::Submit) hands
    /// it to the driver, which calls [`accept_prompt`](Self::accept_prompt) or [`fail`](Self::fail). Until then, the
    /// conversation does not change.
    ///
    /// If a turn failed in the middle of its answer, its prompt was accepted earlier and is still in history. The same
    /// prompt is then sent again without a review.
    ///
    /// # Errors
    ///
    /// The errors of [`submit`](Self::submit).
    pub fn prompt(&mut self, prompt: Message) -> Result<(), Error> {
        self.must_be_idle()?;
        if self.is_retry(&prompt) {
            return self.retry(&prompt);
        }
        self.check_prompt(&prompt)?;
        if let Phase::Idle { rest } = self.phase {
            self.phase = Phase::Prompting { prompt: Box::new(prompt), handed: false, rest };
        }
        Ok(())
    }

    /// Adds the prompt that was submitted by [`prompt`](Self::prompt) to history and begins its turn, or adds the
    /// [steered](Self::steer) message that was handed out. `words` replace its text; images stay. Does nothing if
    /// neither awaits review.
    ///
    /// # Errors
    ///
    /// The errors of [`check_prompt`](Self::check_prompt). The message is then discarded.
    pub fn accept_prompt(&mut self, words: Option<String>) -> Result<(), Error> {
        let Phase::Prompting { prompt, rest, .. } = &self.phase else {
            return self.enter_steered(words);
        };
        let (prompt, rest) = (Message::clone(prompt), *rest);
        // Idle first: if the replaced text is invalid, no turn has begun, and calls that waited still wait.
        self.phase = Phase::Idle { rest };
        let Some(words) = words else {
            self.enter(prompt, None);
            return Ok(());
        };
        let changed = with_words(&prompt, words);
        self.check_prompt(&changed)?;
        let given = (changed != prompt).then_some(prompt);
        self.enter(changed, given);
        Ok(())
    }

    /// Adds a prompt to history and begins its turn. `given` is the prompt as the caller gave it, if that differs.
    fn enter(&mut self, prompt: Message, given: Option<Message>) {
        // Results, then the broken answer, then the prompt: `take_back` removes the last two from the end.
        self.answer_open_calls("not run: the user moved on without it", Outcome::NotRun);
        self.record_broken();
        let place = self.history().len();
        self.asked = Some(SubmittedPrompt { place, given: given.map(Box::new) });
        self.conversation.push(prompt);
        self.begin(Some(place));
        self.turns = self.turns.saturating_add(1);
    }
}

/// Returns the message with other text; images and audio stay.
pub(super) fn with_words(message: &Message, words: String) -> Message {
    let mut changed = message.clone();
    changed.content.retain(ContentBlock::is_media);
    changed.content.insert(0, TextBlock::new(words).into());
    changed
}
