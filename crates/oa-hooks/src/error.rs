use std::fmt;
use std::panic::Location;
use std::time::Duration;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// How a hook failed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// It returned an error.
    Failed,
    /// It panicked.
    Panicked,
    /// It took longer than its timeout.
    TimedOut,
}

/// A hook did not decide. What it was to guard must not go on as if it had agreed.
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    added: &'static Location<'static>,
    failure: Failure,
    point: &'static str,
}

#[derive(Debug)]
enum Failure {
    Failed(Source),
    Panicked(String),
    TimedOut(Duration),
}

impl Error {
    pub(crate) fn failed(point: &'static str, added: Added, error: HookError) -> Self {
        Self::new(point, added, Failure::Failed(error.source))
    }

    pub(crate) fn panicked(point: &'static str, added: Added, message: String) -> Self {
        Self::new(point, added, Failure::Panicked(message))
    }

    pub(crate) fn timed_out(point: &'static str, added: Added, limit: Duration) -> Self {
        Self::new(point, added, Failure::TimedOut(limit))
    }

    fn new(point: &'static str, added: Added, failure: Failure) -> Self {
        Self { inner: Box::new(Inner { added, failure, point }) }
    }

    /// Returns how the hook failed.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.inner.failure {
            Failure::Failed(_) => ErrorKind::Failed,
            Failure::Panicked(_) => ErrorKind::Panicked,
            Failure::TimedOut(_) => ErrorKind::TimedOut,
        }
    }

    /// Returns the name of the point at which the hook was asked, such as
    /// [`HOOK_PRE_TOOL_USE`](crate::HOOK_PRE_TOOL_USE).
    #[must_use]
    pub fn point(&self) -> &'static str {
        self.inner.point
    }

    /// Returns where in the program the hook was added.
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.inner.added
    }

    /// Returns the message of a panic.
    pub(crate) fn panic_message(&self) -> Option<&str> {
        match &self.inner.failure {
            Failure::Panicked(message) => Some(message),
            Failure::Failed(_) | Failure::TimedOut(_) => None,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { added, failure, point } = &*self.inner;
        f.debug_struct("Error")
            .field("point", point)
            .field("added", &format_args!("{added}"))
            .field("failure", failure)
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { added, failure, point } = &*self.inner;
        write!(f, "the {point} hook of {added} ")?;
        match failure {
            Failure::Failed(_) => f.write_str("failed"),
            Failure::Panicked(message) => write!(f, "panicked: {message}"),
            Failure::TimedOut(limit) => write!(f, "took longer than {limit:?}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.inner.failure {
            Failure::Failed(source) => Some(&**source),
            Failure::Panicked(_) | Failure::TimedOut(_) => None,
        }
    }
}

type Added = &'static Location<'static>;

/// Why a fallible hook cannot decide: any error or string, by `?` or `into()`.
///
/// It stays with hooks: because every error becomes one it is no `std::error::Error` itself, and leaves
/// dispatch as the source of an [`Error`].
pub struct HookError {
    source: Source,
}

impl HookError {
    /// Creates an error of these words, or around another error.
    #[must_use]
    pub fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: error.into() }
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for HookError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Debug for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HookError").field(&self.source).finish()
    }
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}
