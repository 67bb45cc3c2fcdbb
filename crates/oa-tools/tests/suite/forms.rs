//! Schemas in the forms that servers ask for accept what the tool accepts.

use oa_tools::check_arguments;
use oa_types::ToolSpec;
use oa_types::wire::{ChatParameters, Demands};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

const NAMES: [&str; 3] = ["a", "b/c", "d e"];

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": ["integer", "null"] })),
        Just(json!({ "enum": ["x", 1] })),
        Just(json!(true)),
        Just(json!({ "$ref": "#" })),
        Just(json!({ "$ref": "#/$defs/a", "description": "A use" })),
        Just(json!({ "$ref": "#/$defs/b~1c" })),
        Just(json!({ "$ref": "#/$defs/d%20e" })),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|of| json!({ "type": "array", "items": of })),
            vec(inner.clone(), 1..3).prop_map(|of| json!({ "anyOf": of })),
            (inner.clone(), any::<bool>()).prop_map(|(of, required)| {
                let required = if required { vec!["m"] } else { Vec::new() };
                json!({ "type": "object", "properties": { "m": of }, "required": required })
            }),
            inner.prop_map(|of| json!({ "allOf": [of] })),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = select(vec![json!("x"), json!("y"), json!(1), json!(2), json!(null), json!(true)]);
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            inner.prop_map(|of| json!({ "m": of })),
            Just(json!({})),
        ]
    })
}

proptest! {
    /// References and booleans are another notation, so the plain form accepts exactly the same.
    #[test]
    fn plain_schemas_accept_the_same(
        member in schema(),
        definitions in vec(schema(), NAMES.len()),
        values in vec(value(), 8),
    ) {
        // A definition that is only a reference may lead nowhere but to itself.
        let definitions = NAMES.into_iter().zip(definitions);
        let definitions: serde_json::Map<_, _> = definitions
            .map(|(name, of)| (name.to_owned(), json!({ "properties": { "m": of } })))
            .collect();
        let original = json!({
            "type": "object",
            "properties": { "m": member },
            "$defs": definitions,
        });
        let mut parameters = ChatParameters::new("any");
        parameters.tools = vec![ToolSpec::new("t", "", original.clone())];
        let mut demands = Demands::default();
        demands.plain_schemas = true;
        demands.apply_to_parameters(&mut parameters);
        let plain = &parameters.tools[0].parameters;
        let text = plain.to_string();
        prop_assert!(!text.contains(":true") && !text.contains("[true"), "{text}");
        for reference in text.split("\"$ref\":\"").skip(1) {
            prop_assert!(reference.starts_with("#/$defs/part_"), "{text}");
        }
        for value in values {
            let given = json!({ "m": value });
            let accepted = check_arguments(&original, given.clone()).is_ok();
            prop_assert_eq!(accepted, check_arguments(plain, given).is_ok(), "{} {}", value, plain);
        }
    }
}
