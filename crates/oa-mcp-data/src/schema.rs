use serde_json::{Map, Value};

use crate::repair::{repaired, resolve};

/// The maximum nesting depth of an offered schema.
const DEPTH: usize = 64;
/// The longest chain of references.
const REFERENCES: usize = 16;
/// The maximum number of schemas in a portable form, so that nested references cannot make it grow without bound.
const WORK: usize = 4_096;

/// The form of tool schemas that are sent to the model server.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum SchemaForm {
    /// The server's schema without `$schema`, `$id` and `$comment`, and without parts that model servers reject and
    /// that would fail every request of the agent: unknown types, bounds that contradict each other or are above 1,000,
    /// all but simple patterns, and values that are not schemas.
    #[default]
    AsIs,
    /// For model servers that support few keywords: references are replaced by their targets, and `format`, `pattern`
    /// and `not` are left out. A recursive schema has no such form, so its tool is left out.
    Portable,
    /// The form of [`strict_schema`](oa_tools::strict_schema) if there is one, otherwise the portable form.
    Strict,
}

/// The schema that is offered, and the one that arguments are checked against.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Schema {
    /// The schema for the model server.
    pub offered: Value,
    /// The schema as the tool's server means it.
    pub checked: Value,
}

impl Schema {
    /// Reads the schema of a tool, of at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// The reason why the schema cannot be offered.
    pub fn read(schema: Option<&Value>, form: SchemaForm, limit: usize) -> Result<Self, String> {
        let Some(Value::Object(schema)) = schema else {
            return Err("its schema is not an object".to_owned());
        };
        let of_type = schema.get("type");
        if of_type.is_some_and(|of| {
            of != "object" && !of.as_array().is_some_and(|of| of.contains(&"object".into()))
        }) {
            return Err("its schema does not describe an object".to_owned());
        }
        let size = serde_json::to_string(schema).map_or(usize::MAX, |text| text.len());
        if size > limit {
            return Err(format!("its schema has {size} bytes, more than {limit}"));
        }
        let mut checked = Value::Object(schema.clone());
        clean(&mut checked, DEPTH)?;
        if let Value::Object(keywords) = &mut checked
            && !keywords.contains_key("type")
        {
            keywords.insert("type".to_owned(), "object".into());
        }
        check_references(&checked, &checked)?;
        let repaired = repaired(&checked);
        // Repairs may copy the targets of references, so what is offered can be larger than what was read.
        let size = serde_json::to_string(&repaired).map_or(usize::MAX, |text| text.len());
        if size > limit.saturating_mul(2) {
            return Err(format!("its schema as offered has {size} bytes, more than twice {limit}"));
        }
        let offered = match form {
            SchemaForm::AsIs => repaired,
            SchemaForm::Portable => portable(&repaired, limit)?,
            SchemaForm::Strict => match oa_tools::strict_schema(&repaired) {
                Some(strict) => strict,
                None => portable(&repaired, limit)?,
            },
        };
        Ok(Self { offered, checked })
    }
}

/// Calls `visit` for each schema directly below this one.
fn below(
    keywords: &mut Map<String, Value>,
    visit: &mut dyn FnMut(&mut Value) -> Result<(), String>,
) -> Result<(), String> {
    for (keyword, value) in keywords {
        match &**keyword {
            // Values, not schemas.
            "const" | "default" | "enum" | "examples" | "required" | "type" => {}
            // Schemas by name.
            "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
                if let Value::Object(named) = value {
                    named.values_mut().try_for_each(&mut *visit)?;
                }
            }
            _ => match value {
                Value::Array(parts) => parts.iter_mut().try_for_each(&mut *visit)?,
                // An unknown keyword may have schemas, so what looks like one there is treated as one.
                value => visit(value)?,
            },
        }
    }
    Ok(())
}

