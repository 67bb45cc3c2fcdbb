//! Arguments checked by every keyword of JSON Schema.

use insta::assert_snapshot;
use oa_tools::{ErrorKind, SchemaValidator, Tool, tool};
use serde_json::{Value, json};

fn refused(schema: &Value, arguments: &Value) -> String {
    let validator = SchemaValidator::new(schema).expect("it is a valid schema");
    validator.validate(arguments).expect_err("the arguments do not match").to_string()
}

#[test]
fn patterns_and_formats_are_checked() {
    let schema = json!({
        "type": "object",
        "properties": {
            "to": { "type": "string", "format": "email" },
            "stops": {
                "type": "array",
                "items": { "properties": { "code": { "pattern": "^[A-Z]{3}$" } } },
                "uniqueItems": true,
            },
            "size": { "type": "integer", "multipleOf": 5, "format": "int32" },
        },
    });
    let arguments =
        json!({ "to": "Ada", "stops": [{ "code": "OSL" }, { "code": "osl" }], "size": 7 });
    assert_snapshot!(refused(&schema, &arguments), @r#"`to`: string "Ada" is not a "email"; `stops[1].code`: string "osl" does not match "^[A-Z]{3}$"; `size`: number 7 is not a multiple of 5"#);
    let same = json!({ "stops": [1, 1] });
    assert_snapshot!(refused(&schema, &same), @"`stops`: array of 2 has non-unique elements");
    let validator = SchemaValidator::new(&schema).expect("it is a valid schema");
    let fitting = json!({ "to": "ada@example.com", "stops": [{ "code": "OSL" }], "size": 10 });
    assert_eq!(validator.validate(&fitting), Ok(()));
}

#[test]
fn problems_are_counted_and_short() {
    let schema =
        json!({ "items": { "pattern": "^a" }, "properties": { "text": { "format": "uuid" } } });
    let many: Value = (0..20).map(|number| json!(format!("b{number}"))).collect();
    assert!(refused(&schema, &many).ends_with("; and 12 more"));
    let long = "x".repeat(100_000);
    assert!(refused(&schema, &json!({ "text": long })).len() < 200);
    let odd = json!({ "additionalProperties": { "not": {} } });
    assert!(refused(&odd, &json!({ (long): 1 })).len() < 1_000);
}

#[test]
fn invalid_schemas_and_other_documents_are_mistakes() {
    for (schema, expected) in [
        (json!({ "type": "any" }), "type"),
        (json!({ "properties": { "a": { "pattern": "(" } } }), "pattern"),
        (json!({ "$ref": "https://example.com/schema.json" }), "example.com"),
        (json!({ "$ref": "file:///etc/passwd" }), "file"),
    ] {
        let error = SchemaValidator::new(&schema).expect_err("it is a mistake");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let broken = tool("find", "Finds")
        .schema(json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }))
        .build(|_| async { Ok(json!(null)) });
    assert_snapshot!(broken.check().expect_err("it is a mistake"), @r#"tool find: invalid schema: `properties.a.pattern`: string "(" is not a "regex""#);
}

/// Defaults are filled in first, and those hidden from the model need not match.
#[test]
fn a_tool_checks_its_completed_arguments() {
    let send = tool("send", "Sends")
        .param_with("to", json!({ "type": "string", "pattern": "@" }))
        .param("note", "string")
        .default("note", Value::Null)
        .param_with("size", json!({ "type": "integer", "multipleOf": 5 }))
        .default("size", 10)
        .build(|args| async move { Ok(args) });
    let completed = json!({ "to": "a@b", "note": null, "size": 10 });
    assert_eq!(send.prepare(json!({ "to": "a@b" })), Ok(completed.clone()));
    assert_eq!(send.prepare(completed.clone()), Ok(completed));
    let error = send.prepare(json!({ "to": "ada", "size": 7 })).expect_err("they do not match");
    assert_snapshot!(error, @r#"`to`: string "ada" does not match "@"; `size`: number 7 is not a multiple of 5"#);
}
