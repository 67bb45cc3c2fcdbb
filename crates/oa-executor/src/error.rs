use std::fmt;

/// The category of an error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An invalid option.
    Config,
    /// Cyclic dependencies, or a malformed event.
    InvalidInput,
}

/// An error from configuring the executor or parsing an event. Running a batch has no errors: a failed call has
/// a failed result.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<serde_json::Error>,
}

impl Error {
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Config, message: message.into(), source: None }
    }

    pub(crate) fn invalid_input(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::InvalidInput, message: message.into(), source: None }
    }

    pub(crate) fn unreadable(source: serde_json::Error) -> Self {
        let message = "not a tool event".to_owned();
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

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
