//! JSON Schemas without the keywords that servers cannot compile.

use serde_json::{Map, Value};

/// Keywords that restrict a value beyond its type and its members. Grammars support only some of them, and large numbers
/// make a grammar too large (QUIRKS row 133).
const RESTRICTIONS: [&str; 14] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "uniqueItems",
];

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

/// The nesting depth to which schemas are changed.
const DEPTH: usize = 64;

/// Moves the restrictions in a schema, and in the schemas within it, to their descriptions, where the model still reads
/// them.
pub(super) fn make_plain(schema: &mut Value) {
    plain(schema, DEPTH);
}

fn plain(schema: &mut Value, depth: usize) {
    let (Value::Object(keywords), Some(depth)) = (schema, depth.checked_sub(1)) else { return };
    let mut moved = Vec::new();
    keywords.retain(|word, value| {
        let is_kept = !RESTRICTIONS.contains(&&**word);
        if !is_kept {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            moved.push(format!("{word}: {value}"));
        }
        is_kept
    });
    if !moved.is_empty() {
        describe(keywords, &moved.join(", "));
    }
    for (word, value) in keywords {
        match value {
            Value::Array(list) if OF_SCHEMAS.contains(&&**word) => {
                list.iter_mut().for_each(|part| plain(part, depth));
            }
            Value::Object(named) if OF_NAMES.contains(&&**word) => {
                named.values_mut().for_each(|part| plain(part, depth));
            }
            value if OF_SCHEMAS.contains(&&**word) => plain(value, depth),
            _ => {}
        }
    }
}

fn describe(keywords: &mut Map<String, Value>, words: &str) {
    let description = keywords.entry("description").or_insert_with(|| "".into());
    if let Value::String(text) = description {
        let space = if text.is_empty() { "" } else { " " };
        text.push_str(&format!("{space}({words})"));
    }
}
