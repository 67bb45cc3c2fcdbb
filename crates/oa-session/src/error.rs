use std::path::Path;
use std::{fmt, io};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// The category of an error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A session with this id already exists.
    AlreadyExists,
    /// The store was locked by someone else for longer than the timeout.
    Busy,
    /// The store's thread has failed: open the store again.
    Closed,
    /// The session is at a different revision, because someone else has written to it. Load it again.
    Conflict,
    /// Stored data is damaged. Reading never changes it.
    Corrupt,
    /// The input cannot be stored; nothing was changed.
    InvalidInput,
    /// The file system or the database failed.
    Io,
    /// The store's [`Limits`](crate::Limits) were exceeded; nothing was changed.
    Limit,
    /// The data was written by a newer version, which is needed to read and change it.
    NewerVersion,
    /// No session has this id.
    NotFound,
}

/// An error of a store.
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<Source>,
}

impl Error {
    /// Creates an error with this message, lower case and without a period.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { inner: Box::new(Inner { kind, message: message.into(), source: None }) }
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    pub(crate) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::failed(format!("cannot read {}", path.display()), error)
    }

    pub(crate) fn unwritable(path: &Path, error: io::Error) -> Self {
        Self::failed(format!("cannot write {}", path.display()), error)
    }

    /// Creates an error with its cause in the message too: many programs show only the message, and an operator has to
    /// know that the disk is full.
    pub(crate) fn failed(message: impl fmt::Display, error: io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("{message}: {error}")).with_source(error)
    }

    pub(crate) fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// Prefixes the message with a file and line.
    pub(crate) fn at(self, path: &Path, line: u64) -> Self {
        self.located(format_args!("{}, line {line}", path.display()))
    }

    /// Prefixes the message with a location, such as a file or line.
    #[must_use]
    pub fn located(mut self, place: impl fmt::Display) -> Self {
        self.inner.message = format!("{place}: {}", self.inner.message);
        self
    }

    /// Sets the source. The types of sources are not stable.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Returns the category of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, message, source } = &*self.inner;
        let mut error = f.debug_struct("Error");
        error.field("message", message).field("kind", kind);
        if let Some(source) = source {
            error.field("source", source);
        }
        error.finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}
