//! The part of JSON Schema that strict servers accept.

#[cfg(feature = "schemars")]
mod types;

use std::collections::BTreeSet;

use oa_tools::{check_arguments, strict_schema};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::laws::any_json;

#[track_caller]
fn becomes(schema: Value, strict: Value) {
    let found = strict_schema(&schema).expect("it has a strict form");
    // With the order of members.
    assert_eq!(found.to_string(), strict.to_string());
}

#[test]
fn boolean_bounds_of_draft_4_become_numbers() {
    let list = |bounds: &Value| json!({ "type": "array", "items": bounds });
    for (old, new) in [
        (
            json!({ "type": "integer", "minimum": 0, "exclusiveMinimum": true }),
            json!({ "type": "integer", "exclusiveMinimum": 0 }),
        ),
        (
            json!({ "exclusiveMaximum": true, "type": "number", "maximum": 0.5, "minimum": 0 }),
            json!({ "type": "number", "exclusiveMaximum": 0.5, "minimum": 0 }),
        ),
        (
            json!({ "type": "integer", "minimum": 0, "exclusiveMinimum": false }),
            json!({ "type": "integer", "minimum": 0 }),
        ),
        (json!({ "type": "number", "exclusiveMaximum": true }), json!({ "type": "number" })),
    ] {
        becomes(list(&old), list(&new));
    }
}

#[test]
fn optional_members_become_nullable() {
    becomes(
        json!({
            "title": "Place",
            "type": "object",
            "properties": {
                "plain": { "type": "string", "default": "" },
                "several": { "type": ["string", "integer"] },
                "null_already": { "type": ["string", "null"] },
                "null_alone": { "type": "null" },
                "chosen": { "type": "string", "enum": ["a", "b"] },
                "chosen_too": { "type": ["string", "null"], "enum": ["a", "b"] },
                "null_chosen": { "type": ["string", "null"], "enum": ["a", null] },
                "bound": { "type": "string", "anyOf": [{ "type": "string", "maxLength": 3 }] },
                "referenced": { "$ref": "#/$defs/a" },
                "other": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/a" }] },
                "needed": { "type": "string" },
            },
            "required": ["needed"],
        }),
        json!({
            "type": "object",
            "properties": {
                "plain": { "type": ["string", "null"] },
                "several": { "type": ["string", "integer", "null"] },
                "null_already": { "type": ["string", "null"] },
                "null_alone": { "type": "null" },
                "chosen": { "anyOf": [{ "type": "string", "enum": ["a", "b"] }, { "type": "null" }] },
                "chosen_too": { "anyOf": [{ "type": ["string", "null"], "enum": ["a", "b"] }, { "type": "null" }] },
                "null_chosen": { "type": ["string", "null"], "enum": ["a", null] },
                "bound": { "anyOf": [{ "type": "string", "anyOf": [{ "type": "string", "maxLength": 3 }] }, { "type": "null" }] },
                "referenced": { "anyOf": [{ "$ref": "#/$defs/a" }, { "type": "null" }] },
                "other": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/a" }, { "type": "null" }] },
                "needed": { "type": "string" },
            },
            "required": ["plain", "several", "null_already", "null_alone", "chosen", "chosen_too", "null_chosen", "bound", "referenced", "other", "needed"],
            "additionalProperties": false,
        }),
    );
}

#[test]
fn keywords_beside_a_ref_are_removed() {
    becomes(
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": "#/$defs/a",
            "description": "As it is called there.",
            "$defs": { "a": { "type": "string", "format": "password", "title": "A" } },
        }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "string" } } }),
    );
}

#[test]
fn type_bounds_are_removed_own_bounds_kept() {
    let byte = |minimum: i64, maximum: i64| json!({ "type": "integer", "format": "uint8", "minimum": minimum, "maximum": maximum });
    becomes(byte(0, 255), json!({ "type": "integer" }));
    becomes(byte(1, 255), json!({ "type": "integer", "minimum": 1 }));
    becomes(byte(0, 5), json!({ "type": "integer", "maximum": 5 }));
    becomes(
        json!({ "type": "string", "format": "date-time", "pattern": "^2", "maxLength": 30 }),
        json!({ "type": "string", "format": "date-time", "pattern": "^2", "maxLength": 30 }),
    );
}

#[test]
fn one_of_becomes_any_of() {
    let parts = json!([{ "type": "string" }, { "type": "integer" }]);
    becomes(json!({ "oneOf": parts.clone() }), json!({ "anyOf": parts.clone() }));
    // Both would have to hold.
    assert_eq!(strict_schema(&json!({ "oneOf": parts.clone(), "anyOf": parts })), None);
}

