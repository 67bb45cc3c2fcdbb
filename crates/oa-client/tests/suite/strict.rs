//! The schemas that strict servers are sent.

use std::collections::BTreeMap;

use oa_client::ResponseFormat;
use schemars::JsonSchema;
use serde_json::{Value, json};

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only their schemas are of interest")]
struct Report {
    /// In a sentence.
    title: String,
    #[serde(default)]
    pages: u8,
    #[schemars(range(min = 1, max = 5))]
    stars: Option<u32>,
    mood: Mood,
    second_mood: Option<Mood>,
    parts: Vec<Part>,
    #[serde(default)]
    tags: Vec<String>,
    nothing: Empty,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only their schemas are of interest")]
enum Mood {
    Good,
    /// It happens.
    Bad,
}

#[derive(JsonSchema)]
#[serde(tag = "kind")]
#[expect(dead_code, reason = "only their schemas are of interest")]
enum Part {
    Text { words: String },
    Group { parts: Vec<Self> },
}

#[derive(JsonSchema)]
struct Empty {}

#[test]
fn a_type_is_closed_and_complete() {
    let format = Value::from(ResponseFormat::of::<Report>());
    assert_eq!(format["json_schema"]["strict"], true);
    let schema = serde_json::to_string_pretty(&format["json_schema"]["schema"]).unwrap();
    insta::assert_snapshot!(schema, @r##"
    {
      "type": "object",
      "$defs": {
        "Part": {
          "anyOf": [
            {
              "type": "object",
              "properties": {
                "kind": {
                  "type": "string",
                  "const": "Text"
                },
                "words": {
                  "type": "string"
                }
              },
              "required": [
                "kind",
                "words"
              ],
              "additionalProperties": false
            },
            {
              "type": "object",
              "properties": {
                "kind": {
                  "type": "string",
                  "const": "Group"
                },
                "parts": {
                  "type": "array",
                  "items": {
                    "$ref": "#/$defs/Part"
                  }
                }
              },
              "required": [
                "kind",
                "parts"
              ],
              "additionalProperties": false
            }
          ]
        }
      },
      "properties": {
        "title": {
          "type": "string",
          "description": "In a sentence."
        },
        "pages": {
          "type": [
            "integer",
            "null"
          ]
        },
        "stars": {
          "type": [
            "integer",
            "null"
          ],
          "minimum": 1,
          "maximum": 5
        },
        "mood": {
          "anyOf": [
            {
              "type": "string",
              "enum": [
                "Good"
              ]
            },
            {
              "type": "string",
              "const": "Bad",
              "description": "It happens."
            }
          ]
        },
        "second_mood": {
          "anyOf": [
            {
              "anyOf": [
                {
                  "type": "string",
                  "enum": [
                    "Good"
                  ]
                },
                {
                  "type": "string",
                  "const": "Bad",
                  "description": "It happens."
                }
              ]
            },
            {
              "type": "null"
            }
          ]
        },
        "parts": {
          "type": "array",
          "items": {
            "anyOf": [
              {
                "type": "object",
                "properties": {
                  "kind": {
                    "type": "string",
                    "const": "Text"
                  },
                  "words": {
                    "type": "string"
                  }
                },
                "required": [
                  "kind",
                  "words"
                ],
                "additionalProperties": false
              },
              {
                "type": "object",
                "properties": {
                  "kind": {
                    "type": "string",
                    "const": "Group"
                  },
                  "parts": {
                    "type": "array",
                    "items": {
                      "$ref": "#/$defs/Part"
                    }
                  }
                },
                "required": [
                  "kind",
                  "parts"
                ],
                "additionalProperties": false
              }
            ]
          }
        },
        "tags": {
          "type": [
            "array",
            "null"
          ],
          "items": {
            "type": "string"
          }
        },
        "nothing": {
          "type": "object",
          "properties": {},
          "required": [],
          "additionalProperties": false
        }
      },
      "required": [
        "title",
        "pages",
        "stars",
        "mood",
        "second_mood",
        "parts",
        "tags",
        "nothing"
      ],
      "additionalProperties": false
    }
    "##);
}

#[test]
fn what_is_no_object_is_wrapped() {
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

#[test]
fn what_cannot_be_strict_is_sent_as_it_is() {
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
