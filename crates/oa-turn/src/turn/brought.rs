//! Conversations set by the caller.

use oa_types::{ContentBlock, Message, MessageRole};

use super::Turn;
use super::phase::Phase;
use crate::error::{Error, ErrorKind};
use crate::repair::repair;

impl Turn {
    /// Replaces the conversation with these messages, made valid by [`repair`]. Results that await review are reviewed
    /// before the next request, if they are still there.
    ///
    /// # Errors
    ///
    /// `Busy` while a turn is in progress.
    pub fn set_history(&mut self, messages: Vec<Message>) -> Result<(), Error> {
        self.must_be_idle()?;
        let messages = repair(messages);
        self.round = self.unreviewed_in(&messages);
        self.conversation.set(messages);
        self.phase = Phase::IDLE;
        self.forget_failure();
        Ok(())
    }

    /// Checks the conversation for content that can neither be sent nor repaired without loss. No turn begins while it
    /// is there.
    ///
    /// # Errors
    ///
    /// `InvalidHistory` if a system message contains an image.
    pub fn check_history(&self) -> Result<(), Error> {
        // There is one system message at most, and it stands first.
        let first = self.history().first().filter(|first| first.role == MessageRole::System);
        let is_image = |block: &ContentBlock| matches!(block, ContentBlock::Image(_));
        if first.is_some_and(|first| first.content.iter().any(is_image)) {
            let message = "the system message contains an image: only user messages can contain \
                           images";
            return Err(Error::new(ErrorKind::InvalidHistory, message));
        }
        Ok(())
    }
}
