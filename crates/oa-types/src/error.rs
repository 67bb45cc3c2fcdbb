use std::{error, fmt, io};

/// The category of an error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An invalid setting (model, base URL, temperature).
    Config,
    /// Content that cannot be sent, such as an image.
    InvalidInput,
}

/// An error from a constructor in this crate.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<io::Error>,
}

impl Error {
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Config, message: message.into(), source: None }
    }

    pub(crate) fn invalid_input(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::InvalidInput, message: message.into(), source: None }
    }

    pub(crate) fn unreadable(message: String, source: io::Error) -> Self {
        Self { kind: ErrorKind::InvalidInput, message, source: Some(source) }
    }

    /// Returns the category of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut error = f.debug_struct("Error");
        error.field("message", &self.message).field("kind", &self.kind);
        if let Some(source) = &self.source {
            error.field("source", source);
        }
        error.finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
