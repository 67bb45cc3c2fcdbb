use std::ops::{Deref, DerefMut};

use oa_types::Message;

use super::Client;

/// Mutable access to a conversation, returned by [`Client::history_mut`].
#[derive(Debug)]
pub struct HistoryMut<'a> {
    client: &'a mut Client,
    messages: Vec<Message>,
}

impl Client {
    /// Returns the conversation for editing. It is repaired when the guard is dropped.
    ///
    /// A turn in progress is ended first. If anything changed, the messages are repaired:
    ///
    /// - System messages are merged into one at the start of history, which is sent after the
    ///   [`system_prompt`](crate::AgentOptionsBuilder::system_prompt). If it contains an image or audio, the next
    ///   request fails with kind `InvalidInput`.
    /// - Each call is followed by its result, under the call's name. Calls without a result get one that says
    ///   it is unknown whether they ran; results without a call are dropped.
    /// - Call ids are made unique: if several calls share an id, the last one keeps it.
    /// - Blank messages are dropped.
    ///
    /// A conversation may begin with the assistant. Most servers reject that, so a short user message is sent first,
    /// except to servers known to allow it.
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
        // Repair would answer open calls, so skip it if nothing changed.
        if self.messages != self.client.history() {
            self.client.set_history(std::mem::take(&mut self.messages));
        }
    }
}
