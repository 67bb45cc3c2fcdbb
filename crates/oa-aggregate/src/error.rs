use std::fmt;

use oa_types::wire::ServerError;
use oa_types::{held, mask_secret};

/// How much of an unreadable payload is kept, in bytes.
const EXCERPT: usize = 200;

/// Which limit was passed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The answer takes more memory than [`Limits::held_bytes`](crate::Limits::held_bytes).
    AnswerTooLarge,
    /// The arguments of one call are longer than [`Limits::argument_bytes`](crate::Limits::argument_bytes).
    ArgumentsTooLong,
    /// The answer has more calls than [`Limits::calls`](crate::Limits::calls).
    TooManyCalls,
    /// Text and thinking are longer than [`Limits::text_bytes`](crate::Limits::text_bytes).
    TextTooLong,
}

/// The answer passed a limit. What came before is kept; what is pushed from then on is refused.
#[derive(Clone, Copy, Debug)]
pub struct Error {
    kind: ErrorKind,
    limit: usize,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, limit: usize) -> Self {
        Self { kind, limit }
    }

    /// Returns which limit was passed.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, limit } = self;
        match kind {
            ErrorKind::AnswerTooLarge => {
                write!(f, "the answer takes more memory than the limit of {limit} bytes")
            }
            ErrorKind::ArgumentsTooLong => {
                write!(f, "the arguments of a tool call are longer than the limit of {limit} bytes")
            }
            ErrorKind::TooManyCalls => {
                write!(f, "the answer has more tool calls than the limit of {limit}")
            }
            ErrorKind::TextTooLong => {
                write!(f, "the text of the answer is longer than the limit of {limit} bytes")
            }
        }
    }
}

impl std::error::Error for Error {}

/// A payload that is not JSON.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unreadable {
    excerpt: Box<str>,
    position: usize,
}

impl Unreadable {
    pub(crate) fn new(text: &str, position: usize) -> Self {
        let mut end = text.len().min(EXCERPT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Self { excerpt: text[..end].into(), position }
    }

    /// Returns how the payload begins: its first 200 bytes at most.
    #[must_use]
    pub fn excerpt(&self) -> &str {
        &self.excerpt
    }

    /// Takes a secret out, which the server may have repeated.
    pub fn mask(&mut self, secret: &str) {
        let mut excerpt = std::mem::take(&mut self.excerpt).into_string();
        mask_secret(&mut excerpt, secret);
        self.excerpt = excerpt.into();
    }

    /// Returns where it ceases to be JSON, in bytes.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON at byte {}: {:?}", self.position, self.excerpt)
    }
}

impl std::error::Error for Unreadable {}

/// Something wrong inside a stream that goes on all the same.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// The server reported an error.
    Server(Box<ServerError>),
    /// A payload was not JSON.
    Unreadable(Unreadable),
}

impl Problem {
    /// Takes a secret out, which the server may have repeated.
    pub fn mask(&mut self, secret: &str) {
        match self {
            Self::Server(error) => error.mask(secret),
            Self::Unreadable(error) => error.mask(secret),
        }
    }
}

impl Problem {
    /// Returns how many bytes it takes while it is told: here, in the answer, and on the way.
    pub(crate) fn held(&self) -> usize {
        const TOLD: usize = 3;
        TOLD * match self {
            Self::Unreadable(error) => size_of::<Self>() + error.excerpt.len(),
            Self::Server(error) => {
                let words = [Some(&error.message), error.code.as_ref(), error.kind.as_ref()];
                let words = words.into_iter().flatten().map(String::len).sum::<usize>();
                size_of::<ServerError>() + words + held::by_value(&error.raw)
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Unreadable(error) => error.fmt(f),
        }
    }
}
