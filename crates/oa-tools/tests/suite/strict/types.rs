//! Types, by the schemas that they derive.

use std::collections::BTreeMap;

use oa_tools::{schema_of, strict_schema};
use schemars::JsonSchema;
use serde_json::Value;

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
fn structs_are_closed_and_all_required() {
    let strict = strict_schema(&schema_of::<Report>()).unwrap();
    let schema = serde_json::to_string_pretty(&strict).unwrap();
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
fn maps_tuples_and_any_json_give_none() {
    for (schema, name) in [
        (schema_of::<BTreeMap<String, u32>>(), "map"),
        (schema_of::<(u32, String)>(), "tuple"),
        (schema_of::<Vec<Value>>(), "any"),
    ] {
        assert_eq!(strict_schema(&schema), None, "{name}");
    }
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only their schemas are of interest")]
struct Change {
    path: String,
    #[serde(flatten)]
    action: Action,
}

#[derive(JsonSchema)]
#[serde(tag = "kind")]
#[expect(dead_code, reason = "only their schemas are of interest")]
enum Action {
    Delete,
    Write { text: String },
}

/// Closed, the object would forbid the members of the alternatives, and they its own.
#[test]
fn flattened_enums_have_no_strict_form() {
    assert_eq!(strict_schema(&schema_of::<Change>()), None);
}
