//! Keywords of a JSON Schema. A keyword whose value has the wrong type is ignored.

use std::iter;

use oa_types::resolve;
use serde_json::{Map, Value};

use crate::members::find;

/// The longest chain of references followed from one schema. A circle ends here too.
const REFERENCES: usize = 16;

/// A schema, the schema that it references, and so on: all apply to the same value.
pub(crate) struct Layers<'a> {
    root: &'a Value,
    next: Option<&'a Value>,
    left: usize,
}

impl<'a> Layers<'a> {
    pub(crate) fn new(root: &'a Value, schema: &'a Value) -> Self {
        Self { root, next: Some(schema), left: REFERENCES }
    }
}

impl<'a> Iterator for Layers<'a> {
    type Item = &'a Value;

    fn next(&mut self) -> Option<&'a Value> {
        let layer = self.next.take()?;
        if let Some(reference) =
            layer.as_object().and_then(|of| find(of, "$ref")).and_then(Value::as_str)
            && let Some(left) = self.left.checked_sub(1)
        {
            self.left = left;
            // `#` and `#/path` lead into this schema. Anchors (`#name`) and other documents are not followed:
            // what they would forbid passes.
            self.next = resolve(self.root, reference);
        }
        Some(layer)
    }
}

/// Returns the items of a keyword that is a list; none if it is missing.
pub(crate) fn list<'a>(schema: &'a Map<String, Value>, word: &str) -> &'a [Value] {
    find(schema, word).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the schemas of a list's items, by position.
pub(crate) fn item_schemas(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    // Since draft 2020-12, `items` is about those after `prefixItems`. Before, a list as `items` was about
    // the first ones, and `additionalItems` about the rest.
    let (first, rest) = match find(schema, "items") {
        Some(Value::Array(first)) => (&**first, find(schema, "additionalItems")),
        rest => (list(schema, "prefixItems"), rest),
    };
    first.iter().chain(rest.into_iter().flat_map(iter::repeat))
}

/// Returns the schema of members that are not among the properties, if it is known which these are.
pub(crate) fn additional(schema: &Map<String, Value>) -> Option<&Value> {
    let patterns = find(schema, "patternProperties").and_then(Value::as_object);
    find(schema, "additionalProperties").filter(|_| patterns.is_none_or(Map::is_empty))
}

/// Returns true if a value has the given type or one of several. Unknown types accept everything.
pub(crate) fn is_of(of: &Value, value: &Value) -> bool {
    match of {
        Value::Array(types) => types.iter().any(|of| is_of(of, value)),
        Value::String(of) => match &**of {
            "array" => value.is_array(),
            "boolean" => value.is_boolean(),
            "integer" => {
                value.is_i64()
                    || value.is_u64()
                    || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            "null" => value.is_null(),
            "number" => value.is_number(),
            "object" => value.is_object(),
            "string" => value.is_string(),
            _ => true,
        },
        _ => true,
    }
}

/// Returns true if a type accepts integers but no other numbers.
pub(crate) fn wants_integer(of: &Value) -> bool {
    match of {
        Value::Array(types) => {
            types.iter().any(wants_integer) && !types.iter().any(|of| of == "number")
        }
        of => of == "integer",
    }
}

/// Formats a type or list of types.
pub(crate) fn words(of: &Value) -> String {
    match of {
        Value::Array(types) => types.iter().map(words).collect::<Vec<_>>().join(" or "),
        Value::String(of) => of.clone(),
        _ => "something else".to_owned(),
    }
}