#[test]
fn inexpressible_schemas_give_none() {
    for schema in [
        json!(true),
        json!({}),
        json!({ "description": "Any JSON." }),
        json!({ "type": "array" }),
        json!({ "type": "array", "prefixItems": [{ "type": "string" }] }),
        json!({ "type": "object", "additionalProperties": true }),
        json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
        json!({ "type": "object", "properties": [] }),
        json!({ "type": "object", "properties": { "any": {} } }),
        json!({ "type": "array", "items": { "not": { "type": "string" } } }),
        json!({ "allOf": [{ "type": "string" }] }),
        json!({ "anyOf": { "type": "string" } }),
        json!({ "type": "string", "$defs": { "any": true } }),
    ] {
        assert_eq!(strict_schema(&schema), None, "{schema}");
    }
}

/// No value would have all members that the parts require and none that they forbid.
#[test]
fn members_of_several_places_give_none() {
    let part = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    let parts = || json!([part("a"), part("b")]);
    let mut beside = part("c");
    beside["anyOf"] = parts();
    let mut untyped = beside.clone();
    untyped.as_object_mut().expect("it is an object").remove("type");
    let mut unnamed = part("a");
    unnamed["required"] = json!(["a", "b"]);
    for schema in [
        beside,
        untyped,
        unnamed,
        json!({ "type": "object", "oneOf": parts() }),
        json!({ "type": ["object", "null"], "anyOf": parts() }),
        json!({ "anyOf": parts(), "required": ["c"] }),
        json!({ "type": "object", "required": ["a"] }),
        json!({ "type": "object", "const": { "a": 1 } }),
        json!({ "type": "object", "enum": [{ "a": 1 }, {}] }),
        json!({ "$ref": "#/$defs/a", "required": ["b"], "$defs": { "a": part("a") } }),
        json!({ "$ref": "#/$defs/a", "properties": part("b")["properties"], "$defs": { "a": part("a") } }),
        json!({ "$ref": "#/$defs/a", "oneOf": parts(), "$defs": { "a": part("a") } }),
    ] {
        assert_eq!(strict_schema(&schema), None, "{schema}");
    }
    becomes(json!({ "anyOf": [{ "$ref": "#" }] }), json!({ "anyOf": [{ "$ref": "#" }] }));
}

#[test]
fn deep_schemas_have_no_strict_form() {
    let nested = |levels: usize| {
        let leaf = json!({ "type": "string" });
        (1..levels).fold(leaf, |items, _| json!({ "type": "array", "items": items }))
    };
    becomes(nested(64), nested(64));
    assert_eq!(strict_schema(&nested(65)), None);
}

fn leaf() -> impl Strategy<Value = Value> {
    let types = select(vec!["boolean", "integer", "null", "number", "string"]);
    prop_oneof![
        3 => types.prop_map(|of| json!({ "type": of })),
        1 => Just(json!({ "type": ["string", "null"] })),
        1 => prop::collection::vec(any_json(), 1..3).prop_map(|values| json!({ "enum": values })),
        1 => any_json().prop_map(|value| json!({ "const": value, "title": "The only one" })),
        1 => Just(json!({ "$ref": "#/$defs/leaf", "description": "Elsewhere" })),
    ]
}

/// A schema that has a strict form, whose references lead to `#/$defs/leaf`.
fn schema() -> impl Strategy<Value = Value> {
    let inner = leaf().prop_recursive(4, 32, 4, |inner| {
        let members = prop::collection::vec(("[a-c]", inner.clone()), 0..4);
        prop_oneof![
            (members, prop::collection::vec("[a-c]", 0..3), any::<bool>()).prop_map(
                |(members, required, is_closed)| {
                    let properties: Map<_, _> = members.into_iter().collect();
                    let required: Vec<_> =
                        required.into_iter().filter(|name| properties.contains_key(name)).collect();
                    let mut schema =
                        json!({ "type": "object", "properties": properties, "required": required });
                    if is_closed {
                        schema["additionalProperties"] = false.into();
                    }
                    schema
                }
            ),
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            (select(vec!["anyOf", "oneOf"]), prop::collection::vec(inner, 1..3))
                .prop_map(|(word, parts)| json!({ word: parts })),
        ]
    });
    inner.prop_map(|mut schema| {
        schema["$defs"] = json!({ "leaf": { "type": "integer", "format": "int32" } });
        schema
    })
}

