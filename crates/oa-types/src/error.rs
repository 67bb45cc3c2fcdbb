use std::{error, fmt};

/// The category of an error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An invalid option, such as an address or a temperature.
    Config,
    /// An invalid argument, such as data that is not an image.
    InvalidInput,
}

/// An error from checking options or input, before anything runs.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error of kind `Config`.
    pub fn config(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Config, message: message.into(), source: None }
    }

    /// Creates an error of kind `InvalidInput`.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::InvalidInput, message: message.into(), source: None }
    }

    /// Creates an error of kind `InvalidInput` with its cause.
    pub fn unreadable(
        message: impl Into<String>,
        cause: impl Into<Box<dyn error::Error + Send + Sync>>,
    ) -> Self {
        Self { source: Some(cause.into()), ..Self::invalid_input(message) }
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
        self.source.as_deref().map(|source| source as _)
    }
}
