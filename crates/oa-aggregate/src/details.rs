//! Reasoning details: fragments of a list that goes back to the server (QUIRKS rows 30, 41, 42).

use std::ops::Range;

use oa_types::held;
use serde_json::Value;

use crate::budget::{Budget, COPIES};
use crate::error::Error;
use crate::hole::{Hole, Kind};
use crate::json::Reader;

/// How far back the item of a fragment is looked for; looking through all of them each time would be
/// quadratic.
const LATEST: usize = 64;

/// Members of text, which grow; others are set.
const GROWING: [&str; 3] = ["data", "summary", "text"];

/// The list as it grows.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub(crate) list: Vec<Value>,
    /// The form of the fragment that was taken last, and the item that took it.
    latest: Option<(u64, usize)>,
}

/// A fragment of which one member varies, by which its item grows.
#[derive(Debug)]
pub(crate) struct Growing {
    json: String,
    /// Where the string lies in it.
    string: Range<usize>,
    member: &'static str,
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
    /// It may have been given a form of that number.
    pub(crate) fn merge(
        &mut self,
        fragment: &Value,
        form: u64,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        self.latest = self.merge_into(fragment, budget)?.map(|item| (form, item));
        Ok(())
    }

    /// Adds a fragment as [`merge`](Self::merge) does.
    ///
    /// After a fragment of the same form its item is the same again, and all that is to be set in it
    /// has been set: the words are what is left to add.
    #[inline]
    pub(crate) fn grow(&mut self, fragment: Grown<'_>, budget: &mut Budget) -> Result<(), Error> {
        let Grown { form, words, .. } = fragment;
        if let Some((number, item)) = self.latest
            && number == form.number
            && let Some(Value::String(text)) = self.list[item].get_mut(form.member)
        {
            return budget.append(text, words);
        }
        self.merge(&fragment.value(), form.number, budget)
    }

    /// Which item took the fragment, if the next of the same index and type is for it, too.
    fn merge_into(
        &mut self,
        fragment: &Value,
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
        let Some(Value::Object(item)) = place.map(|place| &mut self.list[place]) else {
            self.push(fragment, budget)?;
            return Ok(has_index.then(|| self.list.len() - 1));
        };
        for (member, value) in new {
            match (item.get_mut(member), value) {
                (_, Value::Null) => {}
                (Some(Value::String(text)), Value::String(more))
                    if GROWING.contains(&&**member) =>
                {
                    budget.append(text, more)?;
                }
                (Some(old), value) => {
                    budget.hold(COPIES * held::by_value(value))?;
                    budget.release(COPIES * held::by_value(old));
                    old.clone_from(value);
                }
                (None, value) => {
                    budget.hold_value(member, value)?;
                    item.insert(member.clone(), value.clone());
                }
            }
        }
        Ok(place)
    }

    fn push(&mut self, item: &Value, budget: &mut Budget) -> Result<(), Error> {
        budget.reserve_one(&mut self.list)?;
        budget.hold(COPIES * held::by_value(item))?;
        self.list.push(item.clone());
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
                strings.extend(string.map(|string| (string.start..string.end(), GROWING[place])));
            }
        }
        let [(string, member)] = &strings[..] else { return None };
        // Of two members of one name the last counts.
        if seen.iter().any(|times| *times > 1) {
            return None;
        }
        Some(Self { json: json.to_owned(), string: string.clone(), member, number: 0 })
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
