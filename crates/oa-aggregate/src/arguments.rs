//! The text of a call's arguments, kept in fragments until the end, and its interpretation.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;

use oa_json::{
    Limits, Trim, ValueEnd, beginning, escape_control_characters, held, repair, value_length,
};
use serde_json::{Map, Value};

use crate::budget::{Budget, COPIES_OF_CALL};
use crate::error::Error;
use crate::place::Span;
use crate::quirks::ArgumentRepair;

const TOO_LARGE: &str = "the arguments exceed the memory limit";

/// The fragments of one call's arguments.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    text: String,
    /// The position at which each fragment ends.
    ends: Vec<usize>,
    /// Followed, because some servers repeat the name in every fragment, and each time this asks whether the text is whole.
    end: ValueEnd,
    /// Set at the end of the value: true if it is JSON.
    is_json: Option<bool>,
    edges: Trim,
    /// The digest of the value, and the length of the text that it was made of.
    digest: Option<(usize, Option<u64>)>,
    /// The number of times that all of the text was read for a digest, although it was not one value.
    readings: u8,
}

/// The most such readings, each as long as the text. Usually there is one, as messages end a stream.
const MOST_READINGS: u8 = 8;

/// The arguments of a call in a message, to be compared with those of earlier calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeArguments<'t> {
    text: &'t str,
    /// None if they are no object.
    digest: Option<u64>,
}

impl<'t> WholeArguments<'t> {
    /// Reads them, if their value takes at most `room` bytes.
    pub(crate) fn new(text: &'t str, room: usize) -> Self {
        let text = text.trim();
        Self { text, digest: digest(text, room) }
    }
}

impl Arguments {
    /// Appends a fragment, if the budget has room for it.
    #[inline]
    pub(crate) fn append(&mut self, fragment: &str, budget: &mut Budget) -> Result<Span, Error> {
        let has_room = self.ends.len() < self.ends.capacity()
            && fragment.len() <= self.text.capacity() - self.text.len();
        // Separate from the other case, so that nothing is checked twice.
        if has_room {
            return Ok(self.push(fragment));
        }
        self.reserve_and_push(fragment, budget)
    }

    #[cold]
    fn reserve_and_push(&mut self, fragment: &str, budget: &mut Budget) -> Result<Span, Error> {
        self.reserve(fragment, budget)?;
        Ok(self.push(fragment))
    }

    /// Makes room for a fragment that is appended next.
    pub(crate) fn reserve(&mut self, fragment: &str, budget: &mut Budget) -> Result<(), Error> {
        budget.reserve_one(&mut self.ends)?;
        budget.reserve(&mut self.text, fragment.len(), 1)
    }

    /// Appends a fragment.
    #[inline]
    pub(crate) fn push(&mut self, fragment: &str) -> Span {
        let start = self.text.len();
        // An empty fragment has no end: any fragment would extend it, and none would be extended by it.
        if !fragment.is_empty() {
            self.text.push_str(fragment);
            self.ends.push(self.text.len());
        }
        (start, self.text.len())
    }

