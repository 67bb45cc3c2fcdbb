use std::fmt;

use oa_types::mask_secret;
use oa_types::wire::ServerError;

/// How much of an unreadable payload is kept, in bytes.
const EXCERPT: usize = 200;

/// Which limit was passed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
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
        Self { excerpt: excerpt(text).into(), position }
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

/// How a text begins: its first 200 bytes at most.
pub(crate) fn excerpt(text: &str) -> &str {
    let mut end = text.len().min(EXCERPT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Something wrong inside a stream that goes on all the same.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// The server reported an error.
    Server(Box<ServerError>),
    /// A payload was not JSON.
    Unreadable(Unreadable),
    /// Another piece of a call's name came after its arguments had begun, and is no part of the name (QUIRKS
    /// row 119).
    LateName {
        /// Which call of the answer.
        call: usize,
        /// How the piece begins: its first 200 bytes at most.
        piece: String,
    },
}

impl Problem {
    /// Takes a secret out, which the server may have repeated.
    pub fn mask(&mut self, secret: &str) {
        match self {
            Self::Server(error) => error.mask(secret),
            Self::Unreadable(error) => error.mask(secret),
            Self::LateName { piece, .. } => mask_secret(piece, secret),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Unreadable(error) => error.fmt(f),
            Self::LateName { call, piece } => {
                write!(
                    f,
                    "tool call {call} got {piece:?} as more of its name after its arguments had begun"
                )
            }
        }
    }
}
