use serde_json::{Map, Value, json};

use crate::pattern::is_plain;

/// The largest length and number of items in an offered schema: model servers expand them in their grammar.
const LARGEST: u64 = 1_000;
/// The largest number that every JSON parser represents exactly.
const EXACT: f64 = 9_007_199_254_740_991.0;
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Returns a schema that model servers accept: parts that they reject are left out, so the result is at least as
/// permissive as the original (they treat `oneOf` like `anyOf`). Arguments are checked against the original.
///
/// A model server that rejects one tool rejects the whole request, and grammars from contradictions such as a
/// `minLength` above the `maxLength` have been seen to exhaust its memory. The rules are those of llama.cpp's
/// converter, the strictest of the tested ones.
pub(crate) fn repaired(schema: &Value) -> Value {
    let mut keywords = schema.as_object().cloned().unwrap_or_default();
    repair(&mut keywords);
    plain_references(keywords.into())
}

/// Repairs a value in the position of a schema; `None` if nothing can match it.
fn schema(value: &Value) -> Option<Value> {
    match value {
        Value::Object(keywords) => {
            let mut keywords = keywords.clone();
            repair(&mut keywords);
            Some(keywords.into())
        }
        Value::Bool(false) => None,
        // `true`, and values that are not schemas.
        _ => Some(json!({})),
    }
}

fn repair(keywords: &mut Map<String, Value>) {
    let mut kept = Map::new();
    for (keyword, value) in std::mem::take(keywords) {
        if let Some(value) = keyword_of(&keyword, value) {
            kept.insert(keyword, value);
        }
    }
    // After the loop, so that a `minLength` that was left out does not take the `maxLength` with it.
    for (least, most) in
        [("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties")]
    {
        let number = |name| kept.get(name).and_then(Value::as_u64);
        if number(least).zip(number(most)).is_some_and(|(least, most)| least > most) {
            kept.shift_remove(least);
            kept.shift_remove(most);
        }
    }
    if is_empty_range(&kept) {
        for name in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
            kept.shift_remove(name);
        }
    }
    *keywords = kept;
}

/// Returns the offered value of a keyword; `None` if the keyword is left out.
fn keyword_of(keyword: &str, value: Value) -> Option<Value> {
    match keyword {
        "type" => of_type(value),
        "enum" => value.as_array().is_some_and(|values| !values.is_empty()).then_some(value),
        "pattern" => value.as_str().is_some_and(is_plain).then_some(value),
        "format" | "description" | "title" => value.is_string().then_some(value),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.as_u64().is_some_and(|number| number <= LARGEST).then_some(value)
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            let is_exact = value.as_f64().is_some_and(|number| number.abs() <= EXACT);
            // Draft 4 has booleans here.
            (is_exact || value.is_boolean()).then_some(value)
        }
        "required" => {
            let Value::Array(names) = value else { return None };
            Some(names.into_iter().filter(Value::is_string).collect())
        }
        "properties" | "patternProperties" | "dependentSchemas" => {
            let Value::Object(named) = value else { return None };
            let named = named.iter().filter_map(|(name, of)| Some((name.clone(), schema(of)?)));
            Some(Value::Object(named.collect()))
        }
        // Definitions that match nothing stay, unlike properties, because references may point to them.
        "$defs" | "definitions" => {
            let Value::Object(named) = value else { return None };
            let named = named.iter().map(|(name, of)| {
                (name.clone(), schema(of).unwrap_or_else(|| json!({ "not": {} })))
            });
            Some(Value::Object(named.collect()))
        }
        // A part that nothing can match is no alternative. In `allOf`, leaving it out only allows more.
        "anyOf" | "oneOf" | "allOf" => some(value.as_array()?.iter().filter_map(schema)),
        // A list ends before the first item that nothing can match.
        "prefixItems" => some(value.as_array()?.iter().map_while(schema)),
        "items" if value.is_array() => some(value.as_array()?.iter().map_while(schema)),
        // Leaving parts out would make `not` forbid more.
        "not" => (schema(&value).as_ref() == Some(&value)).then_some(value),
        "items" | "if" | "then" | "else" | "contains" | "propertyNames" | "contentSchema" => {
            value.is_object().then(|| schema(&value)).flatten()
        }
        // Booleans stay here: `false` closes an object, and strict model servers demand it.
        "additionalProperties"
        | "additionalItems"
        | "unevaluatedItems"
        | "unevaluatedProperties" => match value {
            Value::Object(_) => schema(&value),
            Value::Bool(_) => Some(value),
            _ => None,
        },
        _ => Some(value),
    }
}

