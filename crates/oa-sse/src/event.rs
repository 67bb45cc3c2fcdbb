use std::borrow::Cow;
use std::fmt;
use std::mem;
use std::str;
use std::sync::Arc;

use bytes::Bytes;

use crate::line::Span;

/// An item returned by [`Parser::next_item`](crate::Parser::next_item).
#[derive(Debug)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A comment, without its colon and one leading space.
    Comment(&'a [u8]),
    /// An event.
    Event(Event<'a>),
    /// A line whose field is unknown and ignored by the standard.
    Unknown(&'a [u8]),
}

/// An event, borrowed from the parser until the next call.
///
/// All its data are slices of the parser's input or buffer. To keep an event, call
/// [`into_owned`](Self::into_owned).
pub struct Event<'a> {
    location: DataLocation<'a>,
    name: &'a [u8],
    id: Option<&'a Arc<str>>,
}

/// The location of an event's data.
pub(crate) enum DataLocation<'a> {
    Chunk(&'a Bytes, Span),
    /// In a buffer of the parser, from this offset.
    Held(&'a mut Vec<u8>, usize),
}

impl<'a> Event<'a> {
    #[inline]
    pub(crate) fn new(
        location: DataLocation<'a>,
        name: &'a [u8],
        id: Option<&'a Arc<str>>,
    ) -> Self {
        Self { location, name, id }
    }

    /// Returns the data as text, with invalid UTF-8 replaced by U+FFFD.
    ///
    /// Validates the bytes, and copies them only if they are not UTF-8.
    #[inline]
    #[must_use]
    pub fn data(&self) -> Cow<'_, str> {
        text(self.raw_data())
    }

    /// Returns the raw data, without validation; multiple lines are joined with LF.
    #[inline]
    #[must_use]
    pub fn raw_data(&self) -> &[u8] {
        match &self.location {
            DataLocation::Chunk(chunk, span) => span.of(chunk),
            DataLocation::Held(held, start) => &held[*start..],
        }
    }

    /// Returns the data as `Bytes`: a reference to the chunk, or a copy if the data spanned chunks.
    #[must_use]
    pub fn data_bytes(&self) -> Bytes {
        match &self.location {
            DataLocation::Chunk(chunk, span) => chunk.slice(span.start..span.end),
            DataLocation::Held(held, start) => Bytes::copy_from_slice(&held[*start..]),
        }
    }

    /// Returns the event type, `message` by default.
    #[inline]
    #[must_use]
    pub fn event(&self) -> Cow<'_, str> {
        event_type(self.name)
    }

    /// Returns true if the event type equals `event`, byte for byte.
    #[inline]
    #[must_use]
    pub fn is_named(&self, event: &str) -> bool {
        if self.name.is_empty() { event == MESSAGE } else { self.name == event.as_bytes() }
    }

    /// Returns the last event id of the stream as of this event; empty if there is none.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        self.id.map(|id| &**id).unwrap_or_default()
    }

    /// Converts to an owned event, by reference to the chunk where possible.
    ///
    /// If the data spanned chunks and fills most of the parser's buffer, the buffer is taken instead of copied.
    #[must_use]
    pub fn into_owned(self) -> EventBuf {
        let name = Bytes::copy_from_slice(self.name);
        let id = self.id.cloned();
        let data = match self.location {
            DataLocation::Chunk(chunk, span) => chunk.slice(span.start..span.end),
            // Only if the buffer is mostly data: a small event would keep all of a large buffer alive.
            DataLocation::Held(held, start) if held.len() > held.capacity() / 2 => {
                Bytes::from(mem::take(held)).split_off(start)
            }
            DataLocation::Held(held, start) => Bytes::copy_from_slice(&held[start..]),
        };
        EventBuf { data, name, id }
    }
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("event", &self.event())
            .field("data", &self.data())
            .field("last_event_id", &self.last_event_id())
            .finish()
    }
}

/// An owned event.
#[derive(Clone, Eq, PartialEq)]
pub struct EventBuf {
    data: Bytes,
    name: Bytes,
    id: Option<Arc<str>>,
}

impl EventBuf {
    /// Returns the data as text, with invalid UTF-8 replaced by U+FFFD.
    #[must_use]
    pub fn data(&self) -> Cow<'_, str> {
        text(&self.data)
    }

    /// Returns the raw data, without validation; multiple lines are joined with LF.
    #[must_use]
    pub fn raw_data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the data as `Bytes`, by reference.
    #[must_use]
    pub fn data_bytes(&self) -> Bytes {
        self.data.clone()
    }

    /// Takes the data out, without validation.
    #[must_use]
    pub fn into_data_bytes(self) -> Bytes {
        self.data
    }

    /// Returns the event type, `message` by default.
    #[must_use]
    pub fn event(&self) -> Cow<'_, str> {
        event_type(&self.name)
    }

    /// Returns the stream's last event id as of this event, or an empty string.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Copies the data out of its chunk, so that keeping the event does not keep the chunk alive.
    #[must_use]
    pub fn compact(self) -> Self {
        Self { data: Bytes::copy_from_slice(&self.data), ..self }
    }
}

impl fmt::Debug for EventBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBuf")
            .field("event", &self.event())
            .field("data", &self.data())
            .field("last_event_id", &self.last_event_id())
            .finish()
    }
}

#[inline]
fn text(bytes: &[u8]) -> Cow<'_, str> {
    // The lossy conversion alone is much slower, going byte by byte.
    match utf8(bytes) {
        Some(text) => Cow::Borrowed(text),
        None => String::from_utf8_lossy(bytes),
    }
}

/// Returns the bytes as text if they are valid UTF-8.
#[inline]
fn utf8(bytes: &[u8]) -> Option<&str> {
    // Below this length, std's check is faster.
    const LONG: usize = 128;
    if bytes.len() < LONG {
        return str::from_utf8(bytes).ok();
    }
    simdutf8::basic::from_utf8(bytes).ok()
}

/// The type of events without a name.
const MESSAGE: &str = "message";

#[inline]
fn event_type(name: &[u8]) -> Cow<'_, str> {
    if name.is_empty() { Cow::Borrowed(MESSAGE) } else { text(name) }
}
