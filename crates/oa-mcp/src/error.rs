use std::fmt;

use oa_mcp_data::RequiredPages;

/// The category of an error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The connection has ended: the server died or closed it, or it was closed on this side.
    Closed,
    /// The configuration cannot be used.
    Config,
    /// The server could not be started or reached, or did not complete the handshake.
    Connect,
    /// A bound of [`Limits`](crate::Limits) was exceeded.
    Limit,
    /// The server's answer is not valid.
    Protocol,
    /// The server asked for a model's answer before its result, and was refused.
    Refused,
    /// The server answered with an error.
    Rejected,
    /// The server did not answer in time.
    Timeout,
}

/// An error from a connection to a server.
///
/// Server text in the message is bounded, and secrets from the server's configuration are masked.
#[derive(Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    code: Option<i64>,
    status: Option<u16>,
    /// The server did not accept the request, so it may be sent again.
    is_untaken: bool,
    /// The pages that the user has to visit before the request can be answered.
    pages: Option<RequiredPages>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        let (code, status, is_untaken, pages) = (None, None, false, None);
        Self { inner: Box::new(Inner { kind, message, code, status, is_untaken, pages }) }
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    pub(crate) fn too_long(most: usize) -> Self {
        Self::limit(format!("a message from the server is longer than {most} bytes"))
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol, message)
    }

    pub(crate) fn rejected(code: Option<i64>, message: impl Into<String>) -> Self {
        let mut this = Self::new(ErrorKind::Rejected, message);
        this.inner.code = code;
        this
    }

    #[cfg(feature = "http")]
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.inner.status = Some(status);
        self
    }

    pub(crate) fn untaken(mut self, is_untaken: bool) -> Self {
        self.inner.is_untaken = is_untaken;
        self
    }

    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.inner.kind = kind;
        self
    }

    pub(crate) fn with_pages(mut self, pages: Option<RequiredPages>) -> Self {
        self.inner.pages = pages;
        self
    }

    /// Adds to the message.
    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.inner.message = format!("{}; {note}", self.inner.message);
        self
    }

    /// Prefixes the message.
    pub(crate) fn of(mut self, place: impl fmt::Display) -> Self {
        self.inner.message = format!("{place}: {}", self.inner.message);
        self
    }

    pub(crate) fn is_untaken(&self) -> bool {
        self.inner.is_untaken
    }

    pub(crate) fn pages(&self) -> Option<&RequiredPages> {
        self.inner.pages.as_ref()
    }

    /// Returns the category.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Returns the error code, if the server answered with a protocol error.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        self.inner.code
    }

    /// Returns the HTTP status of the server's answer, if that caused the error.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.inner.status
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl std::error::Error for Error {}
