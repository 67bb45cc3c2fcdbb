use serde_json::{Map, Value, json};

/// The maximum nesting depth; deeper schemas have no strict form.
const DEPTH: usize = 64;

/// Rewrites a JSON Schema for servers with `strict: true`; `None` if it has no strict form.
///
/// In a strict schema:
///
/// - objects have no additional members, and all members are required. Optional members become nullable instead, and
///   [`check_arguments`](crate::check_arguments) reads their null as missing;
/// - alternatives use `anyOf`, not `oneOf`;
/// - nothing but `$defs` stands beside a `$ref`;
/// - there is no `default`, no annotation except `description`, no unknown `format`, and no `minimum` or `maximum`
///   that only repeats the range of an integer type, as `schemars` writes them;
/// - `exclusiveMinimum` and `exclusiveMaximum` are numbers, not the booleans of draft 4.
///
/// Other ranges, lengths and patterns are kept, although some strict servers reject them. Members keep their order. A
/// schema that is already strict is unchanged.
///
/// Maps, tuples, arbitrary JSON, `allOf` and other keywords have no strict form, and neither has a schema nested more
/// than 64 levels deep. The same holds for an object whose members are listed in several places, each of which would
/// forbid the others' once closed: beside alternatives (serde's `flatten` of an enum), beside a `$ref`, or in
/// `required` but not in `properties`. The strict schema may allow values that the original forbids with a keyword
/// beside a `$ref`, so validate the model's output against the original.
///
/// # Examples
///
/// ```
/// use oa_tools::strict_schema;
/// use serde_json::json;
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "city": { "type": "string" }, "days": { "type": "integer", "default": 3 } },
///     "required": ["city"],
/// });
/// let strict = json!({
///     "type": "object",
///     "properties": { "city": { "type": "string" }, "days": { "type": ["integer", "null"] } },
///     "required": ["city", "days"],
///     "additionalProperties": false,
/// });
/// assert_eq!(strict_schema(&schema), Some(strict));
///
/// let map = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
/// assert_eq!(strict_schema(&map), None);
/// ```
#[must_use]
pub fn strict_schema(schema: &Value) -> Option<Value> {
    rewritten(schema, DEPTH)
}

// Rules known from servers' rejections: no keyword beside `$ref` (vectorize-io/hindsight #3944), no `oneOf` or `allOf`
// (docker/docker-agent #4155), every member required (juspay/neurolink #1691), `minimum` "is not permitted"
// (liam-hq/liam #1162; sherifkozman/the-llm-council #55 by way of OpenRouter).
fn rewritten(schema: &Value, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let keywords = schema.as_object()?;
    let mut strict = Map::new();
    // The other keywords beside a reference are dropped, which only allows more: arguments are checked
    // against the original schema.
    if let Some(to) = keywords.get("$ref") {
        // Except for these: the target, once closed, forbids the members that they may require.
        if ["allOf", "anyOf", "oneOf", "properties", "required"]
            .iter()
            .any(|it| keywords.contains_key(*it))
        {
            return None;
        }
        strict.insert("$ref".to_owned(), to.clone());
        if let Some(definitions) = keywords.get("$defs") {
            strict.insert("$defs".to_owned(), definitions_of(definitions, depth)?);
        }
        return Some(strict.into());
    }
    for (keyword, value) in keywords {
        let value = match &**keyword {
            "$schema"
            | "additionalProperties"
            | "default"
            | "deprecated"
            | "examples"
            | "properties"
            | "readOnly"
            | "required"
            | "title"
            | "writeOnly" => continue,
            "format" if !is_known(value) => continue,
            // Draft 4 writes `"minimum": 0, "exclusiveMinimum": true`, which later drafts reject.
            "exclusiveMaximum" | "exclusiveMinimum" if value.is_boolean() => continue,
            "maximum" | "minimum" => {
                let exclusive = exclusive(keywords, keyword);
                if exclusive.is_some() || !only_tells_size(keywords, keyword, value) {
                    strict.insert(exclusive.unwrap_or(keyword).to_owned(), value.clone());
                }
                continue;
            }
            "$defs" => definitions_of(value, depth)?,
            "items" => rewritten(value, depth)?,
            "anyOf" | "oneOf" => {
                let parts = value.as_array()?.iter().map(|part| rewritten(part, depth));
                let parts = parts.collect::<Option<Vec<_>>>()?;
                if strict.insert("anyOf".to_owned(), parts.into()).is_some() {
                    // Both would have to hold.
                    return None;
                }
                continue;
            }
            "const" | "description" | "enum" | "exclusiveMaximum" | "exclusiveMinimum"
            | "format" | "maxItems" | "maxLength" | "minItems" | "minLength" | "multipleOf"
            | "pattern" | "type" => value.clone(),
            _ => return None,
        };
        strict.insert(keyword.clone(), value);
    }
    // Alternatives and values that are objects have members, too, and one of both would forbid the other's.
    let has_members = ["properties", "required"].iter().any(|it| keywords.contains_key(*it));
    if (has_members || is_of(keywords, "object"))
        && ["anyOf", "const", "enum"].iter().any(|it| strict.contains_key(*it))
    {
        return None;
    }
    if is_of(keywords, "object") {
        close(keywords, &mut strict, depth)?;
    }
    // A list of any JSON.
    if is_of(keywords, "array") && !keywords.contains_key("items") {
        return None;
    }
    // Any JSON has no strict form.
    let is_bound =
        ["type", "enum", "const", "anyOf"].into_iter().any(|word| strict.contains_key(word));
    is_bound.then(|| strict.into())
}

