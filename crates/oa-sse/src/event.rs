use std::borrow::Cow;
use std::fmt;
use std::mem;
use std::str;
use std::sync::Arc;

use bytes::Bytes;

use crate::line::Span;

/// What [`Parser::next_item`](crate::Parser::next_item) returns.
#[derive(Debug)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A comment, without its colon and one leading space.
    Comment(&'a [u8]),
    /// An event.
    Event(Event<'a>),
    /// A whole line whose field has no meaning in the standard, which ignores it.
    Unknown(&'a [u8]),
}

/// One event, lent by the parser until it is asked for the next.
///
/// Everything here is a slice of the parser's input or buffer. To keep an event, call
/// [`into_owned`](Self::into_owned).
pub struct Event<'a> {
    place: Place<'a>,
    name: &'a [u8],
    id: Option<&'a Arc<str>>,
}

/// Where the data lies.
pub(crate) enum Place<'a> {
    Chunk(&'a Bytes, Span),
    /// In a buffer of the parser, from this offset on.
    Held(&'a mut Vec<u8>, usize),
}

impl<'a> Event<'a> {
    #[inline]
    pub(crate) fn new(place: Place<'a>, name: &'a [u8], id: Option<&'a Arc<str>>) -> Self {
        Self { place, name, id }
    }

    /// Returns the data as text; bytes that are not UTF-8 are replaced by U+FFFD.
    ///
    /// Costs a check of the bytes, and a copy only if they are not UTF-8.
    #[inline]
    #[must_use]
    pub fn data(&self) -> Cow<'_, str> {
        text(self.raw_data())
    }

    /// Returns the data as it came, unchecked; several lines are joined with LF.
    #[inline]
    #[must_use]
    pub fn raw_data(&self) -> &[u8] {
        match &self.place {
            Place::Chunk(chunk, span) => span.of(chunk),
            Place::Held(held, start) => &held[*start..],
        }
    }

    /// Returns the data as `Bytes`: a reference to the chunk, or a copy of data that straddled chunks.
    #[must_use]
    pub fn data_bytes(&self) -> Bytes {
        match &self.place {
            Place::Chunk(chunk, span) => chunk.slice(span.start..span.end),
            Place::Held(held, start) => Bytes::copy_from_slice(&held[*start..]),
        }
    }

    /// Returns the event's type: `message` unless the server named another.
    #[inline]
    #[must_use]
    pub fn event(&self) -> Cow<'_, str> {
        event_type(self.name)
    }

    /// Returns whether the event's type is this one, byte for byte.
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

    /// Makes an event that can be kept, by reference to the chunk where possible.
    ///
    /// Data that straddled chunks is taken out of the parser's buffer, not copied, when it fills
    /// most of that buffer.
    #[must_use]
    pub fn into_owned(self) -> EventBuf {
        let name = Bytes::copy_from_slice(self.name);
        let id = self.id.cloned();
        let data = match self.place {
            Place::Chunk(chunk, span) => chunk.slice(span.start..span.end),
            Place::Held(held, start) if held.len() > held.capacity() / 2 => {
                Bytes::from(mem::take(held)).split_off(start)
            }
            Place::Held(held, start) => Bytes::copy_from_slice(&held[start..]),
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

/// One event that owns what it says.
#[derive(Clone, Eq, PartialEq)]
pub struct EventBuf {
    data: Bytes,
    name: Bytes,
    id: Option<Arc<str>>,
}

impl EventBuf {
    /// Returns the data as text; bytes that are not UTF-8 are replaced by U+FFFD.
    #[must_use]
    pub fn data(&self) -> Cow<'_, str> {
        text(&self.data)
    }

    /// Returns the data as it came, unchecked; several lines are joined with LF.
    #[must_use]
    pub fn raw_data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the data as `Bytes`, by reference.
    #[must_use]
    pub fn data_bytes(&self) -> Bytes {
        self.data.clone()
    }

    /// Takes the data out, unchecked.
    #[must_use]
    pub fn into_data_bytes(self) -> Bytes {
        self.data
    }

    /// Returns the event's type: `message` unless the server named another.
    #[must_use]
    pub fn event(&self) -> Cow<'_, str> {
        event_type(&self.name)
    }

    /// Returns the last event id of the stream as of this event; empty if there is none.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Copies the data out of the chunk it is a part of, so that keeping it does not keep the chunk.
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
    // The lossy conversion alone would look at every byte by itself.
    match utf8(bytes) {
        Some(text) => Cow::Borrowed(text),
        None => String::from_utf8_lossy(bytes),
    }
}

/// Returns the bytes as text if they are UTF-8.
#[inline]
fn utf8(bytes: &[u8]) -> Option<&str> {
    // Below this length std's check is done before a call of the other one would have paid.
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
