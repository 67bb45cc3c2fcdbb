use std::ops::{Deref, DerefMut};

use oa_types::Message;

use super::Client;

/// A conversation to be changed: what [`Client::history_mut`] returns.
#[derive(Debug)]
pub struct HistoryMut<'a> {
    client: &'a mut Client,
    messages: Vec<Message>,
}

impl Client {
    /// Lends the conversation to be changed; when the guard is dropped it is made valid again.
    ///
    /// A turn in progress is ended first. If anything was changed, the messages are repaired:
    ///
    /// - System messages become one, first in history; it is sent behind the
    ///   [`system_prompt`](crate::AgentOptionsBuilder::system_prompt). One that holds an image is refused: the
    ///   next request is an error of kind `InvalidInput`.
    /// - Each call is followed by its result, under the call's name. Calls without a result get one that says
    ///   that it is not known whether they ran; results without a call are dropped.
    /// - Calls have unique ids: where several share one, the last keeps it.
    /// - Messages that say nothing, or nothing but white space, are dropped.
    ///
    /// A conversation may begin with the assistant. Most servers refuse that, so a short user message is sent
    /// before it, except to those that are known to allow it.
    pub fn history_mut(&mut self) -> HistoryMut<'_> {
        self.driver.abandon();
        HistoryMut { messages: self.history().to_vec(), client: self }
    }
}

impl Deref for HistoryMut<'_> {
    type Target = Vec<Message>;

    fn deref(&self) -> &Self::Target {
        &self.messages
    }
}

impl DerefMut for HistoryMut<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.messages
    }
}

impl Drop for HistoryMut<'_> {
    fn drop(&mut self) {
        // Who only looked has changed nothing: calls that are open stay so.
        if self.messages != self.client.history() {
            self.client.set_history(std::mem::take(&mut self.messages));
        }
    }
}
