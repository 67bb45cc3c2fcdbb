//! Reasoning details: fragments of a list that goes back to the server (QUIRKS rows 30, 41, 42).

use std::ops::Range;

use oa_json::held;
use serde_json::Value;

use crate::budget::{Budget, COPIES};
use crate::error::Error;
use crate::hole::{Hole, Kind};
use crate::json::Reader;
use crate::text::is_sure;

/// How far back the item of a fragment is looked for; looking through all of them each time would be
/// quadratic.
const LATEST: usize = 64;

/// Members of text, which grow; others are set. The words of the latter two are thinking.
const GROWING: [&str; 3] = ["data", "summary", "text"];

/// The list as it grows.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub(crate) list: Vec<Value>,
    /// How each of them grows, by the place of the member in [`GROWING`].
    growth: Vec<[Growth; GROWING.len()]>,
    /// The form of the fragment that was taken last, and the item that took it.
    latest: Option<(u64, usize)>,
}

/// How the words of an item grow: by pieces, or each fragment has all of them (QUIRKS row 112).
///
/// The rule is the one for text: a chain of fragments, from the first on, each of which begins with the one
/// before, shows that a server repeats itself once it is long enough.
#[derive(Clone, Copy, Debug)]
enum Growth {
    /// Each fragment so far began with the one before, which lies from `last` on.
    Chain {
        last: usize,
        links: u32,
    },
    Pieces,
    Whole,
}

impl Growth {
    const NEW: Self = Self::Chain { last: 0, links: 0 };

    /// Adds a fragment, and returns how much of it was known.
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
                    let known = text.len();
                    text.clear();
                    budget.append(text, words)?;
                    *self = Self::Whole;
                    return Ok(known.min(words.len()));
                }
                *self = Self::Chain { last: text.len(), links };
            }
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

/// Returns whether the words begin with what a text has from a place on.
fn repeats(words: &str, text: &str, from: usize) -> bool {
    text.get(from..).is_some_and(|before| !before.is_empty() && words.starts_with(before))
}

/// A fragment of which one member varies, by which its item grows.
#[derive(Debug)]
pub(crate) struct Growing {
    json: String,
    /// Where the string lies in it.
    string: Range<usize>,
    member: &'static str,
    /// Where the member stands in [`GROWING`].
    place: usize,
    /// Tells it from all others of the stream.
    pub(crate) number: u64,
}

/// A fragment of such a form with its words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grown<'a> {
    pub(crate) form: &'a Growing,
    pub(crate) words: &'a str,
    /// How long the words are in the payload.
    pub(crate) raw: usize,
}

impl Details {
    /// Adds a fragment to the list: members of text grow, others are set, in the latest item of the
    /// same index and type.
    ///
    /// It may have been given a form of that number. Returns how many bytes of it were known.
    pub(crate) fn merge(
        &mut self,
        fragment: &Value,
        form: u64,
        budget: &mut Budget,
    ) -> Result<usize, Error> {
        let mut known = 0;
        self.latest = self.merge_into(fragment, &mut known, budget)?.map(|item| (form, item));
        Ok(known)
    }

    /// Adds a fragment as [`merge`](Self::merge) does.
    ///
    /// After a fragment of the same form its item is the same again, and all that is to be set in it
    /// has been set: the words are what is left to add.
    #[inline]
    pub(crate) fn grow(
        &mut self,
        fragment: Grown<'_>,
        budget: &mut Budget,
    ) -> Result<usize, Error> {
        let Grown { form, words, .. } = fragment;
        if let Some((number, item)) = self.latest
            && number == form.number
            && let Some(Value::String(text)) = self.list[item].get_mut(form.member)
        {
            return self.growth[item][form.place].add(words, text, budget);
        }
        self.merge(&fragment.value(), form.number, budget)
    }

    /// Which item took the fragment, if the next of the same index and type is for it, too.
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
        let has_index = new.contains_key("index");
        let same = |item: &Value| {
            let same_member = |member: &str| item.get(member) == new.get(member);
            has_index && same_member("index") && same_member("type")
        };
        let latest = self.list.len().saturating_sub(LATEST);
        let place = self.list[latest..].iter().rposition(same).map(|place| latest + place);
        let item = place.map(|place| (&mut self.list[place], &mut self.growth[place]));
        let Some((Value::Object(item), growth)) = item else {
            self.push(fragment, budget)?;
            return Ok(has_index.then(|| self.list.len() - 1));
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
        budget.reserve_one(&mut self.list)?;
        budget.reserve_one(&mut self.growth)?;
        budget.hold(COPIES * held::by_value(item))?;
        self.list.push(item.clone());
        // What is sealed cannot be told from a repeat.
        self.growth.push([Growth::Pieces, Growth::NEW, Growth::NEW]);
        Ok(())
    }
}

impl Growing {
    /// The form of fragments like this one, if it is an object with one member of text.
    pub(crate) fn new(json: &str) -> Option<Self> {
        let mut strings = Vec::new();
        let mut seen = [0; GROWING.len()];
        let mut skipped = Vec::new();
        let mut reader = Reader::new(json, &mut skipped);
        let mut members = reader.object().ok()??;
        while let Some(name) = reader.member(&mut members).ok()? {
            let string = reader.string_or_absent().ok()?;
            if let Some(place) = GROWING.iter().position(|member| *member == name) {
                seen[place] += 1;
                strings.extend(string.map(|string| (string.start..string.end(), place)));
            }
        }
        let [(string, place)] = &strings[..] else { return None };
        let (member, place) = (GROWING[*place], *place);
        // Of two members of one name the last counts.
        if seen.iter().any(|times| *times > 1) {
            return None;
        }
        Some(Self { json: json.to_owned(), string: string.clone(), member, place, number: 0 })
    }

    /// The hole in a payload in which the fragment begins at `start`.
    pub(crate) fn hole(&self, start: usize) -> Option<Hole> {
        Hole::new(start + self.string.start, start + self.string.end, Kind::Detail)
    }
}

impl<'a> Grown<'a> {
    /// The fragment as the full reading makes it.
    pub(crate) fn value(self) -> Value {
        let mut value: Value = serde_json::from_str(&self.form.json).unwrap_or_default();
        value[self.form.member] = self.words.into();
        value
    }

    /// How long its JSON is.
    pub(crate) fn json_length(self) -> usize {
        self.form.json.len() - self.form.string.len() + self.raw
    }

    /// What of it is thinking.
    pub(crate) fn thinking(self) -> &'a str {
        if self.form.member == "data" { "" } else { self.words }
    }
}
