//! Prompts: which are taken, and how they enter the conversation.

use oa_types::{ContentBlock, Message, MessageRole, Outcome, TextBlock};

use super::Turn;
use super::failed::Asked;
use super::phase::Phase;
use crate::error::{Error, ErrorKind};

impl Turn {
    /// Checks whether a prompt would be taken if nothing were in progress.
    ///
    /// # Errors
    ///
    /// `InvalidPrompt` if it says nothing, or is no user's message of text and images; `InvalidHistory`, as
    /// [`check_history`](Self::check_history); `MaxTurns` if no further one is taken.
    pub fn check_prompt(&self, prompt: &Message) -> Result<(), Error> {
        let refuse = |why: &str| Err(Error::new(ErrorKind::InvalidPrompt, why));
        if prompt.role != MessageRole::User {
            return refuse("the prompt is no message of the user");
        }
        let mut is_blank = true;
        for block in &prompt.content {
            match block {
                ContentBlock::Image(_) => is_blank = false,
                ContentBlock::Text(block) => {
                    is_blank &= block.text.chars().all(char::is_whitespace);
                }
                _ => return refuse("the prompt holds more than text and images"),
            }
        }
        if is_blank {
            return refuse("the prompt is empty");
        }
        self.check_history()?;
        if let Some(max) = self.options.max_turns.filter(|max| self.turns >= *max) {
            let message = format!("the limit of {max} turns is reached");
            return Err(Error::new(ErrorKind::MaxTurns, message));
        }
        Ok(())
    }

    /// Takes a prompt. Calls that are still open are answered with "not run".
    ///
    /// # Errors
    ///
    /// `Busy` while a turn is in progress, and as [`check_prompt`](Self::check_prompt).
    pub fn submit(&mut self, prompt: Message) -> Result<(), Error> {
        self.must_be_idle()?;
        self.check_prompt(&prompt)?;
        self.enter(prompt, None);
        Ok(())
    }

    /// Takes a prompt that somebody is to look at first: [`Action::Submit`](crate::Action::Submit) hands it
    /// out, and [`accept_prompt`](Self::accept_prompt) or [`fail`](Self::fail) says what came of that. Until then the
    /// conversation stays as it is.
    ///
    /// The prompt of a turn that failed in the middle of its answer stands in history already, as it was let
    /// through then: it is asked again without being looked at.
    ///
    /// # Errors
    ///
    /// As [`submit`](Self::submit).
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

    /// Puts the prompt into history that [`prompt`](Self::prompt) has taken. With `words`, these stand in the
    /// place of its own, and its images stay. Without a prompt that waits for this nothing happens.
    ///
    /// # Errors
    ///
    /// As [`check_prompt`](Self::check_prompt); then the prompt is taken back.
    pub fn accept_prompt(&mut self, words: Option<String>) -> Result<(), Error> {
        let Phase::Prompting { prompt, rest, .. } = &mut self.phase else { return Ok(()) };
        let (prompt, rest) = (Message::clone(prompt), *rest);
        self.phase = Phase::Idle { rest };
        let Some(words) = words else {
            self.enter(prompt, None);
            return Ok(());
        };
        let mut changed = prompt.clone();
        changed.content.retain(|block| matches!(block, ContentBlock::Image(_)));
        changed.content.insert(0, TextBlock::new(words).into());
        self.check_prompt(&changed)?;
        let given = (changed != prompt).then_some(prompt);
        self.enter(changed, given);
        Ok(())
    }

    /// Puts a prompt into history and begins its turn. `given`: as the caller gave it, if that differs.
    fn enter(&mut self, prompt: Message, given: Option<Message>) {
        self.answer_open_calls("not run: the user went on without it", Outcome::NotRun);
        self.record_broken();
        let place = self.history().len();
        self.asked = Some(Asked { place, given: given.map(Box::new) });
        self.conversation.push(prompt);
        self.begin(Some(place));
        self.turns = self.turns.saturating_add(1);
    }
}
