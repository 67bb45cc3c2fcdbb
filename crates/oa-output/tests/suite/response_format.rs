//! The schemas that are sent to servers.

use std::collections::BTreeMap;

use oa_output::ResponseFormat;
use schemars::JsonSchema;
use serde_json::{Value, json};

#[derive(JsonSchema)]
#[serde(tag = "kind")]
#[expect(dead_code, reason = "only their schemas are of interest")]
enum Part {
    Text { words: String },
    Group { parts: Vec<Self> },
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only their schemas are of interest")]
struct Place {
    city: String,
    #[serde(default)]
    people: u32,
}

#[test]
fn types_send_strict_and_check_own_schema() {
    let format = ResponseFormat::of::<Place>();
    let own = format.schema().clone();
    assert_eq!(format.check(json!({"city": "Oslo"})), Ok(json!({"city": "Oslo", "people": 0})));
    let sent = Value::from(format);
    assert_eq!(sent["json_schema"]["strict"], true);
    assert_eq!(sent["json_schema"]["schema"], oa_tools::strict_schema(&own).unwrap());
    assert_ne!(sent["json_schema"]["schema"], own);
}

#[test]
fn other_types_are_wrapped_in_an_object() {
    for (format, value) in [
        (ResponseFormat::of::<Vec<u8>>(), json!({"type": "array", "items": {"type": "integer"}})),
        (ResponseFormat::of::<Option<bool>>(), json!({"type": ["boolean", "null"]})),
    ] {
        let format = Value::from(format);
        assert_eq!(
            format["json_schema"]["schema"],
            json!({
                "type": "object",
                "properties": {"value": value},
                "required": ["value"],
                "additionalProperties": false,
            })
        );
    }
    let wrapped = ResponseFormat::of::<Part>();
    assert_eq!(wrapped.name(), "Part");
    let part = json!({"kind": "Group", "parts": [{"kind": "Text", "words": "a"}]});
    assert_eq!(wrapped.check(json!({"value": part})), Ok(part));
    let error = wrapped.check(json!({"value": {"kind": "Text"}})).unwrap_err().to_string();
    assert!(error.contains("`value`") || error.contains("`value.words`"), "{error}");
}

/// Only a value that the format wraps is taken out of its object, also while the object is incomplete.
#[test]
fn wrapped_values_are_unwrapped() {
    let list = ResponseFormat::of::<Vec<u8>>();
    let object = json!({ "value": [1] });
    assert_eq!(list.check(object.clone()), Ok(json!([1])));
    assert_eq!(list.complete(&object), json!([1]));
    assert_eq!(list.wanted(&object), Some(&json!([1])));
    assert_eq!(list.wanted(&json!({})), None);
    let plain = ResponseFormat::new("plain", json!({ "type": "object" }));
    assert_eq!(plain.check(object.clone()), Ok(object.clone()));
    assert_eq!((plain.complete(&object), plain.wanted(&object)), (object.clone(), Some(&object)));
    let defaults = ResponseFormat::of::<Place>();
    assert_eq!(defaults.complete(&json!({})), json!({ "people": 0 }));
}

#[test]
fn maps_are_sent_without_strict() {
    let names: [(ResponseFormat, &str); 3] = [
        (ResponseFormat::of::<BTreeMap<String, u32>>(), "map"),
        (ResponseFormat::of::<(u32, String)>(), "tuple"),
        (ResponseFormat::of::<Vec<Value>>(), "any"),
    ];
    for (format, what) in names {
        let schema = format.schema().clone();
        let sent = Value::from(format);
        assert_eq!(sent["json_schema"]["strict"], false, "{what}");
        assert_eq!(sent["json_schema"]["schema"], schema, "{what}");
    }
}

/// A format goes through JSON: typed ones with all that they are, and names become such as servers accept.
#[test]
fn formats_are_json() {
    let of_list = ResponseFormat::of::<Vec<u8>>();
    let text = serde_json::to_string(&of_list).unwrap();
    let read: ResponseFormat = serde_json::from_str(&text).unwrap();
    assert_eq!(read, of_list);
    assert_eq!(read.check(json!({ "value": [1, 2] })).unwrap(), json!([1, 2]));
    let plain = json!({ "name": "a place", "schema": { "type": "object" } });
    let read: ResponseFormat = serde_json::from_value(plain).unwrap();
    assert_eq!(read, ResponseFormat::new("a place", json!({ "type": "object" })));
    assert_eq!(read.name(), "a_place");
}
