//! The forms of schemas that servers ask for.

use oa_types::ToolSpec;
use oa_types::wire::{ChatParameters, Demands};
use serde_json::{Value, json};

/// Returns the schema of a tool in the form that a server asked for.
fn form(schema: Value, plain_schemas: bool, single_types: bool) -> Value {
    let mut parameters = ChatParameters::new("any");
    parameters.tools = vec![ToolSpec::new("book", "Books a stay", schema)];
    let mut demands = Demands::default();
    (demands.plain_schemas, demands.single_types) = (plain_schemas, single_types);
    demands.apply_to_parameters(&mut parameters);
    parameters.tools[0].parameters.clone()
}

fn of(parameter: Value) -> Value {
    let day = json!({ "type": "string", "description": "A day" });
    let tree = json!({ "type": "object", "properties": { "kids": { "items": { "$ref": "#/$defs/tree" } } } });
    let point =
        json!({ "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] });
    json!({
        "type": "object",
        "properties": { "a": parameter },
        "$defs": { "day": day, "tree": tree, "any": true, "a/b c": { "$ref": "#/$defs/day" }, "point": point },
    })
}

#[track_caller]
fn check_plain(parameter: Value, expected: Value) {
    assert_eq!(form(of(parameter), true, false)["properties"]["a"], expected);
}

#[test]
fn plain_schemas_have_no_references() {
    let day = json!({ "type": "string", "description": "A day" });
    check_plain(json!({ "$ref": "#/$defs/day" }), day.clone());
    check_plain(json!({ "$ref": "#/$defs/a~1b%20c" }), day.clone());
    check_plain(
        json!({ "type": "array", "items": { "$ref": "#/$defs/day" } }),
        json!({ "type": "array", "items": day }),
    );
    check_plain(
        json!({ "$ref": "#/$defs/day", "description": "The first" }),
        json!({ "type": "string", "description": "The first" }),
    );
    check_plain(
        json!({ "$ref": "#/$defs/point", "properties": { "y": {} }, "required": ["y"] }),
        json!({
            "type": "object",
            "properties": { "x": { "type": "number" }, "y": {} },
            "required": ["x", "y"],
        }),
    );
    check_plain(
        json!({ "not": { "$ref": "#/$defs/day" }, "propertyNames": { "$ref": "#/$defs/point" } }),
        json!({
            "not": day,
            "propertyNames": {
                "type": "object",
                "properties": { "x": { "type": "number" } },
                "required": ["x"],
            },
        }),
    );
    // Where nothing is known, or the value is no schema, references stay.
    for same in [
        json!({ "$ref": "https://h/s" }),
        json!({ "$ref": "#/$defs/none" }),
        json!({ "enum": [{ "$ref": "#/$defs/day" }], "const": { "$ref": "#" } }),
    ] {
        check_plain(same.clone(), same);
    }
    let schema = form(of(json!({ "$ref": "#/$defs/day" })), true, false);
    assert_eq!(schema.get("$defs"), None);
}

#[test]
fn recursive_schemas_refer_to_plain_names() {
    let kids = json!({ "items": { "$ref": "#/$defs/part_1" } });
    let tree = json!({ "type": "object", "properties": { "kids": kids } });
    let schema = form(of(json!({ "$ref": "#/$defs/tree" })), true, false);
    assert_eq!(schema["properties"]["a"], tree);
    assert_eq!(schema["$defs"], json!({ "part_1": tree }));

    // llama.cpp follows no reference to the whole schema.
    let root = json!({ "type": "object", "properties": { "kids": { "items": { "$ref": "#" } } } });
    let mut expected = tree.clone();
    expected["$defs"] = json!({ "part_1": tree });
    assert_eq!(form(root, true, false), expected);

    // Two that refer to each other, and one that is nothing but itself.
    let schema = json!({
        "properties": { "a": { "$ref": "#/$defs/a" }, "c": { "$ref": "#/$defs/c" } },
        "$defs": {
            "a": { "items": { "$ref": "#/$defs/b" } },
            "b": { "not": { "$ref": "#/$defs/a" }, "contains": { "$ref": "#/$defs/a" } },
            "c": { "$ref": "#/$defs/c" },
        },
    });
    let schema = form(schema, true, false);
    let plain = |part: &str| json!({ "$ref": format!("#/$defs/{part}") });
    let b = json!({ "not": plain("part_1"), "contains": plain("part_1") });
    assert_eq!(schema["properties"], json!({ "a": { "items": b }, "c": plain("part_2") }));
    assert_eq!(schema["$defs"]["part_2"], plain("part_2"));
}

/// Each definition uses the next one twice, so the copies would fill the memory.
#[test]
fn references_do_not_make_schemas_explode() {
    let definitions: serde_json::Map<_, _> = (0..40)
        .map(|number| {
            let next = json!({ "$ref": format!("#/$defs/{}", number + 1) });
            (number.to_string(), json!({ "properties": { "a": next, "b": next } }))
        })
        .collect();
    let schema = json!({ "properties": { "a": { "$ref": "#/$defs/0" } }, "$defs": definitions });
    for (plain, single) in [(true, false), (false, true), (true, true)] {
        let size = form(schema.clone(), plain, single).to_string().len();
        assert!(size < 400_000, "{size}");
    }
}

#[test]
fn plain_schemas_have_no_booleans_as_schemas() {
    check_plain(json!(true), json!({}));
    check_plain(json!(false), json!({ "not": {} }));
    check_plain(json!({ "$ref": "#/$defs/any" }), json!({}));
    check_plain(
        json!({ "prefixItems": [true], "items": false, "additionalProperties": false }),
        json!({ "prefixItems": [{}], "items": { "not": {} }, "additionalProperties": false }),
    );
    check_plain(
        json!({ "const": true, "default": false }),
        json!({ "const": true, "default": false }),
    );
}

#[track_caller]
fn check_types(parameter: Value, expected: Value) {
    let parameter = form(of(parameter), false, true)["properties"]["a"].clone();
    assert_eq!(parameter, expected);
}

#[test]
fn single_types_are_the_first_that_is_not_null() {
    let nullable = json!({ "type": "string", "nullable": true });
    check_types(json!({ "type": ["string", "null"] }), nullable.clone());
    check_types(json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] }), nullable);
    check_types(
        json!({ "type": ["null", "integer", "string"], "description": "How many" }),
        json!({ "type": "integer", "nullable": true, "description": "How many (or string)" }),
    );
    check_types(json!({ "type": "null" }), json!({ "type": "null" }));
    check_types(
        json!({ "anyOf": [{ "type": "number", "minimum": 1 }, { "items": {} }, { "type": "null" }] }),
        json!({
            "anyOf": [
                { "type": "number", "minimum": 1 },
                { "type": "array", "items": { "type": "string" } },
                { "type": "null" },
            ],
            "type": "number",
            "nullable": true,
            "description": "(or array)",
        }),
    );
    check_types(
        json!({ "oneOf": [{ "const": "a", "description": "One" }, { "const": "b" }] }),
        json!({
            "oneOf": [
                { "const": "a", "description": "One", "type": "string" },
                { "const": "b", "type": "string" },
            ],
            "type": "string",
        }),
    );
}

