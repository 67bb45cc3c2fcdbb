use std::fmt;

/// What was wrong (feature `tokenizers`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A description of a tokenizer that cannot be read.
    InvalidTokenizer,
}

/// An error of a constructor in this crate (feature `tokenizers`).
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn invalid_tokenizer(source: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self {
            kind: ErrorKind::InvalidTokenizer,
            message: "not the description of a tokenizer".to_owned(),
            source: Some(source),
        }
    }

    /// Returns what was wrong.
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
    /// Returns what the tokenizer's library said; its type is not part of this crate's promise.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}