/// Removes keywords that mean nothing to a model, and those that strict model servers reject.
fn clean(schema: &mut Value, depth: usize) -> Result<(), String> {
    let Value::Object(keywords) = schema else { return Ok(()) };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("its schema nests more than {DEPTH} levels"));
    };
    for keyword in ["$schema", "$id", "$comment"] {
        keywords.shift_remove(keyword);
    }
    below(keywords, &mut |schema| clean(schema, depth))
}

/// Checks that each reference points to a schema.
fn check_references(schema: &Value, root: &Value) -> Result<(), String> {
    let mut copy = schema.clone();
    let Value::Object(keywords) = &mut copy else { return Ok(()) };
    if keywords.contains_key("$ref") {
        target(schema, root)?;
        let mut work = WORK;
        check_circle(schema, root, &mut Vec::new(), &mut work)?;
    }
    below(keywords, &mut |schema| check_references(schema, root))
}

/// Checks that no reference leads back to itself without descending into a member or an item: evaluating such a schema
/// would never end.
fn check_circle<'a>(
    schema: &'a Value,
    root: &'a Value,
    seen: &mut Vec<&'a str>,
    work: &mut usize,
) -> Result<(), String> {
    const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "else", "if", "not", "oneOf", "then"];
    let circle = || "its schema has a circular reference".to_owned();
    // References that fork can be without a circle and still take exponential time: with `a` as two
    // references to `b`, `b` as two to `c` and so on. They are refused as well.
    *work = work.checked_sub(1).ok_or_else(circle)?;
    let Some(keywords) = schema.as_object() else { return Ok(()) };
    if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
        if seen.contains(&reference) {
            return Err(circle());
        }
        // The path from the start, not everything visited: two branches may lead to the same definition.
        seen.push(reference);
        check_circle(target(schema, root)?, root, seen, work)?;
        seen.pop();
    }
    for value in IN_PLACE.iter().filter_map(|name| keywords.get(*name)) {
        match value {
            Value::Array(parts) => {
                for part in parts {
                    check_circle(part, root, seen, work)?;
                }
            }
            value => check_circle(value, root, seen, work)?,
        }
    }
    Ok(())
}

/// Returns the schema that a reference points to, without keywords beside the reference.
fn target<'a>(schema: &'a Value, root: &'a Value) -> Result<&'a Value, String> {
    let mut schema = schema;
    for _ in 0..REFERENCES {
        let Some(reference) = schema.get("$ref") else { return Ok(schema) };
        let reference =
            reference.as_str().ok_or("its schema has a reference that is not a string")?;
        if !reference.starts_with('#') {
            return Err("its schema refers to another document".to_owned());
        }
        schema = resolve(root, reference)
            .ok_or_else(|| "its schema has a reference that leads nowhere".to_owned())?;
    }
    Err("its schema has a circular reference".to_owned())
}

fn portable(root: &Value, limit: usize) -> Result<Value, String> {
    let mut work = WORK;
    let mut schema = inlined(root, root, DEPTH, &mut work)?;
    if let Value::Object(keywords) = &mut schema {
        keywords.shift_remove("$defs");
        keywords.shift_remove("definitions");
    }
    let size = serde_json::to_string(&schema).map_or(usize::MAX, |text| text.len());
    if size > limit {
        return Err(format!("its portable schema has {size} bytes, more than {limit}"));
    }
    Ok(schema)
}

