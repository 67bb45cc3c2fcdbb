//! Problems of values that match none of several schemas.

use std::slice;

use serde_json::{Map, Value};

use super::{Check, Path, found, named};
use crate::bounds::is_same;
use crate::keywords::{is_of, words};
use crate::members::find;

impl<'a> Check<'a> {
    /// Reports the problem with the alternative that was meant, or that the value matches none.
    pub(super) fn no_part_fits(
        &mut self,
        parts: &'a [Value],
        value: &Value,
        path: &Path<'_>,
        depth: usize,
    ) {
        // To look for the problem doubles the work, so attempts at each level of nested alternatives would exhaust it.
        if self.is_attempt {
            self.error.count += 1;
            return;
        }
        let mut types = Vec::new();
        let mut near = Vec::new();
        for part in parts {
            let of = self.word(part, "type", depth - 1);
            types.extend(of.map(words).filter(|of| !types.contains(of)));
            if of.is_none_or(|of| is_of(of, value)) {
                near.push(part);
            }
        }
        if near.is_empty() {
            let problem = || format!("expected {}, found {}", types.join(" or "), found(value));
            return self.problem(path, problem);
        }
        let before = self.error.count;
        if let Some(members) = value.as_object().filter(|_| near.len() > 1) {
            self.keep_meant(&mut near, members, path, depth);
        }
        if self.error.count > before {
            return;
        }
        if let [part] = near[..] {
            // Alternatives that do not match are not completed either.
            let was_incomplete = std::mem::replace(&mut self.is_incomplete, true);
            self.value(part, value, path, depth - 1);
            self.is_incomplete = was_incomplete;
            // It would match once completed, but completing was given up. Report what is missing: without a problem,
            // the arguments would pass.
            if self.error.count == before {
                self.value(part, value, path, depth - 1);
            }
            return;
        }
        let members: Vec<_> =
            near.iter().filter_map(|part| self.only_member(part, depth)).collect();
        if members.len() == near.len() {
            let names = members.iter().map(|name| format!("{name:?}"));
            return self.problem(path, || {
                format!("expected an object with one of the members {}", named(names))
            });
        }
        let listed: Vec<_> = near.iter().map(|part| self.listed(part, depth)).collect();
        self.problem(path, || match listed.iter().all(|listed| !listed.is_empty()) {
            true => format!("expected one of {}, found {}", all(&listed), found(value)),
            false => format!("{} matches none of the alternatives", found(value)),
        });
    }

    /// Drops the alternatives that an object was not meant to match, or reports why it can be none of them.
    ///
    /// Members with a fixed value tell them apart, as in `{"kind": "circle", ..}`; otherwise the names of the members,
    /// as in `{"circle": {..}}`. These are the ways in which serde writes an enum.
    fn keep_meant(
        &mut self,
        near: &mut Vec<&'a Value>,
        members: &Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) {
        let names = near.first().and_then(|first| self.properties(first, depth));
        for name in names.into_iter().flat_map(Map::keys) {
            let listed: Vec<_> = near.iter().map(|part| self.tags(part, name, depth)).collect();
            if listed.iter().any(|listed| listed.is_empty()) {
                continue;
            }
            let path = Path::Member(path, name);
            let Some(member) = find(members, name) else {
                return self.problem(&path, || {
                    format!("required, but missing; expected one of {}", all(&listed))
                });
            };
            let is_listed = |listed: &[Value]| listed.iter().any(|one| is_same(one, member));
            if !listed.iter().any(|listed| is_listed(listed)) {
                return self.problem(&path, || {
                    format!("expected one of {}, found {}", all(&listed), found(member))
                });
            }
            let mut listed = listed.iter();
            near.retain(|_| listed.next().is_some_and(|listed| is_listed(listed)));
        }
        let mut meant = near.clone();
        meant.retain(|part| {
            let known = self.properties(part, depth);
            known.is_some_and(|known| members.keys().all(|name| find(known, name).is_some()))
        });
        if meant.len() == 1 && !members.is_empty() {
            *near = meant;
        }
    }

    /// Returns the values of a required property without a default; none if the schema does not list them.
    fn tags(&mut self, part: &'a Value, name: &str, depth: usize) -> &'a [Value] {
        let property = self.properties(part, depth).and_then(|of| find(of, name));
        let required = self.word(part, "required", depth - 1).and_then(Value::as_array);
        let is_required = required.is_some_and(|of| of.iter().any(|required| required == name));
        match property.filter(|_| is_required) {
            Some(of) if self.word(of, "default", depth - 1).is_none() => self.listed(of, depth),
            _ => &[],
        }
    }

    /// Returns the values that a schema allows; none if it does not list them.
    fn listed(&mut self, schema: &'a Value, depth: usize) -> &'a [Value] {
        match self.word(schema, "const", depth - 1) {
            Some(only) => slice::from_ref(only),
            None => {
                let listed = self.word(schema, "enum", depth - 1).and_then(Value::as_array);
                listed.map(Vec::as_slice).unwrap_or_default()
            }
        }
    }

    /// Returns the name of the member that an object has, if the schema allows no other.
    fn only_member(&mut self, part: &'a Value, depth: usize) -> Option<&'a str> {
        let required = self.word(part, "required", depth - 1).and_then(Value::as_array)?;
        let is_closed =
            self.word(part, "additionalProperties", depth - 1) == Some(&Value::Bool(false));
        match &required[..] {
            [name] if is_closed => name.as_str(),
            _ => None,
        }
    }

    fn properties(&mut self, part: &'a Value, depth: usize) -> Option<&'a Map<String, Value>> {
        self.word(part, "properties", depth - 1).and_then(Value::as_object)
    }
}

/// Names the values of all alternatives.
fn all(listed: &[&[Value]]) -> String {
    named(listed.iter().copied().flatten().map(ToString::to_string))
}
