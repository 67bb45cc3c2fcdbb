use std::collections::{HashMap, HashSet};

use oa_types::resolve;
use serde_json::{Map, Value, json};

use crate::pattern::plain;
use crate::subschemas::{below, visit_below};

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
///
/// `None` if the result has more than `most` bytes.
pub(crate) fn repaired(original: &Value, most: usize) -> Option<Value> {
    let repaired = schema(original).filter(Value::is_object).unwrap_or_else(|| json!({}));
    plain_references(original, repaired, most)
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

/// Repairs a value to which references may point, so it cannot be left out.
fn definition(value: &Value) -> Value {
    schema(value).unwrap_or_else(|| json!({ "not": {} }))
}

fn repair(keywords: &mut Map<String, Value>) {
    let mut kept = Map::new();
    for (keyword, value) in &*keywords {
        if let Some(value) = keyword_of(keyword, value.clone()) {
            kept.insert(keyword.clone(), value);
        }
    }
    leave_out_dependents(keywords, &mut kept);
    // Bounds that exclude each other mean nothing, also if one of them was left out: arguments are accepted without
    // both.
    for (least, most) in
        [("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties")]
    {
        let number = |name| keywords.get(name).and_then(Value::as_u64);
        if number(least).zip(number(most)).is_some_and(|(least, most)| least > most) {
            kept.shift_remove(least);
            kept.shift_remove(most);
        }
    }
    if is_empty_range(keywords) {
        for name in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
            kept.shift_remove(name);
        }
    }
    *keywords = kept;
}

/// Replaces the boolean bounds of draft 4 by numbers: `"minimum": 0` with `"exclusiveMinimum": true` by
/// `"exclusiveMinimum": 0`.
pub(crate) fn modern_bounds(keywords: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(Value::Bool(is_exclusive)) = keywords.get(exclusive) else { continue };
        match keywords.get(bound).filter(|bound| bound.is_number()).cloned() {
            Some(number) if *is_exclusive => {
                keywords.insert(exclusive.to_owned(), number);
                keywords.shift_remove(bound);
            }
            // Without a bound, it means nothing.
            _ => drop(keywords.shift_remove(exclusive)),
        }
    }
}

/// Leaves out the keywords that would forbid more because another one was changed or left out.
fn leave_out_dependents(original: &Map<String, Value>, kept: &mut Map<String, Value>) {
    let mut left_out = Vec::new();
    let is_changed = |name: &&str| original.get(*name) != kept.get(*name);
    if is_changed(&"if") {
        left_out.extend(["then", "else"]);
    }
    // More items would match, or none of a part that was left out; without a `minContains`, it is 1.
    let counts = kept.contains_key("maxContains");
    let may_match_more = is_changed(&"contains") || original.get("contains").is_some_and(refers);
    if (counts && may_match_more) || is_changed(&"minContains") {
        left_out.extend(["contains", "minContains", "maxContains"]);
    }
    // These count what they match as evaluated. If they match less, more is left to the keywords for the rest.
    let applied = ["allOf", "anyOf", "oneOf", "dependentSchemas", "if", "then", "else", "contains"];
    let may_match_less =
        |name: &&str| is_changed(name) || original.get(*name).is_some_and(any_refers);
    let refers_itself = original.contains_key("$ref") || original.contains_key("$dynamicRef");
    if !left_out.is_empty() || refers_itself || applied.iter().any(may_match_less) {
        left_out.extend(["unevaluatedItems", "unevaluatedProperties"]);
    }
    for name in left_out {
        kept.shift_remove(name);
    }
}

/// Returns true if the repair changes neither the schema nor anything that it refers to.
fn is_exact(value: &Value) -> bool {
    !refers(value) && schema(value).as_ref() == Some(value)
}

/// Returns true if a schema, or one of the schemas in a list or an object, refers to another.
fn any_refers(value: &Value) -> bool {
    match value {
        Value::Array(parts) => parts.iter().any(refers),
        Value::Object(named) => refers(value) || named.values().any(refers),
        _ => false,
    }
}

fn refers(schema: &Value) -> bool {
    let Value::Object(keywords) = schema else { return false };
    keywords.contains_key("$ref")
        || keywords.contains_key("$dynamicRef")
        || below(keywords).any(refers)
}

