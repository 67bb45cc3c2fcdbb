use std::error::Error as StdError;
use std::path::Path;
use std::{fmt, io};

use oa_types::Permanent;

/// The category of a cassette error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum CassetteErrorKind {
    /// The recording of a response ends early, and the client read on.
    Cut,
    /// The file is not a cassette, or has another version.
    Format,
    /// The file cannot be read or written.
    Io,
    /// A limit of cassettes was exceeded.
    Limit,
    /// No unused interaction matches the request. Clients do not retry it, because [`Permanent`] is among its
    /// sources.
    Miss,
    /// The file to replay does not exist.
    Missing,
    /// An invalid setting.
    Setting,
}

/// A cassette error. Its message is for people and may have several lines.
pub struct CassetteError(Box<Inner>);

struct Inner {
    kind: CassetteErrorKind,
    message: String,
    source: Option<io::Error>,
}

impl CassetteError {
    pub(super) fn new(kind: CassetteErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), source: None }))
    }

    pub(super) fn io(what: &str, path: &Path, source: io::Error) -> Self {
        let message = format!("cannot {what} the cassette {}", path.display());
        let mut error = Self::new(CassetteErrorKind::Io, message);
        error.0.source = Some(source);
        error
    }

    /// Returns the category of the error.
    #[must_use]
    pub fn kind(&self) -> CassetteErrorKind {
        self.0.kind
    }
}

impl fmt::Display for CassetteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for CassetteError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        static PERMANENT: Permanent = Permanent::new();
        match &self.0.source {
            Some(source) => Some(source),
            None => (self.0.kind == CassetteErrorKind::Miss).then_some(&PERMANENT as _),
        }
    }
}

impl fmt::Debug for CassetteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut this = f.debug_struct("CassetteError");
        this.field("message", &self.0.message).field("kind", &self.0.kind);
        if let Some(source) = &self.0.source {
            this.field("source", source);
        }
        this.finish()
    }
}
