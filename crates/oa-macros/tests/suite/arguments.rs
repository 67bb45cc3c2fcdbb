//! Parameters of functions as arguments of the model.

use insta::assert_snapshot;
use oa_macros::tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::execute;

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

/// A stop of a journey.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
struct Stop {
    /// The name of the station.
    station: String,
    #[serde(default)]
    nights: u8,
}

/// Plans a journey.
///
/// It is never longer than
/// a week.
#[tool]
async fn plan(
    /// The city, e.g. Oslo.
    city: String,
    #[default(Unit::Celsius)] unit: Unit,
    /// Days ahead,
    /// if not today.
    days: Option<u8>,
    #[default] stops: Vec<Stop>,
    #[default("en")] language: String,
) -> Value {
    json!([city, unit, days, stops, language])
}

#[test]
fn the_signature_is_the_schema() {
    let plan = plan::tool();
    plan.check().unwrap();
    assert_eq!(plan.name(), "plan");
    assert_eq!(plan.description(), "Plans a journey.\n\nIt is never longer than\na week.");
    let schema = serde_json::to_string_pretty(plan.input_schema()).unwrap();
    assert_snapshot!(schema, @r#"
    {
      "type": "object",
      "properties": {
        "city": {
          "type": "string",
          "description": "The city, e.g. Oslo."
        },
        "unit": {
          "type": "string",
          "enum": [
            "celsius",
            "kelvin"
          ],
          "default": "celsius"
        },
        "days": {
          "type": [
            "integer",
            "null"
          ],
          "format": "uint8",
          "minimum": 0,
          "maximum": 255,
          "description": "Days ahead,\nif not today."
        },
        "stops": {
          "type": "array",
          "items": {
            "description": "A stop of a journey.",
            "type": "object",
            "properties": {
              "station": {
                "description": "The name of the station.",
                "type": "string"
              },
              "nights": {
                "type": "integer",
                "format": "uint8",
                "minimum": 0,
                "maximum": 255,
                "default": 0
              }
            },
            "required": [
              "station"
            ]
          },
          "default": []
        },
        "language": {
          "type": "string",
          "default": "en"
        }
      },
      "required": [
        "city"
      ]
    }
    "#);
}

#[test]
fn omitted_arguments_are_filled_in() {
    let run = |input| execute(&plan::tool(), input);
    assert_eq!(run(json!({ "city": "Oslo" })).unwrap(), json!(["Oslo", "celsius", null, [], "en"]));
    let full = json!({
        "city": "Oslo", "unit": "kelvin", "days": 2, "stops": [{ "station": "Hamar" }], "language": "no",
    });
    let stops = json!([{ "station": "Hamar", "nights": 0 }]);
    assert_eq!(run(full).unwrap(), json!(["Oslo", "kelvin", 2, stops, "no"]));
    assert_eq!(run(json!({ "city": "Oslo", "days": null })).unwrap()[2], json!(null));
}

#[test]
fn problems_name_the_argument() {
    let refused = |input| execute(&plan::tool(), input).unwrap_err();
    assert_snapshot!(refused(json!({})), @"`city`: required, but missing; expected string");
    assert_snapshot!(refused(json!({ "city": "a", "unit": "f" })), @r#"`unit`: expected one of "celsius", "kelvin", found string "f""#);
    assert_snapshot!(refused(json!({ "city": "a", "days": 300 })), @"`days`: expected at most 255, found 300");
    assert_snapshot!(refused(json!({ "city": "a", "stops": [{ "nights": 1 }] })), @"`stops[0].station`: required, but missing; expected string");
}

/// Searches.
#[tool]
async fn search(
    #[serde(rename = "type")] kind: String,
    #[schemars(range(min = 1, max = 7))]
    #[default(3)]
    limit: u8,
    r#in: Option<String>,
) -> String {
    format!("{kind} {limit} {:?}", r#in)
}

#[test]
fn serde_and_schemars_attributes_apply() {
    let schema = search::tool().input_schema().clone();
    assert_eq!(schema["required"], json!(["type"]));
    assert_eq!(schema["properties"]["limit"]["maximum"], 7);
    assert_eq!(schema["properties"]["in"]["type"], json!(["string", "null"]));
    let found = execute(&search::tool(), json!({ "type": "a", "in": "b" }));
    assert_eq!(found.unwrap(), json!(r#"a 3 Some("b")"#));
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
struct Page {
    /// From 1.
    number: u32,
    size: Option<u32>,
}

/// Lists.
#[tool]
async fn list(word: String, #[serde(flatten)] page: Page) -> (String, Page) {
    (word, page)
}

#[test]
fn structs_may_be_flattened() {
    let list = list::tool();
    assert_eq!(list.input_schema()["required"], json!(["word", "number"]));
    assert_eq!(list.input_schema()["properties"]["number"]["description"], "From 1.");
    let listed = execute(&list, json!({ "word": "a", "number": 2 })).unwrap();
    assert_eq!(listed, json!(["a", { "number": 2, "size": null }]));
    let error = execute(&list, json!({ "word": "a" })).unwrap_err();
    assert_eq!(error, "`number`: required, but missing; expected integer");
}

/// A type that cannot be written: its default is known to Rust alone.
#[derive(Deserialize, JsonSchema)]
struct Hidden(u8);

impl Default for Hidden {
    fn default() -> Self {
        Self(7)
    }
}

/// Takes what it is given.
#[tool]
async fn hidden(#[default] a: Hidden, #[default(Hidden(8))] b: Hidden) -> (u8, u8) {
    (a.0, b.0)
}

#[test]
fn defaults_need_not_be_serializable() {
    let hidden = hidden::tool();
    assert_eq!(hidden.input_schema()["properties"]["a"].get("default"), None);
    assert_eq!(hidden.input_schema().get("required"), None);
    assert_eq!(execute(&hidden, json!({})).unwrap(), json!([7, 8]));
    assert_eq!(execute(&hidden, json!({ "b": 1 })).unwrap(), json!([7, 1]));
}

/// Returns the time.
#[tool]
async fn now() -> &'static str {
    "noon"
}

#[test]
fn no_arguments_give_an_empty_schema() {
    let schema = json!({ "type": "object", "properties": {}, "required": [] });
    assert_eq!(*now::tool().input_schema(), schema);
    for input in [json!({}), json!(null), json!({ "other": 1 })] {
        assert_eq!(execute(&now::tool(), input).unwrap(), json!("noon"));
    }
}
