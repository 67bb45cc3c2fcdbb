use std::collections::VecDeque;

use oa_types::{History, Message};

/// The messages, and a number for each that changes when the message does.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: History,
    revisions: Vec<u64>,
    next_revision: u64,
}

impl Conversation {
    pub(crate) fn push(&mut self, message: Message) {
        self.insert(self.messages.len(), message);
    }

    pub(crate) fn pop(&mut self) {
        self.messages.make_mut().pop();
        self.revisions.pop();
    }

    pub(crate) fn insert(&mut self, place: usize, message: Message) {
        let revision = self.revision();
        self.messages.make_mut().insert(place, message);
        self.revisions.insert(place, revision);
    }

    pub(crate) fn replace(&mut self, place: usize, message: Message) {
        self.revisions[place] = self.revision();
        self.messages.make_mut()[place] = message;
    }

    /// Takes other messages. Those that stood here before, in the same order, keep their numbers.
    pub(crate) fn set(&mut self, messages: Vec<Message>) {
        let mut old: VecDeque<(&Message, u64)> =
            self.messages.iter().zip(self.revisions.iter().copied()).collect();
        let mut next = self.next_revision;
        let revisions = messages.iter().map(|message| {
            if let Some(place) = old.iter().position(|(old, _)| *old == message) {
                old.drain(..place);
                if let Some((_, revision)) = old.pop_front() {
                    return revision;
                }
            }
            next += 1;
            next
        });
        self.revisions = revisions.collect();
        self.next_revision = next;
        self.messages = messages.into();
    }

    pub(crate) fn messages(&self) -> &History {
        &self.messages
    }

    pub(crate) fn revisions(&self) -> &[u64] {
        &self.revisions
    }

    fn revision(&mut self) -> u64 {
        self.next_revision += 1;
        self.next_revision
    }
}
