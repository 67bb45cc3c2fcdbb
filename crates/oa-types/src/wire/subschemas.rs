//! The schemas within a JSON Schema.

use serde_json::{Map, Value};

/// The nesting depth to which schemas are changed.
pub(super) const DEPTH: usize = 64;

/// Keywords whose members are schemas.
const OF_NAMES: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Keywords that have a schema, or a list of schemas.
const OF_SCHEMAS: [&str; 11] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "else",
    "if",
    "items",
    "oneOf",
    "prefixItems",
    "then",
];

/// Keywords for which booleans are common, and accepted by all servers.
const OF_BOOLEANS: [&str; 2] = ["additionalItems", "additionalProperties"];

/// Calls `visit` for each schema directly within a schema. Booleans are schemas, too, where they are not accepted by all
/// servers.
pub(super) fn for_each(keywords: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Value)) {
    for (word, value) in keywords {
        let word = &**word;
        match value {
            Value::Bool(_) if OF_BOOLEANS.contains(&word) => {}
            Value::Array(list) if OF_SCHEMAS.contains(&word) => {
                list.iter_mut().for_each(&mut *visit);
            }
            Value::Object(named) if OF_NAMES.contains(&word) => {
                named.values_mut().for_each(&mut *visit);
            }
            value if OF_SCHEMAS.contains(&word) => visit(value),
            _ => {}
        }
    }
}

/// Adds words in parentheses to the description of a schema.
pub(super) fn describe(keywords: &mut Map<String, Value>, words: &str) {
    let description = keywords.entry("description").or_insert_with(|| "".into());
    if let Value::String(text) = description {
        let space = if text.is_empty() { "" } else { " " };
        text.push_str(&format!("{space}({words})"));
    }
}