fn of_type(value: Value) -> Option<Value> {
    let is_known = |of: &Value| of.as_str().is_some_and(|of| TYPES.contains(&of));
    match value {
        Value::Array(of) => {
            let known: Vec<_> = of.into_iter().filter(is_known).collect();
            (!known.is_empty()).then(|| known.into())
        }
        value => is_known(&value).then_some(value),
    }
}

fn some(parts: impl Iterator<Item = Value>) -> Option<Value> {
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| parts.into())
}

/// Returns true if the bounds of a number may allow no number, or no whole number.
fn is_empty_range(keywords: &Map<String, Value>) -> bool {
    let number = |name| keywords.get(name).and_then(Value::as_f64);
    let (least, above) = (number("minimum"), number("exclusiveMinimum"));
    let (most, below) = (number("maximum"), number("exclusiveMaximum"));
    let lower = [least, above].into_iter().flatten().reduce(f64::max);
    let upper = [most, below].into_iter().flatten().reduce(f64::min);
    let Some((lower, upper)) = lower.zip(upper) else { return false };
    // Bounds that are 2 apart have a whole number between them, even if they are fractions or exclusive.
    // Closer ones, such as 0.2 and 0.8, are taken for empty, except closed whole ones, which may be equal.
    let is_whole = lower.fract() == 0.0 && upper.fract() == 0.0;
    let is_closed = above.is_none()
        && below.is_none()
        && !keywords.get("exclusiveMinimum").is_some_and(Value::is_boolean)
        && !keywords.get("exclusiveMaximum").is_some_and(Value::is_boolean);
    upper - lower < if is_whole && is_closed { 0.0 } else { 2.0 }
}

/// Replaces references that model servers do not follow: those to the root schema and those with escapes. Their targets
/// are copied to new definitions.
fn plain_references(mut root: Value) -> Value {
    // An example, where R is `{ "$ref": "#/$defs/part_1" }`:
    //   before: { "items": { "$ref": "#" } }
    //   after:  { "items": R, "$defs": { "part_1": { "items": R } } }
    let mut found = Vec::new();
    references(&root, &mut found);
    if found.is_empty() {
        return root;
    }
    let home = if root.get("definitions").is_some() && root.get("$defs").is_none() {
        "definitions"
    } else {
        "$defs"
    };
    // The server's own definitions may have such names.
    let is_taken = |name: &str| root.get(home).is_some_and(|defs| defs.get(name).is_some());
    let mut moved = Vec::new();
    let mut number = 0_usize;
    for reference in found {
        let name = loop {
            number += 1;
            let name = format!("part_{number}");
            if !is_taken(&name) {
                break name;
            }
        };
        let mut part = resolve(&root, &reference).cloned().unwrap_or_else(|| json!({}));
        // Definitions stay at the root: in the copy, they would double the size for nothing.
        if let (Value::Object(part), "#") = (&mut part, &*reference) {
            part.shift_remove("$defs");
            part.shift_remove("definitions");
        }
        moved.push((reference, name, part));
    }
    if let Value::Object(keywords) = &mut root {
        let defs = keywords.entry(home).or_insert_with(|| json!({}));
        for (_, name, part) in &moved {
            defs[name.as_str()] = part.clone();
        }
    }
    // After the copies are in place, because they contain such references, too.
    rename(&mut root, &|reference| {
        let (_, name, _) = moved.iter().find(|(from, ..)| from == reference)?;
        Some(format!("#/{home}/{name}"))
    });
    root
}

/// Collects the references that model servers do not follow, without duplicates.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                let is_plain = reference != "#" && !reference.contains(['~', '%']);
                if !is_plain && !found.contains(reference) {
                    found.push(reference.clone());
                }
            }
            members.values().for_each(|value| references(value, found));
        }
        _ => {}
    }
}

fn rename(value: &mut Value, to: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| rename(value, to)),
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) = to(reference)
            {
                *reference = name;
            }
            members.values_mut().for_each(|value| rename(value, to));
        }
        _ => {}
    }
}

/// Returns the target of a reference within a schema.
pub(crate) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&unescaped(reference.strip_prefix('#')?)?)
}

