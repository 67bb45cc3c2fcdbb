use std::ops::{Deref, DerefMut};

use oa_types::Message;

use super::Client;

/// A conversation to be changed: what [`Client::history_mut`] returns.
#[derive(Debug)]
pub struct HistoryMut<'a> {
    client: &'a mut Client,
    messages: Vec<Message>,
}

impl<'a> HistoryMut<'a> {
    pub(super) fn of(client: &'a mut Client) -> Self {
        Self { messages: client.history().to_vec(), client }
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
