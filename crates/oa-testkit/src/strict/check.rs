//! Checks shared by all parts of a request.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Strict, Violation};
use crate::requests::quoted;

/// A check under way.
pub(super) struct Check<'a> {
    pub(super) found: Vec<Violation>,
    pub(super) strict: &'a Strict,
}

impl Check<'_> {
    pub(super) fn say<'p>(&mut self, path: impl Into<Cow<'p, str>>, what: impl Into<String>) {
        self.found.push(Violation::new(path.into(), what));
    }

    /// Checks that it is an object with known members only, and none of them null.
    pub(super) fn object<'v>(
        &mut self,
        path: &str,
        value: &'v Value,
        known: &[&str],
    ) -> Option<&'v Map<String, Value>> {
        let Some(object) = value.as_object() else {
            self.say(path, "is not an object");
            return None;
        };
        for (name, value) in object {
            let path = at(path, name);
            let is_known =
                known.contains(&&**name) || self.strict.allowed.contains(&pattern(&path));
            if !is_known {
                self.say(path, "is not known to every server");
            } else if value.is_null() && name != "content" {
                self.say(path, "is null");
            }
        }
        Some(object)
    }

    /// Checks that it is a list with something in it.
    pub(super) fn list<'v>(&mut self, path: &str, value: &'v Value) -> Option<&'v [Value]> {
        let list = value.as_array();
        match list {
            None => self.say(path, "is not a list"),
            Some(list) if list.is_empty() => self.say(path, "is empty"),
            Some(_) => {}
        }
        list.map(Vec::as_slice)
    }

    pub(super) fn string<'v>(&mut self, path: &str, value: &'v Value) -> Option<&'v str> {
        let text = value.as_str();
        if text.is_none() {
            self.say(path, "is not a string");
        }
        text
    }

    /// Checks that it is a string with something in it.
    pub(super) fn text<'v>(&mut self, path: &str, value: &'v Value) -> Option<&'v str> {
        let text = self.string(path, value)?;
        if text.is_empty() {
            self.say(path, "is empty");
        }
        Some(text)
    }

    pub(super) fn flag(&mut self, path: &str, value: &Value) {
        if !value.is_boolean() {
            self.say(path, "is not a boolean");
        }
    }

    /// Checks a member which is one of some words.
    pub(super) fn word(
        &mut self,
        path: &str,
        object: &Map<String, Value>,
        name: &str,
        words: &[&str],
    ) {
        match member(object, name) {
            None => self.say(path, format!("has no {name}")),
            Some(value) => {
                let path = at(path, name);
                let Some(word) = self.string(&path, value) else { return };
                if !words.contains(&word) {
                    self.say(path, format!("is {}: {}", quoted(word), words.join(", ")));
                }
            }
        }
    }

    /// Checks the `name` that an object must have.
    pub(super) fn name<'v>(
        &mut self,
        path: &str,
        object: &'v Map<String, Value>,
    ) -> Option<&'v str> {
        let Some(name) = member(object, "name") else {
            self.say(path, "has no name");
            return None;
        };
        let path = at(path, "name");
        let name = self.string(&path, name)?;
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !(1..=LONGEST).contains(&name.len()) || !name.chars().all(is_letter) {
            let what = format!("is {}: 1 to {LONGEST} letters, digits, _ and -", quoted(name));
            self.say(path, what);
        }
        Some(name)
    }
}

/// Returns a member that is present and not null; null is reported separately.
pub(super) fn member<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| !value.is_null())
}

pub(super) fn entries<'v>(
    path: &str,
    list: &'v [Value],
) -> impl Iterator<Item = (String, &'v Value)> {
    list.iter().enumerate().map(move |(index, entry)| (format!("{path}[{index}]"), entry))
}

pub(super) fn at(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A path without the numbers in its brackets.
fn pattern(path: &str) -> String {
    let mut inside = false;
    let outside = |c: &char| {
        let is_number = inside && c.is_ascii_digit();
        inside = *c == '[' || is_number;
        !is_number
    };
    path.chars().filter(outside).collect()
}

pub(super) const LONGEST: usize = 64;