#[test]
fn single_types_are_told_by_other_keywords() {
    for (parameter, of_type) in [
        (json!({}), "string"),
        (json!(true), "string"),
        (json!({ "description": "Anything" }), "string"),
        (json!({ "properties": {} }), "object"),
        (json!({ "additionalProperties": true }), "object"),
        (json!({ "prefixItems": [] }), "array"),
        (json!({ "enum": [null, 1, 2] }), "integer"),
        (json!({ "const": 1.5 }), "number"),
        (json!({ "enum": [true] }), "boolean"),
        (json!({ "type": [] }), "string"),
        (json!({ "type": 5 }), "string"),
    ] {
        let schema = form(of(parameter.clone()), false, true);
        assert_eq!(schema["properties"]["a"]["type"], of_type, "{parameter}");
    }
}

#[test]
fn single_types_merge_what_applies_together() {
    let point =
        json!({ "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] });
    let mut described = point.clone();
    described["description"] = json!("Where");
    check_types(json!({ "$ref": "#/$defs/point" }), point.clone());
    // As Pydantic writes it.
    check_types(
        json!({ "allOf": [{ "$ref": "#/$defs/point" }], "description": "Where" }),
        described.clone(),
    );
    described["nullable"] = json!(true);
    check_types(
        json!({ "anyOf": [{ "$ref": "#/$defs/point" }, { "type": "null" }], "description": "Where" }),
        described,
    );
    check_types(
        json!({ "allOf": [{ "$ref": "#/$defs/point" }, { "properties": { "y": true } }] }),
        json!({
            "type": "object",
            "properties": { "x": { "type": "number" }, "y": { "type": "string" } },
            "required": ["x"],
        }),
    );
    // A recursive schema has a type, too.
    let schema = form(of(json!({ "$ref": "#/$defs/tree" })), false, true);
    let kids = json!({ "items": { "$ref": "#/$defs/part_1", "type": "object" }, "type": "array" });
    assert_eq!(schema["properties"]["a"]["properties"]["kids"], kids);
}

/// No template reads it, and an answer may be null.
#[test]
fn response_formats_keep_their_types() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } } });
    let mut parameters = ChatParameters::new("any");
    let format = json!({ "type": "json_schema", "json_schema": { "schema": schema } });
    parameters.response_format = Some(format.clone());
    let mut demands = Demands::default();
    demands.single_types = true;
    demands.apply_to_parameters(&mut parameters);
    assert_eq!(parameters.response_format, Some(format));
}

