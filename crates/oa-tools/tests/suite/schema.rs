//! Shorthand and full schemas.

use oa_tools::{FnTool, tool};
use serde_json::{Value, json};

fn with_schema(schema: Value) -> FnTool {
    FnTool::new("t", "", schema, |args| async { Ok(args) })
}

#[track_caller]
fn passes_unchanged(schema: Value) {
    let tool = with_schema(schema.clone());
    tool.check().expect("the tool can be offered");
    assert_eq!(tool.input_schema(), &schema);
}

#[track_caller]
fn becomes(shorthand: Value, properties: Value, required: Value) {
    let tool = with_schema(shorthand);
    tool.check().expect("the tool can be offered");
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    assert_eq!(tool.input_schema(), &schema);
}

#[test]
fn full_schemas_are_unchanged() {
    passes_unchanged(json!({ "type": "object" }));
    passes_unchanged(json!({ "type": "object", "properties": {} }));
    passes_unchanged(json!({ "type": ["object", "null"] }));
    passes_unchanged(json!({ "type": "object", "description": "string", "title": "object" }));
    passes_unchanged(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "type": { "type": "string" }, "n": { "type": "integer", "default": 3 } },
        "required": ["type"],
        "additionalProperties": false,
        "x-vendor": { "any": "thing" },
    }));
    passes_unchanged(json!({
        "type": "object",
        "properties": { "q": { "type": "string" } },
        "x-go-type": "string",
        "example": { "type": "circle" },
    }));
    passes_unchanged(json!({ "properties": { "q": { "type": "string" } } }));
    passes_unchanged(json!({ "properties": { "type": { "type": "string" } } }));
    passes_unchanged(json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "object" } } }));
    passes_unchanged(json!({ "anyOf": [{ "type": "object" }] }));
}

#[test]
fn shorthand_maps_names_to_types() {
    becomes(json!({}), json!({}), json!([]));
    becomes(
        json!({ "location": "string", "units": "string" }),
        json!({ "location": { "type": "string" }, "units": { "type": "string" } }),
        json!(["location", "units"]),
    );
    becomes(
        json!({ "a": "str", "b": "float", "c": "int", "d": "bool", "e": "list", "f": "dict" }),
        json!({
            "a": { "type": "string" }, "b": { "type": "number" }, "c": { "type": "integer" },
            "d": { "type": "boolean" }, "e": { "type": "array" }, "f": { "type": "object" },
        }),
        json!(["a", "b", "c", "d", "e", "f"]),
    );
}

#[test]
fn parameters_may_be_named_like_keywords() {
    becomes(json!({ "type": "string" }), json!({ "type": { "type": "string" } }), json!(["type"]));
    becomes(
        json!({ "type": "object", "q": "string" }),
        json!({ "type": { "type": "object" }, "q": { "type": "string" } }),
        json!(["type", "q"]),
    );
    becomes(
        json!({ "type": "object", "properties": { "type": "object" }, "q": "string" }),
        json!({ "type": { "type": "object" }, "properties": { "type": "object" }, "q": { "type": "string" } }),
        json!(["type", "properties", "q"]),
    );
    becomes(
        json!({ "properties": { "type": "object" } }),
        json!({ "properties": { "type": "object" } }),
        json!(["properties"]),
    );
    becomes(
        json!({ "required": "boolean", "default": "string" }),
        json!({ "required": { "type": "boolean" }, "default": { "type": "string" } }),
        json!(["required", "default"]),
    );
}

/// `default`, `required: false` and `optional: true` make a parameter optional and are removed.
#[test]
fn optional_flags_are_removed() {
    becomes(
        json!({
            "q": "string",
            "limit": { "type": "integer", "default": 10 },
            "page": { "type": "integer", "required": false },
            "sort": { "type": "string", "optional": true, "enum": ["up", "down"] },
            "user": { "type": "string", "required": true, "default": "me" },
            "deep": { "type": "object", "properties": {}, "required": ["x"] },
            "must": { "type": "string", "optional": false },
        }),
        json!({
            "q": { "type": "string" },
            "limit": { "type": "integer" },
            "page": { "type": "integer" },
            "sort": { "type": "string", "enum": ["up", "down"] },
            "user": { "type": "string" },
            "deep": { "type": "object", "properties": {}, "required": ["x"] },
            "must": { "type": "string" },
        }),
        json!(["q", "user", "deep", "must"]),
    );
}

#[test]
fn shorthand_defaults_are_filled_in() {
    let tool = with_schema(json!({ "q": "string", "limit": { "type": "int", "default": 10 } }));
    let run = |input| crate::wait(tool.execute(input)).unwrap();
    assert_eq!(run(json!({ "q": "a" })), json!({ "q": "a", "limit": 10 }));
    assert_eq!(run(json!({ "q": "a", "limit": null })), json!({ "q": "a", "limit": 10 }));
    assert_eq!(run(json!({ "q": "a", "limit": 2.0 })), json!({ "q": "a", "limit": 2 }));
}

#[test]
fn params_can_be_added_to_a_full_schema() {
    let tool = tool("t", "")
        .schema(json!({ "type": "object", "properties": { "a": { "type": "string" } } }))
        .param("b", "number")
        .optional("a")
        .build(|args| async { Ok(args) });
    assert_eq!(
        tool.input_schema(),
        &json!({
            "type": "object",
            "properties": { "a": { "type": "string" }, "b": { "type": "number" } },
            "required": ["b"],
        })
    );
}
