//! A reader for one JSON text that borrows what it reads.
//!
//! It differs from serde_json in three ways: strings without escapes are borrowed; members of the wrong type are
//! skipped instead of failing the whole payload; and it records the positions of skipped scalars, from which
//! [templates](crate::template) are made. It accepts what serde_json accepts, and two things more: a lone surrogate is
//! read as U+FFFD, and `NaN`, `Infinity` and `-Infinity`, which Python writes instead of a number, are values that are
//! not numbers (QUIRKS row 118).

use std::borrow::Cow;
use std::mem;
use std::str::FromStr;

use oa_json::{Escapes, JsonStr, number_length, string_length};

use crate::template::slot::{Slot, SlotKind};

/// The deepest nesting of arrays and objects, as in serde_json.
const DEPTH: u32 = 127;

/// The maximum number of recorded scalars: a payload with more is not worth learning from.
pub(crate) const MOST_NOTED: usize = 49;

/// The text is not JSON, or nested too deeply; the position is in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Invalid {
    pub(crate) position: usize,
}

pub(crate) type Read<T> = Result<T, Invalid>;

/// An object or array that is being read, and whether any of it has been read.
pub(crate) struct List(bool);

pub(crate) struct Reader<'a, 'n> {
    text: &'a str,
    position: usize,
    depth: u32,
    skipped: &'n mut Vec<Slot>,
}

impl<'a, 'n> Reader<'a, 'n> {
    pub(crate) fn new(text: &'a str, skipped: &'n mut Vec<Slot>) -> Self {
        skipped.clear();
        // Most payloads have fewer.
        skipped.reserve(16);
        Self { text, position: 0, depth: 0, skipped }
    }

    /// Creates a reader in the middle of a text: at the delta of a choice, which is three levels deep.
    pub(crate) fn at_delta(text: &'a str, start: usize, skipped: &'n mut Vec<Slot>) -> Self {
        skipped.clear();
        Self { text, position: start, depth: 3, skipped }
    }

    /// Creates a reader of a text inside another one, behind what was recorded there.
    pub(crate) fn inside(text: &'a str, skipped: &'n mut Vec<Slot>) -> Self {
        Self { text, position: 0, depth: 0, skipped }
    }

