use std::collections::HashSet;
use std::ops::Range;

use oa_types::{History, Message};
use serde::{Deserialize, Serialize};

/// The number of earlier messages searched for each new message, so that replacing a long conversation takes linear
/// time, not quadratic.
const REACH: usize = 64;

/// The same limit for shortening a conversation, which is rare and affects only as many messages as fit into a model's
/// context.
const FAR_REACH: usize = 4_096;

/// The messages and their revisions. A revision changes when its message does.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
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

    pub(crate) fn remove(&mut self, places: Range<usize>) {
        if !places.is_empty() {
            self.messages.make_mut().drain(places.clone());
            self.revisions.drain(places);
        }
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

    /// Replaces the messages. Messages that were here before, in the same order, keep their revisions. If many were
    /// removed and others changed, some unchanged messages may get new revisions.
    pub(crate) fn set(&mut self, messages: Vec<Message>) {
        self.set_within(messages, 0, REACH);
    }

    /// Replaces the messages with fewer of them; the last `kept` stay. Unlike [`set`](Self::set), it recognizes
    /// unchanged messages even after many removed ones.
    pub(crate) fn shorten_to(&mut self, messages: Vec<Message>, kept: usize) {
        self.set_within(messages, kept, FAR_REACH);
    }

    /// Replaces the messages with those of an earlier state. Revisions used since then are not used again.
    pub(crate) fn restore(&mut self, earlier: Self) {
        let next_revision = self.next_revision.max(earlier.next_revision);
        *self = Self { next_revision, ..earlier };
    }

    fn set_within(&mut self, messages: Vec<Message>, kept: usize, reach: usize) {
        // The common start and the common end keep their revisions. In between, a message takes the revision
        // of the first equal one among the old messages that are left. For example:
        //     old: a1 b2 c3 d4 e5    new: a c x e    revisions: 1 3 6 5
        let same = |(old, new): &(&Message, &Message)| old == new;
        // The start ends before what was kept: a summary may read like the first of it.
        let old = &self.messages[..self.messages.len() - kept];
        let start = old.iter().zip(&messages[..messages.len() - kept]).take_while(same).count();
        let (old, new) = (&self.messages[start..], &messages[start..]);
        let end = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
        let mut old = &old[..old.len() - end];
        let mut revisions = self.revisions[..start].to_vec();
        for message in &new[..new.len() - end] {
            match old.iter().take(reach).position(|old| old == message) {
                Some(place) => {
                    // The index of `old[0]` among all old messages.
                    let gone = self.messages.len() - end - old.len();
                    revisions.push(self.revisions[gone + place]);
                    // What was passed over cannot match later, so the order stays and no revision is used
                    // twice.
                    old = &old[place + 1..];
                }
                None => {
                    self.next_revision += 1;
                    revisions.push(self.next_revision);
                }
            }
        }
        revisions.extend_from_slice(&self.revisions[self.revisions.len() - end..]);
        self.revisions = revisions;
        self.messages = messages.into();
    }

    /// Returns the revision of the message that changed last.
    pub(crate) fn last_revision(&self) -> u64 {
        self.next_revision
    }

    pub(crate) fn messages(&self) -> &History {
        &self.messages
    }

    pub(crate) fn revisions(&self) -> &[u64] {
        &self.revisions
    }

    /// Checks that each message has a unique revision, and that unused revisions remain.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let numbers: HashSet<u64> = self.revisions.iter().copied().collect();
        let is_known = |number: &u64| (1..=self.next_revision).contains(number);
        if self.revisions.len() != self.messages.len()
            || numbers.len() != self.messages.len()
            || !numbers.iter().all(is_known)
            || self.next_revision > u64::MAX / 2
        {
            return Err("the revisions do not match the messages");
        }
        Ok(())
    }

    fn revision(&mut self) -> u64 {
        // This cannot overflow: `check` rejects a snapshot in which half of all numbers are used.
        self.next_revision += 1;
        self.next_revision
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn conversation(words: &[u8]) -> Vec<Message> {
        words.iter().map(|word| Message::user(word.to_string())).collect()
    }

    proptest! {
        #[test]
        fn untouched_messages_keep_their_revisions(
            before in vec(any::<u8>(), 0..200),
            after in vec(any::<u8>(), 0..20),
            cut in any::<prop::sample::Index>(),
            gone in 0..200_usize,
        ) {
            let mut this = Conversation::default();
            this.set(conversation(&before));
            let first: Vec<u64> = this.revisions().to_vec();
            let start = cut.index(before.len() + 1);
            let end = before.len().min(start + gone);
            let words = [&before[..start], &after, &before[end..]].concat();
            this.set(conversation(&words));
            prop_assert_eq!(this.revisions().len(), words.len());
            prop_assert_eq!(&this.revisions()[..start], &first[..start]);
            let rest = before.len() - end;
            // What begins alike is taken for the same first, also where that is chance.
            let alike = before.iter().zip(&words).take_while(|(old, new)| old == new).count();
            let rest = rest.min(words.len() - alike).min(before.len() - alike);
            prop_assert_eq!(
                &this.revisions()[words.len() - rest..],
                &first[before.len() - rest..]
            );
            prop_assert!(this.revisions()[..start].iter().all(|number| *number > 0));
            let mut numbers = this.revisions().to_vec();
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers.len(), words.len());
            for (number, word) in this.revisions().iter().zip(&words) {
                if let Some(place) = first.iter().position(|known| known == number) {
                    prop_assert_eq!(before[place], *word);
                }
            }
        }
    }

    #[test]
    fn comparing_histories_is_not_quadratic() {
        let mut this = Conversation::default();
        let messages = |text: &str| (0..20_000).map(|_| Message::user(text)).collect::<Vec<_>>();
        this.set(messages("before"));
        // A comparison with each other one would be 400 million.
        this.set(messages("after"));
        assert_eq!(this.revisions()[0], 20_001);
        assert_eq!(this.revisions().last(), Some(&40_000));
    }
}