/// Replaces references by their targets.
fn inlined(schema: &Value, root: &Value, depth: usize, work: &mut usize) -> Result<Value, String> {
    let (Some(depth), Some(left)) = (depth.checked_sub(1), work.checked_sub(1)) else {
        return Err("its schema has no portable form".to_owned());
    };
    *work = left;
    // Keywords beside a reference replace those of its target, such as the description of one use.
    let mut copy = target(schema, root)?.clone();
    if let (Value::Object(copy), Some(beside)) = (&mut copy, schema.as_object()) {
        for (keyword, value) in beside {
            if keyword != "$ref" {
                copy.insert(keyword.clone(), value.clone());
            }
        }
        for keyword in ["format", "pattern", "not", "$defs", "definitions"] {
            copy.shift_remove(keyword);
        }
        below(copy, &mut |schema| {
            if schema.is_object() {
                *schema = inlined(schema, root, depth, work)?;
            }
            Ok(())
        })?;
    }
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: &Value, form: SchemaForm) -> Result<Value, String> {
        Schema::read(Some(schema), form, 4_096).map(|schema| schema.offered)
    }

    #[test]
    fn meta_keywords_are_removed_but_not_names() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {
                "$id": { "type": "string", "$comment": "a parameter of this name" },
                "value": { "const": { "$schema": "kept" } },
            },
        });
        let expected = json!({
            "properties": {
                "$id": { "type": "string" },
                "value": { "const": { "$schema": "kept" } },
            },
            "type": "object",
        });
        assert_eq!(read(&schema, SchemaForm::AsIs), Ok(expected));
    }

    #[test]
    fn unusable_schemas_are_rejected() {
        let refused = |schema: Value| read(&schema, SchemaForm::AsIs).err().unwrap_or_default();
        assert!(refused(json!([])).contains("not an object"));
        assert!(refused(json!({ "type": "string" })).contains("does not describe an object"));
        assert!(
            refused(json!({ "properties": { "a": { "$ref": "other.json" } } }))
                .contains("another document")
        );
        assert!(
            refused(json!({ "properties": { "a": { "$ref": "#/$defs/b" } } }))
                .contains("leads nowhere")
        );
        let circle = json!({
            "properties": { "a": { "$ref": "#/$defs/a" } },
            "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } },
        });
        assert!(refused(circle).contains("circular"));
        let endless = json!({
            "properties": { "a": { "$ref": "#/$defs/a" } },
            "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/a" }, { "type": "string" }] } },
        });
        assert!(refused(endless).contains("circular"));
        assert!(refused(json!({ "description": "x".repeat(5_000) })).contains("more than 4096"));
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "items": deep });
        }
        assert!(refused(json!({ "properties": { "a": deep } })).contains("levels"));
        assert!(Schema::read(None, SchemaForm::AsIs, 9).is_err());
    }

    #[test]
    fn the_portable_form_has_no_references() {
        let schema = json!({
            "type": "object",
            "properties": {
                "at": { "$ref": "#/$defs/place", "description": "where" },
                "mail": { "type": "string", "format": "email", "pattern": "@" },
            },
            "$defs": { "place": { "type": "object", "properties": { "x": { "type": "number" } } } },
        });
        let place = json!({
            "type": "object",
            "properties": { "x": { "type": "number" } },
            "description": "where",
        });
        let expected = json!({
            "type": "object",
            "properties": { "at": place, "mail": { "type": "string" } },
        });
        assert_eq!(read(&schema, SchemaForm::Portable), Ok(expected));
    }

    #[test]
    fn recursive_schema_has_no_portable_form() {
        let tree = json!({
            "type": "object",
            "properties": { "children": { "type": "array", "items": { "$ref": "#" } } },
        });
        let offered = read(&tree, SchemaForm::AsIs).unwrap();
        assert_eq!(offered["properties"]["children"]["items"]["$ref"], "#/$defs/part_1");
        assert_eq!(offered["$defs"]["part_1"]["properties"], offered["properties"]);
        assert!(read(&tree, SchemaForm::Portable).is_err());
    }

    #[test]
    fn strict_form_falls_back_to_portable() {
        let plain = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let strict = read(&plain, SchemaForm::Strict);
        assert_eq!(strict.map(|schema| schema["additionalProperties"].clone()), Ok(json!(false)));
        let map = json!({ "type": "object", "additionalProperties": { "type": "string", "format": "uri" } });
        let portable = read(&map, SchemaForm::Strict);
        let expected = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        assert_eq!(portable, Ok(expected));
    }
}
