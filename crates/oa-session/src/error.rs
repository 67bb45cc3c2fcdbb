use std::path::Path;
use std::{fmt, io};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// What kept a store from doing what it was asked.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A session of this id is there already.
    AlreadyExists,
    /// Somebody else holds the store for longer than is waited.
    Busy,
    /// The store's thread is gone: open the store again.
    Closed,
    /// The session is not what the caller believes it to be: somebody else has written. Load it again.
    Conflict,
    /// What is stored cannot be read. Nothing is changed by reading it.
    Corrupt,
    /// What was given cannot be stored; nothing has changed.
    InvalidInput,
    /// The file system or the database failed.
    Io,
    /// It is larger than the store's [`Limits`](crate::Limits) allow; nothing has changed.
    Limit,
    /// It was written by a newer version, which alone may read and change it.
    NewerVersion,
    /// There is no session of this id.
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
    /// Creates an error of these words, lower case and without a full stop.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { inner: Box::new(Inner { kind, message: message.into(), source: None }) }
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    pub(crate) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("cannot read {}", path.display())).with_source(error)
    }

    pub(crate) fn unwritable(path: &Path, error: io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("cannot write {}", path.display())).with_source(error)
    }

    pub(crate) fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// Tells in which line of which file it is.
    pub(crate) fn at(self, path: &Path, line: u64) -> Self {
        self.located(format_args!("{}, line {line}", path.display()))
    }

    /// Puts before the words of the error where it was: a file, a line.
    #[must_use]
    pub fn located(mut self, place: impl fmt::Display) -> Self {
        self.inner.message = format!("{place}: {}", self.inner.message);
        self
    }

    /// Adds what is behind it. Sources are for reports: their types are not stable.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Returns what kept the store from it.
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
