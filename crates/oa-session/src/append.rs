use oa_types::Message;

use crate::revision::Revision;
use crate::timestamp::Timestamp;

/// Messages to be written behind those that are there, all or none.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Append {
    /// The state that the caller knows: any other is a conflict.
    pub revision: Revision,
    /// The messages: whole turns, in which every call has its result.
    pub messages: Vec<Message>,
    /// The time.
    pub at: Timestamp,
    /// How many of the messages that are there stay; those behind go in the same step. `None`: all stay.
    pub keep: Option<usize>,
}

impl Append {
    /// Creates an append behind all that is there.
    #[must_use]
    pub fn new(revision: Revision, messages: Vec<Message>, at: Timestamp) -> Self {
        Self { revision, messages, at, keep: None }
    }

    /// Keeps only this many of the messages that are there.
    ///
    /// Like a rewind, it may not part a call from its result.
    #[must_use]
    pub fn keeping(mut self, messages: usize) -> Self {
        self.keep = Some(messages);
        self
    }
}
