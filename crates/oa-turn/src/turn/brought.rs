//! Conversations supplied by the caller.

use oa_types::{Message, MessageRole};

use super::Turn;
use super::phase::Phase;
use crate::error::{Error, ErrorKind};
use crate::repair::repair;

impl Turn {
    /// Returns the revision of the message that changed last, even if it was removed.
    #[must_use]
    pub fn last_revision(&self) -> u64 {
        self.conversation.last_revision()
    }

    /// Replaces the conversation with these messages, made valid by [`repair`]. Results that await review are reviewed
    /// before the next request, if these messages contain them.
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

    /// Removes the messages with these [revisions](Self::revisions), such as rejected answers and the replies to them,
    /// and repairs the rest as [`set_history`](Self::set_history) does. Unlike there, a failed turn can still be
    /// [retried](Self::is_retry) if its prompt stays.
    ///
    /// # Errors
    ///
    /// `Busy` while a turn is in progress.
    pub fn remove_messages(&mut self, revisions: &[u64]) -> Result<(), Error> {
        self.must_be_idle()?;
        let place = self.asked.as_ref().map(|asked| asked.place);
        // The prompt stays retriable only if nothing up to it changed: its index is then still right.
        // `set_history` forgets the failure, so both are put aside here.
        let prompt = place.and_then(|place| self.revisions().get(..=place).map(<[u64]>::to_vec));
        let failed = (self.asked.take(), self.failure.take());
        let history = self.history().iter().zip(self.revisions());
        let kept = history.filter(|(_, revision)| !revisions.contains(revision));
        let kept = kept.map(|(message, _)| message.clone()).collect();
        self.set_history(kept)?;
        if prompt.is_some_and(|prompt| self.revisions().starts_with(&prompt)) {
            (self.asked, self.failure) = failed;
        }
        Ok(())
    }

    /// Checks the conversation for content that can neither be sent nor repaired without loss. While it contains any,
    /// no turn can begin.
    ///
    /// # Errors
    ///
    /// `InvalidHistory` if a system message contains an image or audio.
    pub fn check_history(&self) -> Result<(), Error> {
        // There is one system message at most, and it stands first.
        let first = self.history().first().filter(|first| first.role == MessageRole::System);
        let media = first.and_then(|first| first.content.iter().find(|block| block.is_media()));
        if let Some(media) = media {
            let is_image = media.as_image().is_some();
            let (found, all) = if is_image { ("an image", "images") } else { ("audio", "audio") };
            let message = format!(
                "the system message contains {found}: only user messages can contain {all}"
            );
            return Err(Error::new(ErrorKind::InvalidHistory, message));
        }
        Ok(())
    }
}