/// Closes an object: every member is named and required.
fn close(
    keywords: &Map<String, Value>,
    strict: &mut Map<String, Value>,
    depth: usize,
) -> Option<()> {
    if !matches!(keywords.get("additionalProperties"), None | Some(Value::Bool(false))) {
        return None;
    }
    let none = Map::new();
    let properties = match keywords.get("properties") {
        Some(properties) => properties.as_object()?,
        None => &none,
    };
    let required = keywords.get("required").and_then(Value::as_array);
    // Closed, it could never have a required member that is not among the properties.
    let mut names = required.into_iter().flatten().filter_map(Value::as_str);
    if names.any(|name| !properties.contains_key(name)) {
        return None;
    }
    let mut closed = Map::new();
    for (name, property) in properties {
        let mut property = rewritten(property, depth)?;
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

/// Makes an optional member nullable.
fn or_null(mut schema: Value) -> Value {
    let null = json!({ "type": "null" });
    // These exclude null even if the type allows it, unless the values include it.
    let is_simple =
        ["anyOf", "const", "enum", "$ref"].iter().all(|word| schema.get(word).is_none());
    let values = schema.get("enum").and_then(Value::as_array);
    let allows_null = is_simple || values.is_some_and(|values| values.contains(&Value::Null));
    match schema.get_mut("type") {
        Some(Value::Array(types)) if allows_null && types.iter().any(|of| of == "null") => schema,
        Some(Value::String(of)) if allows_null && of == "null" => schema,
        Some(Value::Array(types)) if is_simple => {
            types.push("null".into());
            schema
        }
        Some(of @ Value::String(_)) if is_simple => {
            *of = json!([of.take(), "null"]);
            schema
        }
        _ => {
            let is_alone =
                ["const", "enum", "type"].iter().all(|other| schema.get(other).is_none());
            if let Some(Value::Array(parts)) = schema.get_mut("anyOf").filter(|_| is_alone) {
                if !parts.contains(&null) {
                    parts.push(null);
                }
                return schema;
            }
            // Not the name: in the macro it is the literal.
            json!({ "anyOf": [schema, { "type": "null" }] })
        }
    }
}

fn definitions_of(definitions: &Value, depth: usize) -> Option<Value> {
    let definitions = definitions.as_object()?.iter();
    let definitions =
        definitions.map(|(name, schema)| Some((name.clone(), rewritten(schema, depth)?)));
    Some(Value::Object(definitions.collect::<Option<_>>()?))
}

/// Returns true if `type` allows values of this type.
fn is_of(keywords: &Map<String, Value>, wanted: &str) -> bool {
    match keywords.get("type") {
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

/// Returns the name of a bound that a boolean of draft 4 makes exclusive.
fn exclusive(keywords: &Map<String, Value>, bound: &str) -> Option<&'static str> {
    let name = if bound == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
    (keywords.get(name) == Some(&Value::Bool(true))).then_some(name)
}

/// True if a bound only repeats the range of an integer type.
fn only_tells_size(keywords: &Map<String, Value>, keyword: &str, bound: &Value) -> bool {
    let Some(format) = keywords.get("format").and_then(Value::as_str) else { return false };
    let bounds = match format {
        "int8" => (i64::from(i8::MIN), Some(i64::from(i8::MAX))),
        "int16" => (i64::from(i16::MIN), Some(i64::from(i16::MAX))),
        "uint8" => (0, Some(i64::from(u8::MAX))),
        "uint16" => (0, Some(i64::from(u16::MAX))),
        "uint" | "uint32" | "uint64" | "uint128" => (0, None),
        _ => return false,
    };
    let own = if keyword == "minimum" { Some(bounds.0) } else { bounds.1 };
    own.is_some_and(|own| bound.as_i64() == Some(own) || bound.as_f64() == Some(own as f64))
}