/// Returns the offered value of a keyword; `None` if the keyword is left out.
fn keyword_of(keyword: &str, value: Value) -> Option<Value> {
    match keyword {
        "type" => of_type(value),
        "enum" => value.as_array().is_some_and(|values| !values.is_empty()).then_some(value),
        "pattern" => value.as_str().and_then(plain).map(Value::String),
        // What a person does not see, the model does not read.
        "description" | "title" => Some(oa_redact::strip_invisible(value.as_str()?).into()),
        "format" | "contentEncoding" | "contentMediaType" => value.is_string().then_some(value),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => {
            value.is_boolean().then_some(value)
        }
        "examples" => value.is_array().then_some(value),
        "minContains" | "maxContains" => value.is_u64().then_some(value),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.as_u64().is_some_and(|number| number <= LARGEST).then_some(value)
        }
        // Draft 4 has booleans here, with which `modern_bounds` deals before.
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            value.as_f64().is_some_and(|number| number.abs() <= EXACT).then_some(value)
        }
        "multipleOf" => {
            value.as_f64().is_some_and(|step| step > 0.0 && step <= EXACT).then_some(value)
        }
        "required" => names(value),
        "dependentRequired" => {
            let Value::Object(named) = value else { return None };
            let named = named.into_iter().filter_map(|(name, of)| Some((name, names(of)?)));
            Some(Value::Object(named.collect()))
        }
        "properties" | "patternProperties" | "dependentSchemas" => {
            let Value::Object(named) = value else { return None };
            let named = named.iter().filter_map(|(name, of)| Some((name.clone(), schema(of)?)));
            Some(Value::Object(named.collect()))
        }
        // Definitions that match nothing stay, unlike properties, because references may point to them.
        "$defs" | "definitions" => {
            let Value::Object(named) = value else { return None };
            let named = named.iter().map(|(name, of)| (name.clone(), definition(of)));
            Some(Value::Object(named.collect()))
        }
        // A part that nothing can match is no alternative. In `allOf`, leaving it out only allows more.
        "anyOf" | "oneOf" | "allOf" => some(value.as_array()?.iter().filter_map(schema)),
        // A list ends before the first item that nothing can match.
        "prefixItems" => some(value.as_array()?.iter().map_while(schema)),
        "items" if value.is_array() => some(value.as_array()?.iter().map_while(schema)),
        // Leaving parts out would make `not` forbid more, and `then` apply more often.
        "not" | "if" => is_exact(&value).then_some(value),
        "items" | "then" | "else" | "contains" | "propertyNames" | "contentSchema" => {
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

/// Returns the strings of a list, each once.
fn names(value: Value) -> Option<Value> {
    let Value::Array(mut names) = value else { return None };
    let mut seen = HashSet::new();
    names.retain(|name| name.as_str().is_some_and(|name| seen.insert(name.to_owned())));
    Some(names.into())
}

fn of_type(value: Value) -> Option<Value> {
    let is_known = |of: &Value| of.as_str().is_some_and(|of| TYPES.contains(&of));
    match value {
        Value::Array(mut of) => {
            of.retain(is_known);
            names(of.into()).filter(|known| known.get(0).is_some())
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
    let is_closed = above.is_none() && below.is_none();
    upper - lower < if is_whole && is_closed { 0.0 } else { 2.0 }
}

/// Replaces references that model servers do not follow, or that the repair may have broken: all but those to a definition
/// of the root schema by its plain name. Their targets are copied from the original to new definitions.
///
/// `#/anyOf/1` is one that the repair may break: if `anyOf/0` is left out, it points to another schema.
fn plain_references(original: &Value, mut root: Value, most: usize) -> Option<Value> {
    // An example, where R is `{ "$ref": "#/$defs/part_1" }`:
    //   before: { "items": { "$ref": "#" } }
    //   after:  { "items": R, "$defs": { "part_1": { "items": R } } }
    let home = if root.get("definitions").is_some() && root.get("$defs").is_none() {
        "definitions"
    } else {
        "$defs"
    };
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut size = size_of(&root);
    // A list of definitions is left out, although `#/$defs/0` points into it.
    let is_followed = |reference: &str| defined(reference) && resolve(&root, reference).is_some();
    references(&root, &is_followed, &mut found, &mut seen);
    let mut parts = Map::new();
    let mut names = HashMap::new();
    let mut number = 0_usize;
    let mut next = 0;
    while let Some(reference) = found.get(next) {
        next += 1;
        // The server's own definitions may have such names.
        let name = loop {
            number += 1;
            let name = format!("part_{number}");
            if root.get(home).is_none_or(|defs| defs.get(&name).is_none()) {
                break name;
            }
        };
        let target = resolve(original, reference).map(definition);
        let mut part = target.unwrap_or_else(|| json!({}));
        // Definitions stay at the root: in the copy, they would double the size for nothing.
        if let (Value::Object(part), "#") = (&mut part, &**reference) {
            part.shift_remove("$defs");
            part.shift_remove("definitions");
        }
        size = size.saturating_add(size_of(&part));
        if size > most {
            return None;
        }
        names.insert(reference.clone(), format!("#/{home}/{name}"));
        // The target may have been left out of the root schema, with references that are nowhere else.
        references(&part, &is_followed, &mut found, &mut seen);
        parts.insert(name, part);
    }
    if !parts.is_empty()
        && let Some(defs) = root.as_object_mut().map(|root| root.entry(home).or_insert(json!({})))
        && let Some(defs) = defs.as_object_mut()
    {
        defs.append(&mut parts);
    }
    // After the copies are in place, because they contain such references, too.
    rename(&mut root, &names);
    (size_of(&root) <= most).then_some(root)
}

fn size_of(schema: &Value) -> usize {
    serde_json::to_string(schema).map_or(usize::MAX, |text| text.len())
}

/// Returns true if a reference is of the form that model servers follow: to a definition by its plain name.
fn defined(reference: &str) -> bool {
    let name =
        reference.strip_prefix("#/$defs/").or_else(|| reference.strip_prefix("#/definitions/"));
    name.is_some_and(|name| !name.contains(['/', '~', '%']))
}

/// Collects the references that model servers do not follow, in order. `seen` holds those that have been found.
fn references(
    schema: &Value,
    is_followed: &dyn Fn(&str) -> bool,
    found: &mut Vec<String>,
    seen: &mut HashSet<String>,
) {
    let Value::Object(keywords) = schema else { return };
    if let Some(Value::String(reference)) = keywords.get("$ref")
        && !is_followed(reference)
        && seen.insert(reference.clone())
    {
        found.push(reference.clone());
    }
    below(keywords).for_each(|schema| references(schema, is_followed, found, seen));
}

fn rename(schema: &mut Value, names: &HashMap<String, String>) {
    let Value::Object(keywords) = schema else { return };
    if let Some(Value::String(reference)) = keywords.get_mut("$ref")
        && let Some(name) = names.get(reference)
    {
        reference.clone_from(name);
    }
    let renamed = visit_below(keywords, &mut |schema| {
        rename(schema, names);
        Ok(())
    });
    debug_assert!(renamed.is_ok(), "no visit fails");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fixed(schema: &Value) -> Value {
        repaired(schema, usize::MAX).expect("there is no limit")
    }

    #[test]
    fn rejected_keywords_are_left_out() {
        let of = |schema: Value| {
            fixed(&json!({ "properties": { "a": schema } }))["properties"]["a"].clone()
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
        assert_eq!(of(json!({ "minLength": 5_000, "maxLength": 5 })), json!({}));
        assert_eq!(of(json!({ "minLength": 5, "maxLength": 5_000 })), json!({ "minLength": 5 }));
        assert_eq!(of(json!({ "minimum": 5, "maximum": 1 })), json!({}));
        assert_eq!(of(json!({ "minimum": u64::MAX, "exclusiveMaximum": 0.5 })), json!({}));
        assert_eq!(of(json!({ "minimum": 0.2, "maximum": 0.8 })), json!({}), "no whole number");
        assert_eq!(of(json!({ "exclusiveMinimum": 1, "exclusiveMaximum": 2 })), json!({}));
        assert_eq!(
            of(json!({ "minimum": 1, "maximum": 1 })),
            json!({ "minimum": 1, "maximum": 1 })
        );
        assert_eq!(of(json!({ "minimum": -1e30, "maximum": 5 })), json!({ "maximum": 5 }));
        assert_eq!(of(json!({ "pattern": "^[a-z$", "format": 5 })), json!({}));
        assert_eq!(of(json!({ "properties": [], "additionalProperties": "x" })), json!({}));
        assert_eq!(
            of(json!({ "required": ["a", 1, "a"], "type": ["null", "null"] })),
            json!({ "required": ["a"], "type": ["null"] })
        );
    }

    #[test]
    fn values_outside_the_metaschema_are_left_out() {
        for invalid in [
            json!({ "minimum": true }),
            json!({ "exclusiveMinimum": true }),
            json!({ "multipleOf": 0 }),
            json!({ "multipleOf": -2 }),
            json!({ "examples": "x" }),
            json!({ "uniqueItems": "yes", "deprecated": 1, "readOnly": null, "writeOnly": [] }),
            json!({ "dependentRequired": ["a"], "contentEncoding": 64, "contentMediaType": {} }),
            json!({ "contains": { "const": 5 }, "minContains": "0" }),
        ] {
            assert_eq!(fixed(&invalid), json!({}), "{invalid}");
        }
        let dependent = json!({ "dependentRequired": { "a": ["b", "b", 1], "c": "d" } });
        assert_eq!(fixed(&dependent), json!({ "dependentRequired": { "a": ["b"] } }));
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
        assert_eq!(fixed(&tree), expected);

        let escaped = json!({
            "properties": { "a": { "$ref": "#/definitions/a~1b" }, "b": { "$ref": "#/definitions/a%2Fb%20" } },
            "definitions": { "a/b": { "type": "string" }, "part_1": {}, "a": { "b ": { "type": "null" } } },
        });
        let repaired = fixed(&escaped);
        assert_eq!(repaired["properties"]["a"]["$ref"], "#/definitions/part_2");
        assert_eq!(repaired["definitions"]["part_2"], json!({ "type": "string" }));
        assert_eq!(repaired["properties"]["b"]["$ref"], "#/definitions/part_3");
        assert_eq!(repaired["definitions"]["part_3"], json!({ "type": "null" }));
    }

    #[test]
    fn references_survive_what_is_left_out() {
        let schema = json!({
            "properties": {
                "a": false,
                "b": { "$ref": "#/properties/a" },
                "c": { "$ref": "#/anyOf/1" },
                "d": { "$ref": "#/not" },
                "e": { "const": { "$ref": "#/anyOf/1" } },
            },
            "anyOf": [false, { "type": "string" }],
            "not": { "items": { "$ref": "#/properties/b" }, "minItems": 5_000 },
        });
        let expected = json!({
            "properties": {
                "b": { "$ref": "#/$defs/part_1" },
                "c": { "$ref": "#/$defs/part_2" },
                "d": { "$ref": "#/$defs/part_3" },
                "e": { "const": { "$ref": "#/anyOf/1" } },
            },
            "anyOf": [{ "type": "string" }],
            "$defs": {
                "part_1": { "not": {} },
                "part_2": { "type": "string" },
                "part_3": { "items": { "$ref": "#/$defs/part_4" } },
                "part_4": { "$ref": "#/$defs/part_1" },
            },
        });
        assert_eq!(fixed(&schema), expected);
    }

    #[test]
    fn lists_of_definitions_leave_no_reference() {
        let schema = json!({
            "properties": { "a": { "$ref": "#/$defs/0" } }, "$defs": [{ "type": "string" }],
        });
        let expected = json!({
            "properties": { "a": { "$ref": "#/$defs/part_1" } },
            "$defs": { "part_1": { "type": "string" } },
        });
        assert_eq!(fixed(&schema), expected);
    }

    #[test]
    fn copied_targets_are_bounded() {
        // One target, spelled in 256 ways.
        let spelled = |n: u32| {
            let letters = ('a'..='h').zip(0..);
            let letters = letters.map(|(letter, at)| match n >> at & 1 {
                0 => letter.to_string(),
                _ => format!("%{:02x}", u32::from(letter)),
            });
            json!({ "$ref": format!("#/$defs/{}", letters.collect::<String>()) })
        };
        let named: Map<_, _> = (0..256).map(|n| (n.to_string(), spelled(n))).collect();
        let target = json!({ "description": "x".repeat(1_000) });
        let schema = json!({ "properties": named, "$defs": { "abcdefgh": target } });
        assert!(repaired(&schema, 300_000).is_some());
        assert!(repaired(&schema, 200_000).is_none());
    }

    #[test]
    fn conditions_do_not_apply_more_often() {
        let long = json!({ "properties": { "a": { "minLength": 5_000 } } });
        let (then, is_five) = (json!({ "required": ["b"] }), json!({ "const": 5 }));
        let plain = json!({ "type": "object" });
        for (condition, kept) in [
            (json!({ "if": long, "then": then, "else": then }), json!({})),
            (json!({ "if": { "$ref": "#/$defs/a" }, "then": then }), json!({})),
            (json!({ "not": { "$ref": "#/$defs/a" } }), json!({})),
            (json!({ "contains": long, "minContains": 0, "maxContains": 1 }), json!({})),
            (json!({ "if": long, "unevaluatedProperties": false }), json!({})),
            (
                json!({ "allOf": [{ "if": long, "then": then }], "unevaluatedProperties": false }),
                json!({ "allOf": [{}] }),
            ),
        ] {
            assert_eq!(fixed(&condition), kept, "{condition}");
        }
        // A condition that stays as it is, and more items that match.
        let same = json!({ "if": is_five, "then": plain, "contains": is_five, "maxContains": 1 });
        assert_eq!(fixed(&same), same);
        let more = json!({ "contains": long, "minContains": 1 });
        let relaxed = json!({ "contains": { "properties": { "a": {} } }, "minContains": 1 });
        assert_eq!(fixed(&more), relaxed);
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
                "if",
                "then",
                "contains",
                "unevaluatedProperties",
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
            let once = fixed(&schema);
            prop_assert_eq!(&fixed(&once), &once);
            let (mut found, mut seen) = (Vec::new(), HashSet::new());
            let is_followed = |reference: &str| defined(reference) && resolve(&once, reference).is_some();
            references(&once, &is_followed, &mut found, &mut seen);
            prop_assert_eq!(found, Vec::<String>::new());
        }
    }
}
