use std::{error, fmt};

/// An error of structured output.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Error {
    /// The kind.
    pub kind: ErrorKind,
    /// The message. It may quote the model's output.
    pub message: String,
    /// The model's last answer, truncated to 2,000 characters, if there was one.
    pub model_output: Option<String>,
}

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The requested output is invalid: the schema or the output tool cannot be sent.
    Config,
    /// The turn was interrupted before a valid answer.
    Interrupted,
    /// No answer matched the format.
    Output,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), model_output: None }
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for Error {}
