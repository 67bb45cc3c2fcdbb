use oa_types::Message;

use crate::revision::Revision;
use crate::timestamp::Timestamp;

/// An atomic append of messages to a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Append {
    /// The revision that the caller knows; any other is a conflict.
    pub revision: Revision,
    /// The messages: whole turns, in which every call has its result.
    pub messages: Vec<Message>,
    /// The current time.
    pub at: Timestamp,
    /// The number of existing messages to keep; the rest are removed in the same step. `None` keeps all.
    pub keep: Option<usize>,
}

impl Append {
    /// Creates an append after all existing messages.
    #[must_use]
    pub fn new(revision: Revision, messages: Vec<Message>, at: Timestamp) -> Self {
        Self { revision, messages, at, keep: None }
    }

    /// Keeps only this many of the existing messages.
    ///
    /// As with a rewind, a call must not be separated from its result.
    #[must_use]
    pub fn keeping(mut self, messages: usize) -> Self {
        self.keep = Some(messages);
        self
    }
}