/// Writes a value as a server with a grammar would let a model do it.
fn written(root: &Value, schema: &Value, choice: &mut impl FnMut(usize) -> usize) -> Value {
    if let Some(to) = schema["$ref"].as_str() {
        return written(root, root.pointer(&to[1..]).expect("it is defined"), choice);
    }
    for word in ["anyOf", "enum"] {
        if let Some(list) = schema[word].as_array() {
            let chosen = &list[choice(list.len())];
            return if word == "enum" { chosen.clone() } else { written(root, chosen, choice) };
        }
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    let of = match &schema["type"] {
        Value::Array(types) => &types[choice(types.len())],
        of => of,
    };
    match of.as_str().expect("every value has a type") {
        "array" => (0..choice(3)).map(|_| written(root, &schema["items"], choice)).collect(),
        "boolean" => (choice(2) == 1).into(),
        "integer" => choice(9).into(),
        "null" => Value::Null,
        "number" => (choice(9) as f64 / 2.0).into(),
        "object" => {
            let properties = schema["properties"].as_object().expect("they are named");
            let member = |(name, of): (&String, _)| (name.clone(), written(root, of, choice));
            Value::Object(properties.iter().map(member).collect())
        }
        "string" => "some words".into(),
        other => panic!("unknown type {other}"),
    }
}

/// Checks what strict servers ask of each schema.
fn check_strict(schema: &Value) -> Result<(), TestCaseError> {
    let keywords = schema.as_object().expect("it is a schema");
    if keywords.contains_key("$ref") {
        prop_assert!(keywords.keys().all(|word| ["$ref", "$defs"].contains(&&**word)), "{schema}");
    }
    for word in ["oneOf", "allOf", "default", "title", "$schema"] {
        prop_assert!(!keywords.contains_key(word), "{schema}");
    }
    if let Some(properties) = schema["properties"].as_object() {
        prop_assert_eq!(&schema["additionalProperties"], &json!(false));
        let names: Vec<&String> = properties.keys().collect();
        prop_assert_eq!(&schema["required"], &json!(names));
        properties.values().try_for_each(check_strict)?;
    }
    if let Some(items) = schema.get("items") {
        check_strict(items)?;
    }
    schema["anyOf"].as_array().into_iter().flatten().try_for_each(check_strict)?;
    schema["$defs"].as_object().into_iter().flat_map(Map::values).try_for_each(check_strict)
}

proptest! {
    /// A model that is held to the strict schema writes values that the original schema allows.
    #[test]
    fn strict_values_fit_the_original_schema(
        schema in schema(),
        choices in prop::collection::vec(any::<usize>(), 1..40),
    ) {
        let strict = strict_schema(&schema).expect("it has a strict form");
        check_strict(&strict)?;
        let mut choices = choices.iter().cycle();
        let mut choice = |count: usize| choices.next().expect("there is one") % count;
        let value = written(&strict, &strict, &mut choice);
        // The arguments of a call are an object.
        let whole = json!({
            "type": "object", "properties": { "value": schema }, "required": ["value"],
            "$defs": schema["$defs"],
        });
        let checked = check_arguments(&whole, json!({ "value": value }));
        prop_assert!(checked.is_ok(), "{:?} by {}", checked, strict);
    }

    /// A value with all members that the parts of an object name: closing one part does not forbid those of another.
    #[test]
    fn complete_values_fit_the_strict_schema(
        own in prop::option::of(prop::collection::btree_set("[a-c]", 0..3)),
        parts in prop::collection::vec(prop::collection::btree_set("[a-d]", 0..3), 0..3),
        required in prop::collection::btree_set("[a-e]", 0..3),
        word in select(vec!["$ref", "anyOf", "oneOf"]),
        of in select(vec![json!("object"), json!(["object", "null"]), json!(null)]),
        chosen in any::<prop::sample::Index>(),
    ) {
        let members = |names: &BTreeSet<String>| -> Value {
            names.iter().map(|name| (name.clone(), json!({ "type": "string" }))).collect()
        };
        let part = |names| json!({ "type": "object", "properties": members(names) });
        let mut schema = json!({ "$defs": {} });
        for (name, value) in [
            ("type", Some(of).filter(|of| !of.is_null())),
            ("properties", own.as_ref().map(members)),
            ("required", Some(json!(required)).filter(|_| !required.is_empty())),
        ] {
            schema.as_object_mut().expect("it is an object").extend(value.map(|value| (name.to_owned(), value)));
        }
        let mut names: BTreeSet<String> = own.unwrap_or_default();
        names.extend(required);
        if !parts.is_empty() {
            let chosen = chosen.get(&parts);
            if word == "$ref" {
                schema["$defs"] = json!({ "part": part(chosen) });
                schema[word] = json!("#/$defs/part");
            } else {
                schema[word] = parts.iter().map(part).collect();
            }
            names.extend(chosen.iter().cloned());
        }
        let value: Value = names.into_iter().map(|name| (name, json!("some words"))).collect();
        prop_assert!(check_arguments(&schema, value.clone()).is_ok(), "{schema}");
        if let Some(strict) = strict_schema(&schema) {
            let checked = check_arguments(&strict, value);
            prop_assert!(checked.is_ok(), "{checked:?} by {strict} of {schema}");
        }
    }

    #[test]
    fn strict_schema_is_idempotent(schema in schema()) {
        let strict = strict_schema(&schema).expect("it has a strict form");
        prop_assert_eq!(strict_schema(&strict).map(|twice| twice.to_string()), Some(strict.to_string()));
    }

    #[test]
    fn any_schema_becomes_strict_or_none(given in crate::laws::any_schema()) {
        if let Some(strict) = strict_schema(&given) {
            check_strict(&strict)?;
        }
    }
}
