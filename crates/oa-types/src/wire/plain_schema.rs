//! JSON Schemas without what servers cannot compile.

use serde_json::{Value, json};

use super::subschemas::{DEPTH, describe, for_each};

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

/// Moves the restrictions in a schema, and in the schemas within it, to their descriptions, where the model still reads
/// them. `true` and `false` become schemas that are objects (row 138).
pub(super) fn make_plain(schema: &mut Value) {
    plain(schema, DEPTH);
}

fn plain(schema: &mut Value, depth: usize) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        Value::Bool(false) => *schema = json!({ "not": {} }),
        _ => {}
    }
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
    for_each(keywords, &mut |part| plain(part, depth));
}