/// Decodes URL escapes such as `%20`.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        // A fragment is escaped twice: `%2F` is decoded here, `~1` by `Value::pointer`.
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rejected_keywords_are_left_out() {
        let of = |schema: Value| {
            repaired(&json!({ "properties": { "a": schema } }))["properties"]["a"].clone()
        };
        assert_eq!(of(json!(true)), json!({}));
        assert_eq!(of(json!("string")), json!({}));
        assert_eq!(of(json!(false)), Value::Null, "nothing matches it");
        assert_eq!(of(json!({ "type": "any" })), json!({}));
        assert_eq!(of(json!({ "type": ["string", "file"] })), json!({ "type": ["string"] }));
        assert_eq!(of(json!({ "enum": [], "anyOf": [] })), json!({}));
        assert_eq!(
            of(json!({ "anyOf": [true, { "type": "string" }, false] })),
            json!({ "anyOf": [{}, { "type": "string" }] })
        );
        assert_eq!(
            of(json!({ "items": false, "prefixItems": [true] })),
            json!({ "prefixItems": [{}] })
        );
        assert_eq!(
            of(json!({ "prefixItems": [{ "type": "string" }, false, { "type": "null" }] })),
            json!({ "prefixItems": [{ "type": "string" }] })
        );
        let short = json!({ "not": { "type": "string", "maxLength": 5 } });
        assert_eq!(of(short.clone()), short);
        assert_eq!(of(json!({ "not": { "type": "string", "minLength": 5_000 } })), json!({}));
        assert_eq!(of(json!({ "minLength": 5, "maxLength": 1 })), json!({}));
        assert_eq!(of(json!({ "minLength": 5_000, "maxLength": 5 })), json!({ "maxLength": 5 }));
        assert_eq!(of(json!({ "minimum": 5, "maximum": 1 })), json!({}));
        assert_eq!(of(json!({ "minimum": 0.2, "maximum": 0.8 })), json!({}), "no whole number");
        assert_eq!(of(json!({ "exclusiveMinimum": 1, "exclusiveMaximum": 2 })), json!({}));
        assert_eq!(
            of(json!({ "minimum": 1, "maximum": 1 })),
            json!({ "minimum": 1, "maximum": 1 })
        );
        assert_eq!(of(json!({ "minimum": -1e30, "maximum": 5 })), json!({ "maximum": 5 }));
        assert_eq!(of(json!({ "pattern": "^[a-z$", "format": 5 })), json!({}));
        assert_eq!(of(json!({ "properties": [], "additionalProperties": "x" })), json!({}));
    }

    #[test]
    fn rejected_references_become_definitions() {
        let tree = json!({
            "type": "object",
            "properties": { "children": { "type": "array", "items": { "$ref": "#" } } },
        });
        let part = json!({
            "type": "object",
            "properties": { "children": { "type": "array", "items": { "$ref": "#/$defs/part_1" } } },
        });
        let mut expected = part.clone();
        expected["$defs"] = json!({ "part_1": part });
        assert_eq!(repaired(&tree), expected);

        let escaped = json!({
            "properties": { "a": { "$ref": "#/definitions/a~1b" }, "b": { "$ref": "#/definitions/a%2Fb%20" } },
            "definitions": { "a/b": { "type": "string" }, "part_1": {}, "a": { "b ": { "type": "null" } } },
        });
        let repaired = repaired(&escaped);
        assert_eq!(repaired["properties"]["a"]["$ref"], "#/definitions/part_2");
        assert_eq!(repaired["definitions"]["part_2"], json!({ "type": "string" }));
        assert_eq!(repaired["properties"]["b"]["$ref"], "#/definitions/part_3");
        assert_eq!(repaired["definitions"]["part_3"], json!({ "type": "null" }));
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop::sample::select(vec![
            json!({ "type": "string" }),
            json!({ "type": "any" }),
            json!({ "$ref": "#" }),
            json!({ "$ref": "#/$defs/x~0" }),
            json!(true),
            json!(false),
            json!(null),
            json!(7),
            json!([]),
            json!({ "enum": [] }),
            json!({ "minLength": 3, "maxLength": 1 }),
            json!({ "pattern": "a{2,1}" }),
        ]);
        leaf.prop_recursive(4, 40, 4, |inner| {
            let keyword = prop::sample::select(vec![
                "properties",
                "$defs",
                "anyOf",
                "allOf",
                "items",
                "additionalProperties",
                "not",
                "const",
            ]);
            prop_oneof![
                (keyword.clone(), inner.clone()).prop_map(|(keyword, one)| json!({ keyword: one })),
                (keyword.clone(), prop::collection::vec(inner.clone(), 0..3))
                    .prop_map(|(keyword, some)| json!({ keyword: some })),
                (keyword, prop::collection::vec(inner, 0..3)).prop_map(|(keyword, some)| {
                    let named: Map<_, _> =
                        some.into_iter().enumerate().map(|(n, of)| (n.to_string(), of)).collect();
                    json!({ keyword: named })
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn repair_is_idempotent(schema in any_schema()) {
            let once = repaired(&schema);
            prop_assert_eq!(&repaired(&once), &once);
            let text = once.to_string();
            prop_assert!(!text.contains("\"$ref\":\"#\"") && !text.contains("x~0"), "{}", text);
        }
    }
}
