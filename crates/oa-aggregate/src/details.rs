//! Reasoning details: fragments of a list that goes back to the server (QUIRKS rows 30, 41, 42).

use std::ops::Range;

use oa_json::{held, read_or_text};
use oa_types::shallow;
use serde_json::Value;

use crate::budget::{Budget, COPIES};
use crate::error::Error;
use crate::json::Reader;
use crate::template::slot::{Slot, SlotKind};
use crate::text::is_sure;

/// The number of items that are searched for the item of a fragment; searching all of them would be quadratic.
const LATEST: usize = 64;

/// Text members, which grow; others are set. The last two contain thinking.
const GROWING: [&str; 3] = ["data", "summary", "text"];

/// The list as it grows.
#[derive(Debug, Default)]
pub(crate) struct Details {
    items: Vec<Item>,
    /// The number of the last fragment's shape, and the item that the fragment was added to.
    latest: Option<(u64, usize)>,
}

#[derive(Debug)]
struct Item {
    value: Value,
    /// The growth of its texts, by the index of the member in [`GROWING`].
    growth: [Growth; GROWING.len()],
}

/// The growth of an item's text: in pieces, or with all of it in each fragment (QUIRKS row 112).
///
/// The rule is the same as for text: if enough fragments in a row, starting with the first, each begin with the
/// previous one, the server repeats itself.
#[derive(Clone, Copy, Debug)]
enum Growth {
    /// Each fragment so far began with the previous one, which starts at `last`.
    Chain {
        last: usize,
        links: u32,
    },
    Pieces,
    Whole,
}

impl Growth {
    const NEW: Self = Self::Chain { last: 0, links: 0 };

    /// Adds a fragment, and returns how much of it was already known.
    #[inline]
    fn add(&mut self, words: &str, text: &mut String, budget: &mut Budget) -> Result<usize, Error> {
        if let Self::Pieces = self {
            budget.append(text, words)?;
            return Ok(0);
        }
        self.compare(words, text, budget)
    }

    fn compare(
        &mut self,
        words: &str,
        text: &mut String,
        budget: &mut Budget,
    ) -> Result<usize, Error> {
        match *self {
            _ if words.is_empty() => {}
            Self::Chain { last, links } if repeats(words, text, last) => {
                let links = links + 1;
                if is_sure(links, words) {
                    // The joined fragments so far are repeats of one text, and `words` is all of it.
                    let known = text.len();
                    text.clear();
                    budget.append(text, words)?;
                    *self = Self::Whole;
                    return Ok(known.min(words.len()));
                }
                *self = Self::Chain { last: text.len(), links };
            }
            // The first fragment with text begins the chain.
            Self::Chain { .. } if text.is_empty() => {}
            Self::Chain { .. } | Self::Pieces => *self = Self::Pieces,
            Self::Whole => {
                if let Some(more) = words.strip_prefix(&**text) {
                    let known = text.len();
                    budget.append(text, more)?;
                    return Ok(known);
                }
            }
        }
        budget.append(text, words)?;
        Ok(0)
    }
}

/// Returns true if the fragment begins with the text from a position on.
fn repeats(words: &str, text: &str, from: usize) -> bool {
    text.get(from..).is_some_and(|before| !before.is_empty() && words.starts_with(before))
}

/// Fragments with one varying member, by which their item grows.
#[derive(Debug)]
pub(crate) struct DetailShape {
    json: String,
    /// The range of the string in it.
    string: Range<usize>,
    member: &'static str,
    /// The index of the member in [`GROWING`].
    place: usize,
    /// A number that no other shape of the stream has.
    pub(crate) number: u64,
}

/// A fragment of such a shape, with its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetailFragment<'a> {
    pub(crate) shape: &'a DetailShape,
    pub(crate) words: &'a str,
    /// The length of the text in the payload.
    pub(crate) raw: usize,
}

impl Details {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the list.
    pub(crate) fn into_list(self) -> Vec<Value> {
        self.items.into_iter().map(|item| item.value).collect()
    }

    /// Adds a fragment to the list, in the latest item of its index and type: text members grow and others are set.
    ///
    /// `shape` is the number of its shape, or 0. Returns the number of bytes that were already known.
    pub(crate) fn merge(
        &mut self,
        fragment: &Value,
        shape: u64,
        budget: &mut Budget,
    ) -> Result<usize, Error> {
        let mut known = 0;
        self.latest = self.merge_into(fragment, &mut known, budget)?.map(|item| (shape, item));
        Ok(known)
    }

