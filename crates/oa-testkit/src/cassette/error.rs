use std::error::Error as StdError;
use std::path::Path;
use std::{fmt, io};

use oa_types::Permanent;

/// What went wrong with a cassette, for tests that act on it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum CassetteErrorKind {
    /// The recording of an answer ends before its end, and the client read on.
    Cut,
    /// The file is no cassette, or one of another version.
    Format,
    /// The file cannot be read or written.
    Io,
    /// There is more than a cassette holds.
    Limit,
    /// No recorded interaction that is left meets the request. Clients do not retry it: among its sources
    /// is [`Permanent`].
    Miss,
    /// There is no file to replay.
    Missing,
    /// A setting that cannot work.
    Setting,
}

/// An error of a cassette. Its text is for people: that of a miss has several lines.
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

    /// Returns what went wrong.
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
