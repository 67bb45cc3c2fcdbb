//! The part of JSON Schema that strict servers accept. Members keep their declaration order.
//!
//! Rules known from servers' rejections: no keyword beside `$ref`
//! (vectorize-io/hindsight #3944), no `oneOf` or `allOf` (docker/docker-agent #4155), every member
//! required (juspay/neurolink #1691), `minimum` "is not permitted" (liam-hq/liam #1162;
//! sherifkozman/the-llm-council #55 by way of OpenRouter).

use serde_json::{Map, Value, json};

/// Rewrites a schema for strict servers; `None` if they cannot express it.
pub(super) fn strict(schema: &Value) -> Option<Value> {
    let members = schema.as_object()?;
    if let Some(to) = members.get("$ref") {
        let mut strict = Map::new();
        strict.insert("$ref".to_owned(), to.clone());
        if let Some(definitions) = members.get("$defs") {
            strict.insert("$defs".to_owned(), each(definitions)?);
        }
        return Some(strict.into());
    }
    let mut strict = Map::new();
    for (word, value) in members {
        let value = match &**word {
            "$schema"
            | "additionalProperties"
            | "default"
            | "deprecated"
            | "examples"
            | "readOnly"
            | "required"
            | "title"
            | "writeOnly" => continue,
            "format" if !is_known(value) => continue,
            "maximum" | "minimum" if only_tells_size(members, word, value) => continue,
            "$defs" => each(value)?,
            "items" => self::strict(value)?,
            "anyOf" | "oneOf" => {
                let parts = value.as_array()?.iter().map(self::strict);
                strict.insert("anyOf".to_owned(), parts.collect::<Option<Vec<_>>>()?.into());
                continue;
            }
            "properties" => continue,
            "const" | "description" | "enum" | "exclusiveMaximum" | "exclusiveMinimum"
            | "format" | "maxItems" | "maxLength" | "maximum" | "minItems" | "minLength"
            | "minimum" | "multipleOf" | "pattern" | "type" => value.clone(),
            _ => return None,
        };
        strict.insert(word.clone(), value);
    }
    if is_of(members, "object") {
        close(members, &mut strict)?;
    }
    if is_of(members, "array") && !members.contains_key("items") {
        return None;
    }
    let says = ["type", "enum", "const", "anyOf"].into_iter().any(|word| strict.contains_key(word));
    says.then(|| strict.into())
}

/// Closes an object: all members are named and required.
fn close(members: &Map<String, Value>, strict: &mut Map<String, Value>) -> Option<()> {
    if !matches!(members.get("additionalProperties"), None | Some(Value::Bool(false))) {
        return None;
    }
    let none = Map::new();
    let properties = match members.get("properties") {
        Some(properties) => properties.as_object()?,
        None => &none,
    };
    let required = members.get("required").and_then(Value::as_array);
    let mut closed = Map::new();
    for (name, property) in properties {
        let mut property = self::strict(property)?;
        if !required.is_some_and(|required| required.iter().any(|other| other == name)) {
            property = or_null(property);
        }
        closed.insert(name.clone(), property);
    }
    // In one order: servers that write members as `required` has them agree with those that follow `properties`.
    let names: Vec<&String> = closed.keys().collect();
    let required = json!(names);
    strict.insert("properties".to_owned(), closed.into());
    strict.insert("required".to_owned(), required);
    strict.insert("additionalProperties".to_owned(), false.into());
    Some(())
}

/// Makes an optional member nullable instead.
fn or_null(mut schema: Value) -> Value {
    let null = json!({ "type": "null" });
    let is_simple = schema.get("enum").is_none() && schema.get("const").is_none();
    match schema.get_mut("type") {
        Some(Value::Array(types)) if types.iter().any(|of| of == "null") => schema,
        Some(Value::Array(types)) if is_simple => {
            types.push("null".into());
            schema
        }
        Some(of @ Value::String(_)) if is_simple => {
            *of = json!([of.take(), "null"]);
            schema
        }
        _ => {
            if let Some(Value::Array(parts)) = schema.get_mut("anyOf") {
                if !parts.contains(&null) {
                    parts.push(null);
                }
                return schema;
            }
            json!({ "anyOf": [schema, null] })
        }
    }
}

fn each(definitions: &Value) -> Option<Value> {
    let definitions = definitions.as_object()?.iter();
    let definitions = definitions.map(|(name, schema)| Some((name.clone(), strict(schema)?)));
    Some(Value::Object(definitions.collect::<Option<_>>()?))
}

fn is_of(members: &Map<String, Value>, wanted: &str) -> bool {
    match members.get("type") {
        Some(Value::Array(types)) => types.iter().any(|of| of == wanted),
        Some(of) => of == wanted,
        None => false,
    }
}

/// The formats that OpenAI supports; others are rejected.
fn is_known(format: &Value) -> bool {
    let known =
        ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"];
    format.as_str().is_some_and(|format| known.contains(&format))
}

/// True if a bound only repeats the range of an integer type.
fn only_tells_size(members: &Map<String, Value>, word: &str, bound: &Value) -> bool {
    let Some(format) = members.get("format").and_then(Value::as_str) else { return false };
    let bounds = match format {
        "int8" => (i64::from(i8::MIN), Some(i64::from(i8::MAX))),
        "int16" => (i64::from(i16::MIN), Some(i64::from(i16::MAX))),
        "uint8" => (0, Some(i64::from(u8::MAX))),
        "uint16" => (0, Some(i64::from(u16::MAX))),
        "uint" | "uint32" | "uint64" | "uint128" => (0, None),
        _ => return false,
    };
    let own = if word == "minimum" { Some(bounds.0) } else { bounds.1 };
    own.is_some_and(|own| bound.as_i64() == Some(own) || bound.as_f64() == Some(own as f64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schemars::JsonSchema;

    use super::super::ResponseFormat;
    use super::*;

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
            (
                ResponseFormat::of::<Vec<u8>>(),
                json!({"type": "array", "items": {"type": "integer"}}),
            ),
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
}