    /// Adds a fragment as [`merge`](Self::merge) does.
    ///
    /// After a fragment of the same shape, the item is the same and its other members are set: only text is added.
    #[inline]
    pub(crate) fn grow(
        &mut self,
        fragment: DetailFragment<'_>,
        budget: &mut Budget,
    ) -> Result<usize, Error> {
        let DetailFragment { shape, words, .. } = fragment;
        if let Some((number, item)) = self.latest
            && number == shape.number
            && let Item { value, growth } = &mut self.items[item]
            && let Some(Value::String(text)) = value.get_mut(shape.member)
        {
            return growth[shape.place].add(words, text, budget);
        }
        self.merge(&fragment.value(), shape.number, budget)
    }

    /// Adds a fragment, and returns its item if the next fragment of the same index and type belongs to it too.
    fn merge_into(
        &mut self,
        fragment: &Value,
        known: &mut usize,
        budget: &mut Budget,
    ) -> Result<Option<usize>, Error> {
        let Value::Object(new) = fragment else {
            self.push(fragment, budget)?;
            return Ok(None);
        };
        // Without an index, nothing tells which item a fragment belongs to, so each is an item of its own.
        let has_index = new.contains_key("index");
        let same = |item: &Item| {
            let same_member = |member: &str| item.value.get(member) == new.get(member);
            has_index && same_member("index") && same_member("type")
        };
        let latest = self.items.len().saturating_sub(LATEST);
        let place = self.items[latest..].iter().rposition(same).map(|place| latest + place);
        let item = place.map(|place| &mut self.items[place]);
        let Some(Item { value: Value::Object(item), growth }) = item else {
            self.push(fragment, budget)?;
            return Ok(has_index.then(|| self.items.len() - 1));
        };
        for (member, value) in new {
            let place = GROWING.iter().position(|growing| growing == member);
            match (item.get_mut(member), value, place) {
                (_, Value::Null, _) => {}
                (Some(Value::String(text)), Value::String(more), Some(place)) => {
                    *known += growth[place].add(more, text, budget)?;
                }
                (Some(old), value, _) => {
                    budget.hold(COPIES * held::by_value(value))?;
                    budget.release(COPIES * held::by_value(old));
                    old.clone_from(value);
                }
                (None, value, _) => {
                    budget.hold_value(member, value)?;
                    item.insert(member.clone(), value.clone());
                }
            }
        }
        Ok(place)
    }

    fn push(&mut self, item: &Value, budget: &mut Budget) -> Result<(), Error> {
        budget.reserve_one(&mut self.items)?;
        budget.hold(COPIES * held::by_value(item))?;
        // Encrypted text cannot be distinguished from a repeat.
        let growth = [Growth::Pieces, Growth::NEW, Growth::NEW];
        self.items.push(Item { value: item.clone(), growth });
        Ok(())
    }
}

impl DetailShape {
    /// Returns the shape of fragments like this one, if it is an object with one text member.
    ///
    /// `skipped` is room for the reader, and is left as it is.
    pub(crate) fn new(json: &str, skipped: &mut Vec<Slot>) -> Option<Self> {
        let before = skipped.len();
        let string = Self::only_text(&mut Reader::inside(json, skipped));
        skipped.truncate(before);
        let (string, place) = string?;
        let member = GROWING[place];
        Some(Self { json: json.to_owned(), string, member, place, number: 0 })
    }

    /// Returns the range of the only text member of an object, and its index in [`GROWING`].
    fn only_text(reader: &mut Reader<'_, '_>) -> Option<(Range<usize>, usize)> {
        let mut found = None;
        let mut seen = [0; GROWING.len()];
        let mut members = reader.object().ok()??;
        while let Some(name) = reader.member(&mut members).ok()? {
            let string = reader.string_or_absent().ok()?;
            if let Some(place) = GROWING.iter().position(|member| *member == name) {
                seen[place] += 1;
                // Only one text may vary.
                if let Some(string) = string
                    && found.replace((string.start..string.end(), place)).is_some()
                {
                    return None;
                }
            }
        }
        // Of two members with one name, the last counts.
        found.filter(|_| seen.iter().all(|times| *times <= 1))
    }

    /// Returns the slot in a payload in which the fragment begins at `start`.
    pub(crate) fn slot(&self, start: usize) -> Option<Slot> {
        Slot::new(start + self.string.start, start + self.string.end, SlotKind::Detail)
    }
}

impl<'a> DetailFragment<'a> {
    /// Returns the fragment as the full reading would.
    pub(crate) fn value(self) -> Value {
        let mut value = shallow(read_or_text(&self.shape.json));
        value[self.shape.member] = self.words.into();
        value
    }

    /// Returns the length of its JSON.
    pub(crate) fn json_length(self) -> usize {
        self.shape.json.len() - self.shape.string.len() + self.raw
    }

    /// Returns the thinking in it.
    pub(crate) fn thinking(self) -> &'a str {
        if self.shape.member == "data" { "" } else { self.words }
    }
}
