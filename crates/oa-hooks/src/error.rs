use std::fmt;
use std::panic::Location;
use std::time::Duration;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// The way a hook failed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// It returned an error.
    Failed,
    /// It panicked.
    Panicked,
    /// It timed out.
    TimedOut,
}

/// An error of a hook that could not decide. Treat it as a refusal, never as consent.
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

    /// Returns the way the hook failed.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.inner.failure {
            Failure::Failed(_) => ErrorKind::Failed,
            Failure::Panicked(_) => ErrorKind::Panicked,
            Failure::TimedOut(_) => ErrorKind::TimedOut,
        }
    }

    /// Returns the name of the hook point, such as [`HOOK_PRE_TOOL_USE`](crate::HOOK_PRE_TOOL_USE).
    #[must_use]
    pub fn point(&self) -> &'static str {
        self.inner.point
    }

    /// Returns the source location at which the hook was added.
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.inner.added
    }

    /// Returns the panic message, if the hook panicked.
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
        write!(f, "the {point} hook added at {added} ")?;
        match failure {
            Failure::Failed(_) => f.write_str("failed"),
            Failure::Panicked(message) => write!(f, "panicked: {message}"),
            Failure::TimedOut(limit) => write!(f, "timed out after {limit:?}"),
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

/// The error of a fallible hook, converted from any error or string by `?` or `into()`.
///
/// Because every error converts into it, it does not implement `std::error::Error` itself; dispatch returns it
/// as the source of an [`Error`].
pub struct HookError {
    source: Source,
}

impl HookError {
    /// Creates an error from a message or another error.
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
