use std::fmt;

use oa_json::{beginning, held};
use oa_types::wire::ServerError;
use serde::{Deserialize, Serialize};

/// The number of bytes of an unreadable payload that are kept: more than are shown, so that a key that extends beyond
/// the excerpt is complete when it is masked.
pub(crate) const KEPT: usize = 4096;

/// The number of characters of an unreadable payload that are shown.
const SHOWN: usize = 200;

/// The limit that was exceeded.
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

/// The answer exceeds a limit. Everything before it is kept; later payloads are rejected.
#[derive(Clone, Copy, Debug)]
pub struct Error {
    kind: ErrorKind,
    limit: usize,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, limit: usize) -> Self {
        Self { kind, limit }
    }

    /// Returns the limit that was exceeded.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, unit) = match self.kind {
            ErrorKind::AnswerTooLarge => ("the answer takes more memory", " bytes"),
            ErrorKind::ArgumentsTooLong => ("the arguments of a tool call are longer", " bytes"),
            ErrorKind::TooManyCalls => ("the answer has more tool calls", ""),
            ErrorKind::TextTooLong => ("the text of the answer is longer", " bytes"),
        };
        write!(f, "{what} than the limit of {}{unit}", self.limit)
    }
}

impl std::error::Error for Error {}

/// A payload that is not JSON.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct UnreadablePayload {
    payload: Box<str>,
    position: usize,
}

impl UnreadablePayload {
    pub(crate) fn new(text: &str, position: usize) -> Self {
        Self { payload: beginning(text, KEPT).into(), position }
    }

    /// Returns the beginning of the payload, at most 4 KiB, exactly as the server sent it: it may contain the API key.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.payload
    }

    /// Replaces the payload, for example with one without secrets.
    #[must_use]
    pub fn with_payload(self, payload: impl Into<Box<str>>) -> Self {
        Self { payload: payload.into(), ..self }
    }

    /// Returns the beginning of the payload, at most 200 characters.
    #[must_use]
    pub fn excerpt(&self) -> &str {
        let end = self.payload.char_indices().nth(SHOWN);
        &self.payload[..end.map_or(self.payload.len(), |(end, _)| end)]
    }

    /// Returns the byte position at which it stops being JSON.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }
}

impl fmt::Display for UnreadablePayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON at byte {}: {:?}", self.position, self.excerpt())
    }
}

impl std::error::Error for UnreadablePayload {}

/// A problem inside a stream that does not end it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// The server reported an error.
    Server(Box<ServerError>),
    /// The answer is complete, but its stream did not end correctly.
    UncleanEnd(UncleanEnd),
    /// A payload was not JSON.
    Unreadable(UnreadablePayload),
    /// Another piece of a call's name arrived after its arguments had begun, and was ignored (QUIRKS row 119).
    LateName {
        /// The index of the call in the answer, from 0.
        call: usize,
        /// The beginning of the piece, at most 4 KiB, exactly as the server sent it.
        piece: String,
    },
}

/// The way in which a stream ended incorrectly.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UncleanEnd {
    /// The connection broke.
    Broken,
    /// The server kept the connection open without sending anything.
    Silent,
}

impl fmt::Display for UncleanEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken => "the connection broke after the finish reason",
            Self::Silent => "nothing followed the finish reason, and the stream stayed open",
        })
    }
}

impl Problem {
    /// Returns its memory while it is reported: here, in the answer, and in between.
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
                    "tool call {call} got {piece:?} as a piece of its name after its arguments had begun"
                )
            }
        }
    }
}
