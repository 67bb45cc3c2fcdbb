//! Members beside alternatives, written into each of them.
//!
//! The grammars of llama.cpp follow `anyOf` and ignore the members beside it, so of a struct with a flattened enum, a model
//! could write only the members of the enum.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// The largest schema of members that is copied into alternatives, in bytes, for all of them together. Without a bound,
/// nested alternatives could grow without end.
const MOST: usize = 10_000;

/// Returns the alternatives of an object with the members beside them; `None` unless each is the schema of an object and
/// nothing else. `given` is the schema as it was given, `kept` as it is sent. The alternatives are closed if `is_closed`.
pub(super) fn merged(
    given: &Map<String, Value>,
    kept: &Map<String, Value>,
    is_closed: bool,
) -> Option<Vec<Value>> {
    let only = |keywords: &Map<String, Value>, known: &[&str]| {
        let is_object = keywords.get("type").is_none_or(|of| of == "object");
        is_object && keywords.keys().all(|keyword| known.contains(&&**keyword))
    };
    if !only(kept, &["additionalProperties", "anyOf", "properties", "required", "type"]) {
        return None;
    }
    let own = kept.get("properties")?.as_object()?;
    let alternatives = kept.get("anyOf")?.as_array()?;
    let additional = kept.get("additionalProperties");
    let size = kept["properties"].to_string().len().saturating_mul(alternatives.len());
    if additional == Some(&Value::Bool(false)) || size > MOST {
        return None;
    }
    let sources = given.get("anyOf").or_else(|| given.get("oneOf"))?.as_array()?;
    let merge = |(alternative, source): (&Value, &Value)| {
        let keywords = alternative.as_object()?;
        if !only(keywords, &["properties", "required", "type"]) {
            return None;
        }
        let mut properties = own.clone();
        if let Some(members) = keywords.get("properties") {
            properties.extend(members.as_object()?.clone());
        }
        // As it was given: it may require members that stand beside it.
        let required = |keywords: Option<&Value>| {
            keywords.and_then(Value::as_array).into_iter().flatten().cloned().collect::<Vec<_>>()
        };
        let mut names = required(kept.get("required"));
        names.extend(required(source.get("required")));
        let mut seen = HashSet::new();
        names.retain(|name| {
            let name = name.as_str().filter(|name| properties.contains_key(*name));
            name.is_some_and(|name| seen.insert(name.to_owned()))
        });
        let mut whole = Map::new();
        whole.insert("type".to_owned(), "object".into());
        whole.insert("properties".to_owned(), properties.into());
        whole.insert("required".to_owned(), names.into());
        let closed = is_closed.then_some(&Value::Bool(false));
        if let Some(additional) = additional.or(closed) {
            whole.insert("additionalProperties".to_owned(), additional.clone());
        }
        Some(whole.into())
    };
    alternatives.iter().zip(sources).map(merge).collect()
}
