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