/// The client still checks what the schema of a request no longer says.
#[test]
fn plain_schemas_describe_their_restrictions() {
    let schema = json!({
        "type": "object",
        "description": "A stay",
        "properties": {
            "pattern": { "type": "string", "pattern": "\\S", "description": "The name" },
            "format": { "enum": [{ "maximum": 1 }, "minLength"], "default": { "pattern": "x" } },
            "nights": { "type": "integer", "maximum": 30 },
            "guests": {
                "type": "array",
                "minItems": 1,
                "items": { "anyOf": [{ "type": "string", "maxLength": 2000 }, { "$ref": "#/$defs/date" }] },
            },
            "extra": { "additionalProperties": { "type": "string", "format": "uri" } },
        },
        "required": ["pattern"],
        "additionalProperties": false,
        "$defs": { "date": { "type": "string", "format": "date-time" } },
    });
    let plain = json!({
        "type": "object",
        "description": "A stay",
        "properties": {
            "pattern": { "type": "string", "description": "The name (pattern: \\S)" },
            "format": { "enum": [{ "maximum": 1 }, "minLength"], "default": { "pattern": "x" } },
            "nights": { "type": "integer", "description": "(maximum: 30)" },
            "guests": {
                "type": "array",
                "description": "(minItems: 1)",
                "items": {
                    "anyOf": [
                        { "type": "string", "description": "(maxLength: 2000)" },
                        { "type": "string", "description": "(format: date-time)" },
                    ],
                },
            },
            "extra": { "additionalProperties": { "type": "string", "description": "(format: uri)" } },
        },
        "required": ["pattern"],
        "additionalProperties": false,
    });
    let mut parameters = ChatParameters::new("any");
    parameters.tools = vec![ToolSpec::new("book", "Books a stay", schema.clone())];
    parameters.response_format =
        Some(json!({ "type": "json_schema", "json_schema": { "name": "stay", "schema": schema } }));
    let before = parameters.clone();
    let mut demands = Demands::default();
    demands.apply_to_parameters(&mut parameters);
    assert_eq!(parameters, before);

    demands.plain_schemas = true;
    demands.apply_to_parameters(&mut parameters);
    assert_eq!(parameters.tools[0].parameters, plain);
    let format = parameters.response_format.as_ref().unwrap();
    assert_eq!(format["json_schema"]["schema"], plain);
    // Another time changes nothing, and a schema of any depth is no problem.
    let once = parameters.clone();
    demands.apply_to_parameters(&mut parameters);
    assert_eq!(parameters, once);
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "items": inner }));
    parameters.tools[0].parameters = deep.clone();
    demands.apply_to_parameters(&mut parameters);
    assert_eq!(parameters.tools[0].parameters, deep);
}
