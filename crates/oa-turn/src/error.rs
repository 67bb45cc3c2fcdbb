use std::fmt;

use oa_types::{Message, MessageRole};

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call already has a result.
    AlreadyAnswered,
    /// A turn is in progress.
    Busy,
    /// The conversation holds content that no server accepts.
    InvalidHistory,
    /// The prompt is empty, or holds blocks that a user cannot send.
    InvalidPrompt,
    /// The snapshot is inconsistent.
    InvalidSnapshot,
    /// The limit of prompts is reached.
    MaxTurns,
    /// There is nothing to continue.
    NothingToContinue,
    /// Open calls have to be answered first.
    OpenCalls,
    /// No call has this id.
    UnknownCall,
    /// The snapshot has a format version that this version of the crate does not support.
    UnsupportedVersion,
}

/// An operation that is invalid in the current state. The state has not changed.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Creates the error for a conversation that ends with `last` and cannot be continued, with advice.
    pub(crate) fn nothing_to_continue(last: Option<&Message>) -> Self {
        let message = match last {
            Some(last) if last.interrupted => {
                "there is nothing to continue: the last answer was interrupted and cannot be resumed; \
                 send a prompt instead, such as \"Go on.\""
            }
            Some(last) if last.role == MessageRole::Assistant => {
                "there is nothing to continue: the last message is an answer; send a prompt instead"
            }
            Some(last) if last.role != MessageRole::System => {
                "there is nothing to continue yet: the answer is still being read, and has no call that waits for a \
                 result"
            }
            _ => "there is nothing to continue: the conversation is empty",
        };
        Self::new(ErrorKind::NothingToContinue, message)
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
