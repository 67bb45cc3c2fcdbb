use std::fmt;

use oa_types::{Message, MessageRole};

/// The kind of an [`Error`]: how the machine was misused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A call was already answered.
    AlreadyAnswered,
    /// Something is in progress.
    Busy,
    /// The conversation holds what no server takes.
    InvalidHistory,
    /// A prompt that says nothing, or more than a user can say.
    InvalidPrompt,
    /// A snapshot contradicts itself.
    InvalidSnapshot,
    /// No further prompt is taken.
    MaxTurns,
    /// There is nothing to go on with.
    NothingToContinue,
    /// Calls have to be answered first.
    OpenCalls,
    /// No call has this id.
    UnknownCall,
    /// A snapshot has a form that this version does not know.
    UnsupportedVersion,
}

/// The machine was told something that makes no sense now; nothing has changed.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Says why a conversation that ends with `last` cannot be continued, and what to do instead.
    pub(crate) fn nothing_to_continue(last: Option<&Message>) -> Self {
        let message = match last {
            Some(last) if last.interrupted => {
                "there is nothing to continue: the last answer was interrupted and cannot be resumed; \
                 send a prompt instead, such as \"Go on.\""
            }
            Some(last) if last.role == MessageRole::Assistant => {
                "there is nothing to continue: the last message is an answer; send a prompt instead"
            }
            _ => "there is nothing to continue: nothing was said yet",
        };
        Self::new(ErrorKind::NothingToContinue, message)
    }

    /// Returns how the machine was misused.
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
