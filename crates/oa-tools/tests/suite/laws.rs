//! Laws for arbitrary schemas and arguments.

use oa_tools::{FnTool, Tool, check_arguments, complete_arguments, tool};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-c]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Mostly valid schemas, with members called a, b and c.
pub(crate) fn any_schema() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "array", "boolean", "integer", "null", "number", "object", "string",
    ]);
    let leaf = prop_oneof![
        word.prop_map(|of| json!({ "type": of })),
        prop::collection::vec(any_json(), 1..3).prop_map(|values| json!({ "enum": values })),
        Just(json!({})),
        Just(json!({ "$ref": "#" })),
        any_json().prop_map(|value| json!({ "default": value })),
        any_json(),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let members = prop::collection::hash_map("[a-c]", inner.clone(), 0..3)
            .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()));
        let required = prop::collection::vec("[a-c]", 0..2);
        let additional = prop_oneof![
            Just(None),
            any::<bool>().prop_map(|open| Some(Value::Bool(open))),
            inner.clone().prop_map(Some),
        ];
        let tuple = prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (members, required, additional).prop_map(|(properties, required, additional)| {
                let mut schema = json!({
                    "type": "object", "properties": properties, "required": required,
                });
                if let Some(additional) = additional {
                    schema["additionalProperties"] = additional;
                }
                schema
            }),
            (tuple, inner.clone()).prop_map(|(tuple, items)| {
                json!({ "type": "array", "prefixItems": tuple, "items": items })
            }),
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            prop::collection::vec(inner, 1..3).prop_map(|parts| json!({ "anyOf": parts })),
        ]
    })
}

/// A place in a schema for the schema of a value: the schema around it, and the value around the value.
fn place(number: usize, schema: &Value, value: &Value) -> (Value, Value) {
    match number {
        0 => (json!({ "properties": { "a": schema } }), json!({ "a": value })),
        1 => (json!({ "additionalProperties": schema }), json!({ "a": value })),
        2 => (
            json!({ "properties": { "b": false }, "additionalProperties": schema }),
            json!({ "a": value }),
        ),
        3 => (json!({ "items": schema }), json!([value, value])),
        4 => (json!({ "prefixItems": [schema, true], "items": false }), json!([value, "x"])),
        5 => {
            (json!({ "prefixItems": [{ "type": "string" }], "items": schema }), json!(["x", value]))
        }
        6 => (json!({ "items": [schema], "additionalItems": false }), json!([value])),
        7 => (json!({ "items": [true], "additionalItems": schema }), json!(["x", value])),
        8 => (json!({ "allOf": [{}, schema] }), value.clone()),
        9 => (json!({ "anyOf": [false, schema] }), value.clone()),
        10 => (json!({ "oneOf": [schema] }), value.clone()),
        _ => (
            json!({
                "patternProperties": { "^x-": { "type": "string" } },
                "additionalProperties": false,
                "properties": { "a": schema },
            }),
            json!({ "a": value, "x-b": "x" }),
        ),
    }
}

proptest! {
    /// Wherever a value stands, its schema is found, and no schema that is meant for another place.
    #[test]
    fn nested_values_are_completed_and_checked(
        places in prop::collection::vec(0..12_usize, 0..5),
    ) {
        let of = json!({
            "type": "object",
            "properties": { "n": { "type": "integer" }, "d": { "default": 7 } },
            "required": ["n"],
        });
        let written = [json!({ "n": 3.0 }), json!({ "n": 3, "d": 7 }), json!({ "n": "x" })];
        let [given, expected, wrong] = written.map(|value| {
            places.iter().fold((of.clone(), value), |(schema, value), &at| place(at, &schema, &value))
        });
        prop_assert_eq!(check_arguments(&given.0, given.1), Ok(expected.1));
        prop_assert!(check_arguments(&wrong.0, wrong.1).is_err());
    }

    /// Accepted arguments pass again unchanged.
    #[test]
    fn preparing_is_idempotent(schema in any_schema(), input in any_json()) {
        if let Ok(once) = check_arguments(&schema, input.clone()) {
            prop_assert_eq!(check_arguments(&schema, once.clone()), Ok(once));
        }
        let once = complete_arguments(&schema, input);
        prop_assert_eq!(complete_arguments(&schema, once.clone()), once);
    }

    /// The same for a tool with hidden defaults.
    #[test]
    fn hidden_defaults_keep_prepare_idempotent(
        schema in any_schema(),
        hidden in prop::collection::btree_map("[a-d]", (any_schema(), any_json()), 0..3),
        input in any_json(),
    ) {
        let mut tool = tool("t", "").schema(schema);
        for (name, (parameter, default)) in hidden {
            tool = tool.param_with(&name, parameter).default(&name, default);
        }
        let tool = tool.build(|args| async { Ok(args) });
        // A tool with a mistake is never offered.
        prop_assume!(tool.check().is_ok());
        if let Ok(once) = tool.prepare(input) {
            prop_assert_eq!(tool.prepare(once.clone()), Ok(once));
        }
    }

    #[test]
    fn every_refusal_names_a_problem(schema in any_schema(), input in any_json()) {
        if let Err(error) = check_arguments(&schema, input) {
            prop_assert!(!error.problems().is_empty());
            prop_assert!(error.problems().iter().all(|problem| !problem.message.is_empty()));
        }
    }

    /// Any value can be given as a schema and checked without a panic.
    #[test]
    fn no_schema_panics(schema in prop_oneof![any_schema(), any_json()], input in any_json()) {
        let tool = FnTool::new("t", "", schema, |args| async { Ok(args) });
        if tool.check().is_ok() {
            prop_assert!(Tool::spec(&tool).parameters.is_object());
        }
        let _ = tool.prepare(input);
    }

    /// A shorthand accepts the same arguments as its schema.
    #[test]
    fn shorthand_accepts_what_its_schema_does(names in prop::collection::btree_set("[a-d]", 0..4), input in any_json()) {
        let shorthand = names.iter().map(|name| (name.clone(), json!("integer"))).collect();
        let tool = FnTool::new("t", "", Value::Object(shorthand), |args| async { Ok(args) });
        prop_assert_eq!(tool.prepare(input.clone()), check_arguments(tool.input_schema(), input));
    }
}
