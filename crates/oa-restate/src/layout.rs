//! The layout of a session in the engine's state: its keys, and the writes of a finished turn.
//!
//! Each finished turn is one value that is written once. A single value with the whole history would be rewritten by
//! each turn, and would reach the engine's limit of 32 MiB.

use std::{error, fmt};

use oa_types::{Message, json_size};
use serde::{Deserialize, Serialize};

/// The version of the layout. A worker rejects sessions of a newer version.
pub(crate) const SCHEMA: u32 = 1;

/// The key of the [`Head`].
pub(crate) const HEAD: &str = "head";
/// The key of the turn in progress, for readers.
pub(crate) const TURN: &str = "turn";
/// The key of the calls that wait for a decision or a result.
pub(crate) const PENDING: &str = "pending";
/// The key of the turn in progress, for interrupts and approvals: [`Running`].
pub(crate) const RUNNING: &str = "running";
/// The key of steered messages that have not entered a turn.
pub(crate) const STEERED: &str = "steered";

/// The head of a session, which names its parts.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Head {
    pub(crate) schema: u32,
    /// The agent of the session; `None` for the worker's main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// The agents that the session's agent runs within, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) within: Vec<String>,
    /// The number of the first value of turns.
    pub(crate) first: u64,
    /// The number of the next value of turns.
    pub(crate) next: u64,
    /// The number of prompts so far, including those before the session was cleared: the number of the last turn.
    pub(crate) prompts: u64,
    /// The number of prompts since the session was cleared.
    pub(crate) turns: u64,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// The turn in progress.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Running {
    /// The invocation that ends when the turn is interrupted.
    pub(crate) watch: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) within: Vec<String>,
}

/// The error for a session with a newer layout version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TooNew(u32);

impl fmt::Display for TooNew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(found) = self;
        write!(
            f,
            "the session has layout version {found}, but this worker supports up to {SCHEMA}: use a newer worker"
        )
    }
}

impl error::Error for TooNew {}

/// A change of the state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    Clear(String),
    Head(Head),
    Turn(String, Vec<Message>),
}

impl Head {
    /// Checks that this worker can read the session.
    pub(crate) fn check(&self) -> Result<(), TooNew> {
        if self.schema > SCHEMA { Err(TooNew(self.schema)) } else { Ok(()) }
    }

    /// Returns the keys of the finished turns, in order.
    pub(crate) fn turn_keys(&self) -> impl Iterator<Item = String> + use<> {
        (self.first..self.next).map(turn_key)
    }

    /// Returns the writes after a turn. `before` is the stored conversation, `after` its replacement. A turn that only
    /// adds messages writes these. One that has shortened the conversation writes all of it as one new value. The head
    /// is written after the values that it names, and values that it no longer names are removed last, so that a reader
    /// at any moment finds all values that the head names.
    pub(crate) fn save(mut self, before: &[Message], after: &[Message]) -> Vec<Write> {
        self.schema = SCHEMA;
        let added = after.strip_prefix(before);
        // Listed before `first` changes: these are the values that the old head names.
        let stale: Vec<String> = match added {
            Some(_) => Vec::new(),
            None => self.turn_keys().collect(),
        };
        let written = added.unwrap_or(after);
        let mut writes = Vec::new();
        // The new value has a number of its own, so what the old head names stays until the new head is
        // written.
        if added.is_none() {
            (self.first, self.messages, self.bytes) = (self.next, 0, 0);
        }
        if !written.is_empty() {
            writes.push(Write::Turn(turn_key(self.next), written.to_vec()));
            self.next += 1;
            self.messages += written.len() as u64;
            self.bytes += json_size(written) as u64;
        }
        writes.push(Write::Head(self));
        writes.extend(stale.into_iter().map(Write::Clear));
        writes
    }

    /// Returns the writes after a turn whose conversation is in a store: the head with the new counts, and the removal
    /// of messages that have moved from here to the store.
    pub(crate) fn save_counts(mut self, messages: usize, bytes: usize) -> Vec<Write> {
        self.schema = SCHEMA;
        let stale: Vec<String> = self.turn_keys().collect();
        self.first = self.next;
        (self.messages, self.bytes) = (messages as u64, bytes as u64);
        let head = [Write::Head(self)];
        head.into_iter().chain(stale.into_iter().map(Write::Clear)).collect()
    }
}

fn turn_key(number: u64) -> String {
    format!("t/{number:06}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The engine's state.
    #[derive(Clone, Default)]
    struct State {
        head: Head,
        turns: BTreeMap<String, Vec<Message>>,
        /// Keys that have been written.
        written: BTreeMap<String, u32>,
    }

    impl State {
        fn apply(&mut self, write: Write) {
            match write {
                Write::Clear(key) => drop(self.turns.remove(&key)),
                Write::Head(head) => self.head = head,
                Write::Turn(key, messages) => {
                    *self.written.entry(key.clone()).or_default() += 1;
                    self.turns.insert(key, messages);
                }
            }
        }

        fn read(&self) -> Option<Vec<Message>> {
            let turns = self.head.turn_keys().map(|key| self.turns.get(&key).cloned());
            turns.collect::<Option<Vec<_>>>().map(|turns| turns.concat())
        }
    }

    proptest! {
        /// The state holds the conversation after each turn, whether it added to it or shortened it; a reader between
        /// two writes finds the conversation before or after; each value is written once; the head counts what is
        /// there.
        #[test]
        fn saved_turns_are_read_back(turns in vec((any::<bool>(), vec("[a-z]{0,8}", 0..4)), 0..12)) {
            let mut state = State::default();
            let mut conversation: Vec<Message> = Vec::new();
            for (shortens, words) in turns {
                let before = conversation.clone();
                if shortens {
                    conversation.truncate(conversation.len() / 2);
                    conversation.insert(0, Message::user("summary"));
                }
                conversation.extend(words.into_iter().map(Message::user));
                for write in state.head.clone().save(&before, &conversation) {
                    state.apply(write);
                    let read = state.read().expect("all that the head names is there");
                    prop_assert!(read == before || read == conversation);
                }
                prop_assert_eq!(state.read(), Some(conversation.clone()));
                prop_assert_eq!(state.head.messages, conversation.len() as u64);
                let bytes: usize = state.turns.values().map(json_size).sum();
                prop_assert_eq!(state.head.bytes, bytes as u64);
                prop_assert_eq!(state.turns.len() as u64, state.head.next - state.head.first);
            }
            prop_assert!(state.written.values().all(|&times| times == 1));
        }
    }

    #[test]
    fn newer_layouts_are_refused() {
        let head = Head { schema: SCHEMA + 1, ..Head::default() };
        let error = head.check().unwrap_err().to_string();
        assert_eq!(
            error,
            "the session has layout version 2, but this worker supports up to 1: use a newer worker"
        );
        assert!(Head::default().check().is_ok());
    }
}
