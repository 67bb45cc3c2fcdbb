use std::fmt;

use oa_json::held;
use oa_types::wire::ServerError;

/// The part of an unreadable payload that is kept, in bytes: more than is shown, so that a key that goes on
/// beyond what is shown is whole for whoever masks it.
const KEPT: usize = 4096;

/// The part of an unreadable payload that is shown, in characters.
const SHOWN: usize = 200;

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
    payload: Box<str>,
    position: usize,
}

impl Unreadable {
    pub(crate) fn new(text: &str, position: usize) -> Self {
        Self { payload: beginning(text).into(), position }
    }

    /// Returns how the payload begins, in at most 4 KiB, as the server wrote it: it may repeat the key
    /// that the server was sent.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.payload
    }

    /// Replaces the payload, by one without secrets.
    #[must_use]
    pub fn with_payload(self, payload: impl Into<Box<str>>) -> Self {
        Self { payload: payload.into(), ..self }
    }

    /// Returns how the payload begins, in at most 200 characters.
    #[must_use]
    pub fn excerpt(&self) -> &str {
        let end = self.payload.char_indices().nth(SHOWN);
        &self.payload[..end.map_or(self.payload.len(), |(end, _)| end)]
    }

    /// Returns where it ceases to be JSON, in bytes.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON at byte {}: {:?}", self.position, self.excerpt())
    }
}

impl std::error::Error for Unreadable {}

/// How a server's text begins: as much of it as is kept. Whoever shows it masks it first.
pub(crate) fn beginning(text: &str) -> &str {
    let mut end = text.len().min(KEPT);
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
    /// The answer was complete, but its stream did not end as it should.
    UncleanEnd(UncleanEnd),
    /// A payload was not JSON.
    Unreadable(Unreadable),
    /// Another piece of a call's name came after its arguments had begun, and is no part of the name (QUIRKS
    /// row 119).
    LateName {
        /// Which call of the answer.
        call: usize,
        /// How the piece begins, in at most 4 KiB, as the server wrote it.
        piece: String,
    },
}

/// How a stream ended that did not come to its end.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum UncleanEnd {
    /// The connection broke.
    Broken,
    /// The server kept the connection open and said nothing more.
    Silent,
}

impl fmt::Display for UncleanEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken => "the connection broke behind the finish reason",
            Self::Silent => "nothing followed the finish reason, and the stream stayed open",
        })
    }
}

impl Problem {
    /// Returns how many bytes it takes while it is told: here, in the answer, and on the way.
    pub(crate) fn held(&self) -> usize {
        const TOLD: usize = 3;
        let words = match self {
            Self::LateName { piece, .. } => piece.len(),
            Self::Server(error) => {
                let words = [Some(&error.message), error.code.as_ref(), error.kind.as_ref()];
                let words = words.into_iter().flatten().map(String::len).sum::<usize>();
                size_of::<ServerError>() + words + held::by_value(&error.raw)
            }
            Self::UncleanEnd(_) => 0,
            Self::Unreadable(error) => error.payload.len(),
        };
        TOLD * (size_of::<Self>() + words)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::UncleanEnd(end) => end.fmt(f),
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
