use std::fmt;

/// The category of an error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An event, complete or not, exceeds [`Limits::event_bytes`](crate::Limits::event_bytes).
    EventTooLarge,
    /// The event name or id of a [`Frame`](crate::Frame) contains a line break, or the id contains NUL.
    LineBreakInField,
}

/// An error of the parser or the encoder.
///
/// The parser continues after an error: see [`Parser::next_event`](crate::Parser::next_event).
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    limit: usize,
}

impl Error {
    pub(crate) fn event_too_large(limit: usize) -> Self {
        Self { kind: ErrorKind::EventTooLarge, limit }
    }

    pub(crate) fn line_break_in_field() -> Self {
        Self { kind: ErrorKind::LineBreakInField, limit: 0 }
    }

    /// Returns the category of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::EventTooLarge => {
                write!(f, "an event is larger than the limit of {} bytes", self.limit)
            }
            ErrorKind::LineBreakInField => f.write_str(
                "an event name must not contain line breaks, and an id no line breaks or NUL",
            ),
        }
    }
}

impl std::error::Error for Error {}

/// An error of an adapter: the parser's, or that of its source.
#[cfg(any(feature = "body", feature = "stream"))]
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError<E> {
    /// An event exceeded a limit. The adapter continues with the next event.
    Parse(Error),
    /// The source of bytes failed. The adapter has ended.
    Source(E),
}

#[cfg(any(feature = "body", feature = "stream"))]
impl<E> fmt::Display for ReadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parse(_) => "the event stream could not be parsed",
            Self::Source(_) => "the source of the event stream failed",
        })
    }
}

#[cfg(any(feature = "body", feature = "stream"))]
impl<E: std::error::Error + 'static> std::error::Error for ReadError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::Parse(error) => error,
            Self::Source(error) => error,
        })
    }
}