    /// Returns the start of the next value, or the end of what was read.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Returns the first byte of the next value.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        match self.byte() {
            // Most servers write no white space.
            Some(byte) if byte > b' ' => Some(byte),
            _ => self.peek_behind_space(),
        }
    }

    #[inline(never)]
    fn peek_behind_space(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.position += 1;
        }
        self.byte()
    }

    /// Begins an object, whose members [`member`](Self::member) reads. Anything else is skipped.
    pub(crate) fn object(&mut self) -> Read<Option<List>> {
        self.begin(b'{')
    }

    /// Begins an array, whose items [`item`](Self::item) finds. Anything else is skipped.
    pub(crate) fn array(&mut self) -> Read<Option<List>> {
        self.begin(b'[')
    }

    /// Reads the name of the next member, whose value must then be read or skipped; `None` at the end.
    pub(crate) fn member(&mut self, object: &mut List) -> Read<Option<Cow<'a, str>>> {
        if !self.next_of(object, b'}')? {
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return self.invalid();
        }
        let name = self.string_here()?;
        if self.peek() != Some(b':') {
            return self.invalid();
        }
        self.position += 1;
        Ok(Some(name.text()))
    }

    /// Returns true if there is another item, which must then be read or skipped.
    pub(crate) fn item(&mut self, array: &mut List) -> Read<bool> {
        self.next_of(array, b']')
    }

    fn begin(&mut self, bracket: u8) -> Read<Option<List>> {
        if self.peek() != Some(bracket) {
            return self.skip().map(|()| None);
        }
        self.position += 1;
        self.depth += 1;
        if self.depth > DEPTH { self.invalid() } else { Ok(Some(List(false))) }
    }

    /// Skips the separator before the next item of a list, which cannot end with a comma; false at its end.
    fn next_of(&mut self, list: &mut List, bracket: u8) -> Read<bool> {
        let begun = mem::replace(&mut list.0, true);
        match self.peek() {
            Some(byte) if byte == bracket => {
                self.position += 1;
                self.depth -= 1;
                Ok(false)
            }
            Some(b',') if begun => {
                self.position += 1;
                if self.peek() == Some(bracket) { self.invalid() } else { Ok(true) }
            }
            _ if begun => self.invalid(),
            _ => Ok(true),
        }
    }

    /// Reads a string, even an empty one; null and all other types count as absent.
    pub(crate) fn string_or_absent(&mut self) -> Read<Option<JsonStr<'a>>> {
        if self.peek() == Some(b'"') { self.string().map(Some) } else { self.skip().map(|()| None) }
    }

    /// Reads a string; null, the empty string and all other types count as absent.
    pub(crate) fn text(&mut self) -> Read<Option<JsonStr<'a>>> {
        Ok(self.string_or_absent()?.filter(|string| !string.raw.is_empty()))
    }

    /// Reads a string like [`text`](Self::text), and records it as one that may vary.
    pub(crate) fn text_once(&mut self, kind: SlotKind) -> Read<Option<JsonStr<'a>>> {
        let string = self.text()?;
        if let Some(string) = string {
            self.note(string.start, string.end(), kind);
        }
        Ok(string)
    }

    /// Reads an integer, also one in quotes, as languages with only string keys write it. Anything else is absent.
    pub(crate) fn integer<T: FromStr>(&mut self) -> Read<Option<T>> {
        Ok(integer(self.raw()?.raw.trim_matches('"')))
    }

    /// Reads an integer like [`integer`](Self::integer), and records it if it is any number.
    pub(crate) fn noted<T: FromStr>(&mut self, kind: SlotKind) -> Read<Option<T>> {
        let value = self.raw()?;
        if number_length(value.raw.as_bytes()).is_some() {
            self.note(value.start, value.end(), kind);
        }
        Ok(integer(value.raw.trim_matches('"')))
    }

    /// Reads any value as its JSON text.
    pub(crate) fn raw(&mut self) -> Read<JsonStr<'a>> {
        // A value that is returned is not recorded as skipped.
        let noted = self.skipped.len();
        let raw = self.pass()?;
        self.skipped.truncate(noted);
        Ok(raw)
    }

    /// Skips any value like [`skip`](Self::skip), and returns its JSON text.
    pub(crate) fn pass(&mut self) -> Read<JsonStr<'a>> {
        self.peek();
        let start = self.position;
        self.skip()?;
        Ok(JsonStr::new(&self.text[start..self.position], start, Escapes::None))
    }

    /// Skips any value and records the scalars in it.
    pub(crate) fn skip(&mut self) -> Read<()> {
        // Recursive, but no deeper than `DEPTH`: `begin` refuses more.
        match self.peek() {
            Some(b'"') => {
                let string = self.string()?;
                self.note(string.start, string.end(), SlotKind::String);
                Ok(())
            }
            Some(b'{') => {
                let Some(mut object) = self.object()? else { return Ok(()) };
                while self.member(&mut object)?.is_some() {
                    self.skip()?;
                }
                Ok(())
            }
            Some(b'[') => {
                let Some(mut array) = self.array()? else { return Ok(()) };
                while self.item(&mut array)? {
                    self.skip()?;
                }
                Ok(())
            }
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => {
                let start = self.position;
                let Some(length) = number_length(&self.text.as_bytes()[start..]) else {
                    return self.no_number();
                };
                self.position += length;
                self.note(start, self.position, SlotKind::Number);
                Ok(())
            }
        }
    }

    /// Checks that only white space is left.
    pub(crate) fn end(&mut self) -> Read<()> {
        if self.peek().is_some() { self.invalid() } else { Ok(()) }
    }

    fn string(&mut self) -> Read<JsonStr<'a>> {
        self.string_here()
    }

    /// Reads a string without a call: for names, of which a full reading has the most. Saves 6 % of it.
    #[inline(always)]
    fn string_here(&mut self) -> Read<JsonStr<'a>> {
        // The caller has seen the opening quote.
        let start = self.position + 1;
        let bytes = &self.text.as_bytes()[start..];
        let Some((length, escapes)) = string_length(bytes) else {
            return self.invalid();
        };
        let raw = &self.text[start..start + length];
        self.position = start + length + 1;
        Ok(JsonStr::new(raw, start, escapes))
    }

    fn word(&mut self, word: &str) -> Read<()> {
        if !self.text.as_bytes()[self.position..].starts_with(word.as_bytes()) {
            return self.invalid();
        }
        self.position += word.len();
        Ok(())
    }

    /// Skips a number in Python's notation that JSON lacks. It is not recorded: only the same word may replace it.
    #[cold]
    fn no_number(&mut self) -> Read<()> {
        match self.byte() {
            Some(b'-') => self.word("-Infinity"),
            Some(b'I') => self.word("Infinity"),
            Some(b'N') => self.word("NaN"),
            _ => self.invalid(),
        }
    }

    fn note(&mut self, start: usize, end: usize, kind: SlotKind) {
        // A full list may be incomplete, so `ChunkTemplate::learn` rejects it. Positions too large for a slot
        // do not matter: such a payload is too long to be learned.
        if self.skipped.len() < MOST_NOTED {
            self.skipped.extend(Slot::new(start, end, kind));
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn invalid<T>(&self) -> Read<T> {
        Err(Invalid { position: self.position })
    }
}

/// Reads an integer, also one with a fraction or an exponent of no effect, as some languages write all numbers: `12.0`.
#[inline]
pub(crate) fn integer<T: FromStr>(number: &str) -> Option<T> {
    let of_float = |float: f64| format!("{float:.0}").parse().ok().filter(|_| float.fract() == 0.0);
    number.parse().ok().or_else(|| of_float(number.parse().ok()?))
}

#[cfg(test)]
mod tests;
