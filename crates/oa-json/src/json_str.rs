//! Strings that are borrowed from the JSON text around them.

use std::borrow::Cow;

use crate::escape::{Halves, unescape_lossy};
use crate::scalar::{Escapes, string_length};

/// A string between its quotes, or the text of any other value, with its position in the JSON text.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct JsonStr<'a> {
    /// The text as it was written, with its escapes and without its quotes.
    pub raw: &'a str,
    /// The position of its first byte.
    pub start: usize,
    escapes: Escapes,
}

impl<'a> JsonStr<'a> {
    /// Creates a string from its text, its position in bytes and its escapes, as [`string_length`] returns them.
    #[inline]
    #[must_use]
    pub fn new(raw: &'a str, start: usize, escapes: Escapes) -> Self {
        Self { raw, start, escapes }
    }

    /// Reads a string from after its opening quote up to the closing one. `None` if it is no string, is not UTF-8, or
    /// has half a character at one of its ends.
    #[inline]
    #[must_use]
    pub fn at(bytes: &'a [u8]) -> Option<Self> {
        let (length, escapes) = string_length(bytes)?;
        let string = Self { raw: str::from_utf8(&bytes[..length]).ok()?, start: 0, escapes };
        (!string.has_surrogates() || string.halves().are_none()).then_some(string)
    }

    /// Returns the position behind its last byte.
    #[inline]
    #[must_use]
    pub fn end(self) -> usize {
        self.start + self.raw.len()
    }

    /// Returns the text that it stands for. A lone surrogate is U+FFFD.
    #[inline]
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        if self.escapes == Escapes::None { Cow::Borrowed(self.raw) } else { self.unescaped() }
    }

    #[inline(never)]
    fn unescaped(self) -> Cow<'a, str> {
        let mut text = String::with_capacity(self.raw.len());
        unescape_lossy(self.raw, &mut text);
        Cow::Owned(text)
    }

    /// Returns the text like [`text`](Self::text), in a buffer if it has escapes.
    #[inline]
    pub fn text_in(self, buffer: &'a mut String) -> &'a str {
        if self.escapes == Escapes::None {
            return self.raw;
        }
        buffer.clear();
        unescape_lossy(self.raw, buffer);
        buffer
    }

    /// Returns true if it has escaped surrogates, which serde_json accepts only in pairs.
    #[inline]
    #[must_use]
    pub fn has_surrogates(self) -> bool {
        self.escapes == Escapes::Surrogates
    }

    /// Returns the halves of surrogate pairs at its ends.
    #[inline]
    #[must_use]
    pub fn halves(self) -> Halves {
        if self.has_surrogates() { Halves::of(self.raw) } else { Halves::default() }
    }

    /// Returns true if `bytes` begin with the same string, up to its closing quote.
    #[inline]
    #[must_use]
    pub fn is_at(self, bytes: &[u8]) -> bool {
        let behind = bytes.strip_prefix(self.raw.as_bytes());
        behind.is_some_and(|behind| behind.first() == Some(&b'"'))
    }
}
