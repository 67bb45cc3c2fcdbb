//! JSON Schemas for chat templates that expect one type for each parameter.

use std::mem;

use serde_json::{Map, Value, json};

use super::subschemas::{DEPTH, describe, for_each};
use crate::reference::merge_schema;

/// Gives each schema in the schema of a tool one type (QUIRKS row 137): the first one that is not null, if there are
/// several. The others are added to its description.
pub(super) fn give_types(schema: &mut Value) {
    give_type(schema, DEPTH);
}

fn give_type(schema: &mut Value, depth: usize) {
    if schema.is_boolean() {
        *schema = json!({});
    }
    let (Value::Object(keywords), Some(depth)) = (schema, depth.checked_sub(1)) else { return };
    merge_all(keywords);
    take_only_choice(keywords);
    for_each(keywords, &mut |part| give_type(part, depth));
    let mut types = types_of(keywords);
    let is_nullable = types.iter().any(|of| of == "null") && types.len() > 1;
    if is_nullable {
        types.retain(|of| of != "null");
        keywords.insert("nullable".to_owned(), true.into());
    }
    let Some((first, others)) = types.split_first() else { return };
    if !others.is_empty() {
        describe(keywords, &format!("or {}", others.join(" or ")));
    }
    keywords.insert("type".to_owned(), first.clone().into());
}

/// Merges the schemas that all apply.
fn merge_all(keywords: &mut Map<String, Value>) {
    let parts = match keywords.get("allOf") {
        Some(Value::Array(parts)) if parts.iter().all(Value::is_object) => parts.clone(),
        _ => return,
    };
    keywords.retain(|word, _| word != "allOf");
    let mut merged = Map::new();
    for part in parts {
        if let Value::Object(part) = part {
            merge_schema(&mut merged, part);
        }
    }
    merge_schema(&mut merged, mem::take(keywords));
    *keywords = merged;
}

/// Merges the only choice that a schema has, apart from null.
fn take_only_choice(keywords: &mut Map<String, Value>) {
    for word in ["anyOf", "oneOf"] {
        let Some(Value::Array(parts)) = keywords.get(word) else { continue };
        let is_null = |part: &&Value| part.get("type").is_some_and(|of| of == "null");
        let mut others = parts.iter().filter(|part| !is_null(part));
        let (Some(Value::Object(only)), None) = (others.next(), others.next()) else { continue };
        let (mut merged, is_nullable) = (only.clone(), parts.len() > 1);
        keywords.retain(|known, _| known != word);
        merge_schema(&mut merged, mem::take(keywords));
        if is_nullable {
            merged.insert("nullable".to_owned(), true.into());
        }
        *keywords = merged;
    }
}

/// Returns the types that a value of a schema may have, each once and at least one.
fn types_of(keywords: &Map<String, Value>) -> Vec<String> {
    let of_part = |part: &Value| Some(part.get("type")?.as_str()?.to_owned());
    let parts = |word: &str| keywords.get(word).and_then(Value::as_array).into_iter().flatten();
    let mut types: Vec<String> = match keywords.get("type") {
        Some(Value::String(of)) => vec![of.clone()],
        Some(Value::Array(of)) => of.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => ["allOf", "anyOf", "oneOf"].into_iter().flat_map(parts).filter_map(of_part).collect(),
    };
    if types.is_empty() {
        types =
            parts("enum").chain(keywords.get("const")).map(|of| type_of(of).to_owned()).collect();
    }
    let mut seen = Vec::new();
    types.retain(|of| {
        let is_new = !seen.contains(of);
        seen.push(of.clone());
        is_new
    });
    if types.is_empty() {
        let has = |words: &[&str]| words.iter().any(|word| keywords.contains_key(*word));
        let usual = if has(&["properties", "additionalProperties", "patternProperties", "$ref"]) {
            "object"
        } else if has(&["items", "prefixItems"]) {
            "array"
        } else {
            // It may be anything.
            "string"
        };
        types.push(usual.to_owned());
    }
    types
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Object(_) => "object",
        Value::String(_) => "string",
    }
}
