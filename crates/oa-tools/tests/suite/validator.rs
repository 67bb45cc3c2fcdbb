//! Arguments checked by every keyword of JSON Schema.

use insta::assert_snapshot;
use oa_tools::{ErrorKind, SchemaValidator, Tool, check_arguments, tool};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

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
fn problems_are_counted_and_quotes_cut() {
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
fn invalid_and_external_schemas_are_rejected() {
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
fn completed_arguments_are_validated() {
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

#[test]
fn hidden_defaults_need_not_match() {
    let send = tool("send", "Sends")
        .param_with("to", json!({ "type": "string", "pattern": "@" }))
        .default("to", "nobody")
        .param_with("size", json!({ "type": "integer", "multipleOf": 5 }))
        .default("size", 3)
        .build(|args| async move { Ok(args) });
    send.check().expect("it can be offered");
    let completed = json!({ "to": "nobody", "size": 3 });
    assert_eq!(send.prepare(json!({})), Ok(completed.clone()));
    assert_eq!(send.prepare(completed.clone()), Ok(completed));
    let error = send.prepare(json!({ "size": 7 })).expect_err("it does not match");
    assert_snapshot!(error, @"`size`: number 7 is not a multiple of 5");
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..6).prop_map(Value::from),
        (-4..10).prop_map(|halves| json!(f64::from(halves) / 2.0)),
        select(vec!["", "a", "bb", "\u{e9}\u{e9}\u{e9}"]).prop_map(Value::from),
    ]
}

fn members<S: Strategy<Value = Value>>(member: S) -> impl Strategy<Value = Value> {
    prop::collection::hash_map("[a-c]", member, 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            members(inner),
        ]
    })
}

/// One keyword of those that `check_arguments` checks. Bounds do not exclude each other, and none is beside a default,
/// because such bounds are not checked.
fn keyword<S>(inner: S) -> impl Strategy<Value = (&'static str, Value)>
where
    S: Strategy<Value = Value> + Clone + 'static,
{
    let types =
        || select(vec!["array", "boolean", "integer", "null", "number", "object", "string"]);
    let parts = || prop::collection::vec(inner.clone(), 1..3);
    prop_oneof![
        4 => types().prop_map(|of| ("type", json!(of))),
        1 => select(vec!["integer", "object", "string"]).prop_map(|of| ("type", json!([of, "null"]))),
        1 => prop::collection::vec(scalar(), 1..4).prop_map(|values| ("enum", json!(values))),
        1 => scalar().prop_map(|value| ("const", value)),
        1 => (select(vec!["minimum", "minLength", "minItems"]), 0..2).prop_map(|(name, least)| (name, json!(least))),
        1 => (select(vec!["maximum", "maxLength", "maxItems"]), 2..4).prop_map(|(name, most)| (name, json!(most))),
        1 => (-2..0).prop_map(|above| ("exclusiveMinimum", json!(above))),
        1 => (4..6).prop_map(|below| ("exclusiveMaximum", json!(below))),
        3 => members(inner.clone()).prop_map(|properties| ("properties", properties)),
        2 => prop::collection::hash_set("[a-c]", 0..3).prop_map(|names| ("required", json!(names))),
        2 => prop_oneof![Just(json!(false)), inner.clone()].prop_map(|of| ("additionalProperties", of)),
        1 => inner.clone().prop_map(|items| ("items", items)),
        1 => parts().prop_map(|items| ("prefixItems", json!(items))),
        1 => parts().prop_map(|all| ("allOf", json!(all))),
        1 => parts().prop_map(|any| ("anyOf", json!(any))),
        1 => Just(("$ref", json!("#/$defs/part"))),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(false)),
        value().prop_map(|value| json!({ "default": value })),
        select(vec!["integer", "string"]).prop_map(|of| json!({ "type": of })),
        (select(vec!["integer", "object"]), value())
            .prop_map(|(of, value)| json!({ "type": of, "default": value })),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop::collection::vec(keyword(inner.boxed()), 0..4).prop_map(|words| {
            Value::Object(words.into_iter().map(|(name, of)| (name.to_owned(), of)).collect())
        })
    })
}

/// A schema without references: one that refers to itself may have no meaning.
fn part() -> impl Strategy<Value = Value> {
    schema().prop_map(|part| match part.to_string().contains("$ref") {
        true => json!({ "type": "integer", "default": 2.0 }),
        false => part,
    })
}

proptest! {
    /// Another implementation agrees: what completed arguments pass is valid, and what is valid is not refused.
    #[test]
    fn checks_agree_with_the_validator(
        schema in schema(),
        part in part(),
        properties in members(schema()),
        given in prop::collection::vec(members(value()), 8),
    ) {
        let mut whole = match schema {
            Value::Object(keywords) => keywords,
            _ => Map::new(),
        };
        whole.insert("type".to_owned(), json!("object"));
        whole.entry("properties").or_insert(properties);
        whole.insert("$defs".to_owned(), json!({ "part": part }));
        let whole = Value::Object(whole);
        let validator = SchemaValidator::new(&whole).expect("it is a valid schema");
        for arguments in given {
            match check_arguments(&whole, arguments.clone()) {
                Ok(completed) => prop_assert_eq!(validator.validate(&completed), Ok(()), "{} by {}", completed, whole),
                Err(error) => prop_assert!(validator.validate(&arguments).is_err(), "{arguments} by {whole}: {error}"),
            }
        }
    }
}