    pub(crate) fn slice(&self, start: usize, end: usize) -> &str {
        &self.text[start..end]
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text without white space before it.
    pub(crate) fn begun(&mut self) -> &str {
        self.edges.start_of(&self.text)
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Returns true if these are the same arguments: the same text, or another spelling of the same object.
    pub(crate) fn is(&mut self, other: &WholeArguments<'_>, room: usize) -> bool {
        let text = self.edges.of(&self.text);
        text == other.text || (other.digest.is_some() && self.digest(room) == other.digest)
    }

    /// Returns a number that stands for the object, once it is complete. It is computed once, however often it is asked.
    fn digest(&mut self, room: usize) -> Option<u64> {
        let length = self.edges.of(&self.text).len();
        if let Some((_, digest)) = self.digest.filter(|known| known.0 == length) {
            return digest;
        }
        let is_complete = length == 0 || self.is_whole();
        let digest = if is_complete {
            digest(self.edges.of(&self.text), room)
        } else {
            self.digest_of_resent(room / 2)
        };
        self.digest = Some((length, digest));
        digest
    }

    /// Returns the digest of an object that the server has sent more than once.
    fn digest_of_resent(&mut self, room: usize) -> Option<u64> {
        if self.readings == MOST_READINGS || !held::fits(&self.text, room) {
            return None;
        }
        self.readings += 1;
        self.resent(room).as_ref().map(digest_of)
    }

    /// Returns true if the text so far is one complete JSON value.
    pub(crate) fn is_whole(&mut self) -> bool {
        const LONGEST_SCALAR: usize = 32;
        let is_json = |text: &str| value_length(text.as_bytes()) == Some(text.trim_end().len());
        match self.end.find(self.text.as_bytes()) {
            Some(end) => {
                // The only time that it is parsed, since nothing leads back from here.
                self.end.is_last()
                    && *self.is_json.get_or_insert_with(|| is_json(&self.text[..end]))
            }
            // A number or a word is short enough to be parsed each time.
            None => self.text.len() <= LONGEST_SCALAR && is_json(&self.text),
        }
    }

    /// Returns the text, cut to at most this many bytes.
    pub(crate) fn excerpt(&self, bytes: usize) -> String {
        beginning(&self.text, bytes).to_owned()
    }

    /// Returns the object that the fragments contain (QUIRKS rows 16 to 23).
    ///
    /// If the joined fragments parse, they are the object. Otherwise the server may have sent all of it several times.
    ///
    /// A value that would take more memory than the budget has left is not read.
    pub(crate) fn resolve(
        &self,
        repair: ArgumentRepair,
        budget: &mut Budget,
    ) -> Result<Map<String, Value>, String> {
        let object = self.find(repair, budget.left() / COPIES_OF_CALL)?;
        oa_types::check_nesting(&object)?;
        let bytes = COPIES_OF_CALL * held::by_members(&object);
        budget.hold(bytes).map_err(|_| TOO_LARGE.to_owned())?;
        Ok(object)
    }

    /// Returns the object, if it takes at most this many bytes.
    fn find(&self, repair: ArgumentRepair, room: usize) -> Result<Map<String, Value>, String> {
        let text = self.text.trim();
        if text.is_empty() {
            return Ok(Map::new());
        }
        let error = match read(text, room) {
            Ok(value) => match unwrap(value, room) {
                Some(object) => return Ok(object),
                None => "the arguments are JSON, but not an object".to_owned(),
            },
            Err(None) => return Err(TOO_LARGE.to_owned()),
            // Only now: text that parses is no repeat, even if each fragment extends the one before.
            Err(Some(error)) => {
                match self.resent(room).or_else(|| with_control_characters(text, room)) {
                    Some(object) => return Ok(object),
                    None => format!("the arguments are not valid JSON: {error}"),
                }
            }
        };
        match repair {
            ArgumentRepair::Off => Err(error),
            ArgumentRepair::On => repaired(text, room).ok_or(error),
        }
    }

    /// Returns the object from a server that sends it more than once: `{"a` and `{"a":1}` in two fragments (QUIRKS row
    /// 20), or behind itself or its beginning (row 21), or behind `{}` (row 126). Different objects are an error (row 22).
    ///
    /// `find` has checked that the text fits into `room`, which covers the values that follow one another.
    fn resent(&self, room: usize) -> Option<Map<String, Value>> {
        if let [.., start, _] = self.ends[..]
            && let (before, last) = self.text.split_at(start)
            && (last.starts_with(before) || self.each_extends_the_one_before())
            && let Ok(value) = read(last, room)
        {
            return unwrap(value, room);
        }
        if let Some(rest) = self.behind_placeholder()
            && let Ok(value @ Value::Object(_)) = read(rest, room)
        {
            return unwrap(value, room);
        }
        let (mut first, mut rest) = (None::<Value>, self.text.trim());
        while !rest.is_empty() {
            let (value, behind) = rest.split_at(value_length(rest.as_bytes())?);
            let value = value.parse().ok()?;
            if first.as_ref().is_some_and(|first| *first != value) {
                return None;
            }
            (first, rest) = (Some(value), behind.trim_start());
        }
        unwrap(first?, room)
    }

    /// Returns the text behind a first fragment that is an empty object.
    fn behind_placeholder(&self) -> Option<&str> {
        let (first, rest) = self.text.split_at(*self.ends.first()?);
        (first.trim() == "{}" && !rest.trim().is_empty()).then_some(rest)
    }

    fn each_extends_the_one_before(&self) -> bool {
        let mut before = "";
        self.fragments().all(|fragment| fragment.starts_with(mem::replace(&mut before, fragment)))
    }

    fn fragments(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.text[mem::replace(&mut start, end)..end])
    }
}

/// Returns a number that stands for the object in a text; none if it is no object, or takes too much memory.
fn digest(text: &str, room: usize) -> Option<u64> {
    let object = match text {
        "" => Map::new(),
        // A string with JSON in it is read twice.
        _ => unwrap(read(text, room / 2).ok()?, room / 2)?,
    };
    Some(digest_of(&object))
}

fn digest_of(object: &Map<String, Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}

/// Reads an object whose strings contain line breaks and tabs as they are (QUIRKS row 135).
fn with_control_characters(text: &str, room: usize) -> Option<Map<String, Value>> {
    // The copy counts, too: each of these characters takes six bytes there.
    let escapes = text.bytes().filter(|byte| *byte < b' ').count();
    let room = room.checked_sub(text.len() + 6 * escapes)?;
    unwrap(read(&escape_control_characters(text), room).ok()?, room)
}

/// Reads an object that is truncated or slightly broken, if it takes at most this many bytes.
fn repaired(text: &str, room: usize) -> Option<Map<String, Value>> {
    let mut limits = Limits::default();
    limits.held_bytes = room;
    match repair(text, limits) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// Reads JSON that takes at most this many bytes; an error of `None` says that it takes more.
fn read(text: &str, room: usize) -> Result<Value, Option<serde_json::Error>> {
    if !held::fits(text, room) {
        return Err(None);
    }
    text.parse().map_err(Some)
}

/// Returns the object, also if it is JSON within a JSON string; null and the empty string are an empty object.
fn unwrap(value: Value, room: usize) -> Option<Map<String, Value>> {
    match value {
        Value::Null => Some(Map::new()),
        Value::Object(object) => Some(object),
        Value::String(text) if text.trim().is_empty() => Some(Map::new()),
        Value::String(text) => match read(&text, room).ok()? {
            Value::Object(object) => Some(object),
            _ => None,
        },
        _ => None,
    }
}
