//! Members of arguments that a schema does not name.

use serde_json::{Map, Value};

use super::{ArgumentError, Check, DEPTH};
use crate::keywords::{item_schemas, list};
use crate::members::find;

/// Keywords next to which it is unknown which members an object may have.
const OPENING: [&str; 6] =
    ["patternProperties", "propertyNames", "if", "dependentSchemas", "dependencies", "$dynamicRef"];
/// Keywords whose schemas apply to the same value.
const APPLYING: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];

/// Removes the members that a schema does not name, at any depth, from objects whose members it lists. Returns true if
/// there were any.
///
/// The schema of a type may name less than the type reads: it has neither serde's `alias` nor fields that it skips. Rules
/// and people know the names of the schema, so a value under another name would pass them unseen.
///
/// # Errors
///
/// If the arguments are too large or too deeply nested.
pub(crate) fn remove_unnamed(schema: &Value, input: &mut Value) -> Result<bool, ArgumentError> {
    let mut check = Check::new(schema, input);
    let mut has_removed = false;
    let mut open = vec![(vec![schema], input)];
    while let Some((schemas, value)) = open.pop() {
        let mut known = Known::default();
        for schema in schemas {
            check.know(schema, value, &mut known, DEPTH);
        }
        match value {
            Value::Array(items) => {
                let mut schemas: Vec<_> =
                    known.keywords.iter().map(|keywords| item_schemas(keywords)).collect();
                for item in items {
                    open.push((schemas.iter_mut().filter_map(Iterator::next).collect(), item));
                }
            }
            Value::Object(members) => {
                // Without a schema, a value may be anything.
                if !known.is_open && !known.keywords.is_empty() {
                    let before = members.len();
                    members.retain(|name, _| known.names(name));
                    has_removed |= members.len() < before;
                }
                for (name, member) in members {
                    open.push((known.of_member(name), member));
                }
            }
            _ => {}
        }
    }
    if check.work == 0 { Err(ArgumentError::too_large()) } else { Ok(has_removed) }
}

/// The keywords that apply to a value.
#[derive(Default)]
struct Known<'a> {
    keywords: Vec<&'a Map<String, Value>>,
    /// True if an object may have members that are not named.
    is_open: bool,
}

impl<'a> Known<'a> {
    fn names(&self, name: &str) -> bool {
        self.keywords.iter().any(|keywords| property(keywords, name).is_some())
    }

    fn of_member(&self, name: &str) -> Vec<&'a Value> {
        let of = |keywords: &&'a Map<String, Value>| {
            property(keywords, name).or_else(|| find(keywords, "additionalProperties"))
        };
        self.keywords.iter().filter_map(of).collect()
    }
}

fn property<'a>(keywords: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    find(keywords, "properties")?.as_object().and_then(|of| find(of, name))
}

/// Returns true if keywords, without the schemas that apply to the same value, allow members that they do not name.
fn is_open(keywords: &Map<String, Value>) -> bool {
    let allows = |word| find(keywords, word).is_some_and(|of| of != &Value::Bool(false));
    allows("additionalProperties")
        || allows("unevaluatedProperties")
        || OPENING.iter().any(|word| find(keywords, word).is_some())
}

impl<'a> Check<'a> {
    /// Collects the keywords that apply to a value. Of alternatives, these are the ones that it matches.
    fn know(&mut self, schema: &'a Value, value: &Value, known: &mut Known<'a>, depth: usize) {
        let mut layers = self.layers(schema).peekable();
        while let Some(layer) = layers.next() {
            let Some(keywords) = self.enter(layer, depth) else {
                // Any value, or a schema that was not reached.
                known.is_open |= layer != &Value::Bool(false);
                return;
            };
            let has_other = APPLYING.iter().any(|word| find(keywords, word).is_some());
            let is_unresolved = layers.peek().is_none() && find(keywords, "$ref").is_some();
            let lists_members = find(keywords, "properties").is_some() || has_other;
            let is_closed = find(keywords, "additionalProperties") == Some(&Value::Bool(false));
            known.is_open |= is_open(keywords) || is_unresolved || !(lists_members || is_closed);
            known.keywords.push(keywords);
            for part in list(keywords, "allOf") {
                self.know(part, value, known, depth - 1);
            }
            for word in ["anyOf", "oneOf"] {
                let parts = list(keywords, word);
                let matching: Vec<_> =
                    parts.iter().filter(|part| self.fits(part, value, depth - 1)).collect();
                for part in matching {
                    self.know(part, value, known, depth - 1);
                }
            }
        }
    }
}
