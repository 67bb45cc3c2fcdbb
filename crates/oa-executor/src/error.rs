use std::fmt;

/// What went wrong, for callers who act on it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option that cannot act.
    Config,
    /// Dependencies that go in a circle, or something that is no event.
    InvalidInput,
}

/// An error of setting the executor up, or of reading an event. Running a batch has none: what goes
/// wrong with a call is that call's result.
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
        let message = "not an event of a tool".to_owned();
        Self { kind: ErrorKind::InvalidInput, message, source: Some(source) }
    }

    /// Returns what went wrong.
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
