use std::fmt;

/// How the machine was misused.
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
    /// No further prompt is taken.
    MaxTurns,
    /// There is nothing to go on with.
    NothingToContinue,
    /// Calls have to be answered first.
    OpenCalls,
    /// No call has this id.
    UnknownCall,
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
