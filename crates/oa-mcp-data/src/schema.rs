use oa_types::{merge_schema, resolve};
use serde_json::{Map, Value};

use crate::mirrored::MARK;
use crate::repair::{modern_bounds, repaired};
use crate::subschemas::{below, visit_below};

/// The maximum nesting depth of an offered schema.
const DEPTH: usize = 64;
/// The longest chain of references.
const REFERENCES: usize = 16;
/// The maximum number of schemas in a portable form, so that nested references cannot make it grow without bound.
const WORK: usize = 4_096;

/// The keywords that say nothing about a value.
const NO_MEANING: [&str; 3] = ["$schema", "$id", "$comment"];

/// The form of tool schemas that are sent to the model server.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum SchemaForm {
    /// The server's schema without `$schema`, `$id`, `$comment` and `x-mcp-header`, and without parts that model servers
    /// reject and that would fail every request of the agent: unknown types, bounds that contradict each other or are
    /// above 1,000, all but simple patterns, and values that are not schemas. References lead to definitions of the root
    /// schema. A schema without properties gets empty ones, and types of programming languages, such as `int`, become
    /// standard ones.
    #[default]
    Repaired,
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
    /// Reads the schema of a tool, of at most `limit` bytes. Without one, as which null and PHP's empty list count, too,
    /// a tool has no parameters.
    ///
    /// # Errors
    ///
    /// The reason why the schema cannot be offered.
    pub fn read(schema: Option<&Value>, form: SchemaForm, limit: usize) -> Result<Self, String> {
        let schema = match schema {
            Some(Value::Object(schema)) => schema.clone(),
            schema if schema.is_none_or(is_nothing) => Map::new(),
            _ => return Err("its schema is not an object".to_owned()),
        };
        let size = serde_json::to_string(&schema).map_or(usize::MAX, |text| text.len());
        if size > limit {
            return Err(format!("its schema has {size} bytes, more than {limit}"));
        }
        let mut checked = Value::Object(schema);
        // First, because it bounds the depth: most of what follows recurses without a limit of its own.
        clean(&mut checked, DEPTH)?;
        let of_type = checked.get("type");
        if of_type.is_some_and(|of| {
            of != "object" && !of.as_array().is_some_and(|of| of.contains(&"object".into()))
        }) {
            return Err("its schema does not describe an object".to_owned());
        }
        if let Value::Object(keywords) = &mut checked
            && !keywords.contains_key("type")
        {
            keywords.insert("type".to_owned(), "object".into());
        }
        check_references(&checked, &checked)?;
        // Targets of references are copied, perhaps several times.
        let largest = limit.saturating_mul(2);
        let repaired = repaired(&checked, largest)
            .ok_or_else(|| format!("its schema as offered has more than {largest} bytes"))?;
        let mut offered = match form {
            SchemaForm::Repaired => repaired,
            SchemaForm::Portable => portable(&repaired, limit)?,
            SchemaForm::Strict => match oa_tools::strict_schema(&repaired) {
                Some(strict) => strict,
                None => portable(&repaired, limit)?,
            },
        };
        if let Value::Object(keywords) = &mut offered {
            add_properties(keywords, form);
        }
        Ok(Self { offered, checked })
    }
}

/// Returns true for a schema that says nothing about the parameters. It is not valid: its server has none, or has lost it.
pub(crate) fn is_nothing(schema: &Value) -> bool {
    match schema {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(keywords) => keywords.keys().all(|name| NO_MEANING.contains(&&**name)),
        _ => false,
    }
}

/// Adds empty properties to a schema that has none, as of a tool without arguments. Several model servers, and the
/// templates of several models, require them.
fn add_properties(keywords: &mut Map<String, Value>, form: SchemaForm) {
    // Model servers read properties instead of these, and not in addition to them.
    const OTHERS: [&str; 5] = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"];
    if keywords.contains_key("properties") || OTHERS.iter().any(|it| keywords.contains_key(*it)) {
        return;
    }
    keywords.insert("properties".to_owned(), Map::new().into());
    if form == SchemaForm::Repaired && !keywords.contains_key("additionalProperties") {
        // The schema allows any arguments. For llama.cpp, properties alone would forbid all others.
        keywords.insert("additionalProperties".to_owned(), true.into());
    }
}

/// Removes keywords that mean nothing to a model, and those that strict model servers reject. Bounds of draft 4 become
/// those of later drafts, so that arguments are checked against them, too.
fn clean(schema: &mut Value, depth: usize) -> Result<(), String> {
    let Value::Object(keywords) = schema else { return Ok(()) };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("its schema nests more than {DEPTH} levels"));
    };
    for keyword in NO_MEANING.into_iter().chain([MARK]) {
        keywords.shift_remove(keyword);
    }
    modern_bounds(keywords);
    match keywords.get_mut("type") {
        // No value would match it.
        Some(Value::Array(types)) if types.is_empty() => {
            keywords.shift_remove("type");
        }
        Some(Value::Array(types)) => types.iter_mut().for_each(spell_type),
        Some(of) => spell_type(of),
        None => {}
    }
    if let (Some(of), Some(Value::Array(values))) = (keywords.get("type"), keywords.get("enum"))
        && !values.is_empty()
        && !values.iter().any(|value| may_be(value, of))
    {
        // The values are the more exact part.
        keywords.shift_remove("type");
    }
    visit_below(keywords, &mut |schema| clean(schema, depth))
}

/// Returns false if the value is not of the type, or of any in a list.
fn may_be(value: &Value, of: &Value) -> bool {
    match of {
        Value::Array(types) => types.iter().any(|of| may_be(value, of)),
        Value::String(of) => match &**of {
            "array" => value.is_array(),
            "boolean" => value.is_boolean(),
            "integer" | "number" => value.is_number(),
            "null" => value.is_null(),
            "object" => value.is_object(),
            "string" => value.is_string(),
            _ => true,
        },
        _ => true,
    }
}

/// Spells a type as the standard does: the schemas of some servers have the types of a programming language, or capitals.
fn spell_type(of: &mut Value) {
    let Value::String(name) = of else { return };
    let standard = match &*name.to_ascii_lowercase() {
        "array" | "list" => "array",
        "bool" | "boolean" => "boolean",
        "dict" | "object" => "object",
        "double" | "float" | "number" => "number",
        "int" | "integer" | "long" => "integer",
        "none" | "null" => "null",
        "str" | "string" => "string",
        _ => return,
    };
    standard.clone_into(name);
}

/// Checks that each reference points to a schema.
fn check_references(schema: &Value, root: &Value) -> Result<(), String> {
    let Value::Object(keywords) = schema else { return Ok(()) };
    if keywords.contains_key("$ref") {
        layers(schema, root)?;
        let mut work = WORK;
        check_circle(schema, root, &mut Vec::new(), &mut work)?;
    }
    below(keywords).try_for_each(|schema| check_references(schema, root))
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
        // Only one reference at a time: what is beside the next one may lead back here, too.
        if let Some(target) = next_layer(schema, root) {
            check_circle(target?, root, seen, work)?;
        }
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

/// Returns a schema, the one that it refers to, and so on: all of them apply.
fn layers<'a>(schema: &'a Value, root: &'a Value) -> Result<Vec<&'a Value>, String> {
    let mut layers = vec![schema];
    while let Some(next) = layers.last().and_then(|last| next_layer(last, root)) {
        if layers.len() > REFERENCES {
            return Err("its schema has a circular reference".to_owned());
        }
        layers.push(next?);
    }
    Ok(layers)
}

/// Returns the schema that a schema refers to; `None` if it refers to none.
fn next_layer<'a>(schema: &Value, root: &'a Value) -> Option<Result<&'a Value, String>> {
    let target = |reference: &Value| {
        let reference =
            reference.as_str().ok_or("its schema has a reference that is not a string")?;
        if !reference.starts_with('#') {
            return Err("its schema refers to another document".to_owned());
        }
        resolve(root, reference)
            .ok_or_else(|| "its schema has a reference that leads nowhere".to_owned())
    };
    schema.get("$ref").map(target)
}

fn portable(root: &Value, limit: usize) -> Result<Value, String> {
    let mut work = WORK;
    let mut schema = inlined(root, root, DEPTH, &mut work)?;
    if let Value::Object(keywords) = &mut schema {
        keywords.shift_remove("$defs");
        keywords.shift_remove("definitions");
    }
    // The bounds beside a reference and those of its target may contradict each other.
    repaired(&schema, limit)
        .ok_or_else(|| format!("its portable schema has more than {limit} bytes"))
}

/// Replaces references by their targets.
fn inlined(schema: &Value, root: &Value, depth: usize, work: &mut usize) -> Result<Value, String> {
    let (Some(depth), Some(left)) = (depth.checked_sub(1), work.checked_sub(1)) else {
        return Err("its schema has no portable form".to_owned());
    };
    *work = left;
    let mut copy = Value::Null;
    for layer in layers(schema, root)?.into_iter().rev() {
        match (&mut copy, layer) {
            // Keywords beside a reference replace those of its target, such as the description of one use.
            (Value::Object(copy), Value::Object(layer)) => merge_schema(copy, layer.clone()),
            (Value::Bool(false), _) => {}
            _ => copy = layer.clone(),
        }
    }
    if let Value::Object(copy) = &mut copy {
        for keyword in ["$ref", "format", "pattern", "not", "$defs", "definitions"] {
            copy.shift_remove(keyword);
        }
        visit_below(copy, &mut |schema| {
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
    fn boolean_bounds_of_draft_4_become_numbers() {
        for (old, new) in [
            (json!({ "minimum": 0, "exclusiveMinimum": true }), json!({ "exclusiveMinimum": 0 })),
            (json!({ "maximum": 9, "exclusiveMaximum": true }), json!({ "exclusiveMaximum": 9 })),
            (json!({ "minimum": 0, "exclusiveMinimum": false }), json!({ "minimum": 0 })),
            (json!({ "exclusiveMinimum": true }), json!({})),
        ] {
            let schema = json!({ "type": "object", "properties": { "a": old } });
            let read = Schema::read(Some(&schema), SchemaForm::Repaired, 4_096).unwrap();
            assert_eq!(read.offered["properties"]["a"], new);
            assert_eq!(read.checked["properties"]["a"], new);
        }
    }

    #[test]
    fn types_of_languages_are_standard_types() {
        let schema = json!({
            "type": "OBJECT",
            "properties": {
                "type": { "type": "int" },
                "price": { "type": ["float", "None"], "default": { "type": "float" } },
                "names": { "type": "list", "items": { "type": "str" } },
                "any": { "type": [] },
                "file": { "type": "file" },
            },
        });
        let read = Schema::read(Some(&schema), SchemaForm::Repaired, 4_096).unwrap();
        let expected = json!({
            "type": "object",
            "properties": {
                "type": { "type": "integer" },
                "price": { "type": ["number", "null"], "default": { "type": "float" } },
                "names": { "type": "array", "items": { "type": "string" } },
                "any": {},
                "file": {},
            },
        });
        assert_eq!(read.offered, expected);
        let input = json!({ "type": 5, "price": 1.5, "names": ["a"], "any": "b", "file": "c" });
        assert_eq!(oa_tools::check_arguments(&read.checked, input.clone()), Ok(input));
    }

    /// No argument would be accepted otherwise.
    #[test]
    fn a_type_that_no_listed_value_has_is_omitted() {
        let schema = json!({
            "type": "object",
            "properties": {
                "size": { "type": "string", "enum": [256, 512] },
                "count": { "type": "integer", "enum": ["1", "2"] },
                "mode": { "type": "string", "enum": ["a", null] },
            },
        });
        let read = Schema::read(Some(&schema), SchemaForm::Repaired, 4_096).unwrap();
        let mut expected = schema.clone();
        expected["properties"]["size"] = json!({ "enum": [256, 512] });
        expected["properties"]["count"] = json!({ "enum": ["1", "2"] });
        assert_eq!(read.offered, expected);
        let input = json!({ "size": 256, "count": "2", "mode": "a" });
        assert_eq!(oa_tools::check_arguments(&read.checked, input.clone()), Ok(input));
    }

    /// As of tools without arguments: servers in PHP write an empty list.
    #[test]
    fn offered_schema_has_properties() {
        for nothing in [
            json!(null),
            json!([]),
            json!({}),
            json!({ "$schema": "http://json-schema.org/draft-07/schema#" }),
            json!({ "type": "object" }),
            json!({ "type": "object", "properties": null }),
            json!({ "type": "object", "properties": [] }),
        ] {
            let expected =
                json!({ "type": "object", "properties": {}, "additionalProperties": true });
            assert_eq!(read(&nothing, SchemaForm::Repaired), Ok(expected), "{nothing}");
            let expected = json!({ "type": "object", "properties": {} });
            assert_eq!(read(&nothing, SchemaForm::Portable), Ok(expected), "{nothing}");
        }
        let missing = Schema::read(None, SchemaForm::Repaired, 9).map(|schema| schema.offered);
        assert_eq!(missing, read(&json!({}), SchemaForm::Repaired));
        let closed = json!({ "type": "object", "additionalProperties": false });
        let mut expected = closed.clone();
        expected["properties"] = json!({});
        assert_eq!(read(&closed, SchemaForm::Repaired), Ok(expected.clone()));
        assert_eq!(
            read(&json!({}), SchemaForm::Strict).map(|it| it["properties"].clone()),
            Ok(json!({}))
        );
        let choice = json!({ "type": "object", "anyOf": [{ "required": ["a"] }] });
        assert_eq!(read(&choice, SchemaForm::Repaired), Ok(choice));
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
        assert_eq!(read(&schema, SchemaForm::Repaired), Ok(expected));
    }

    #[test]
    fn unusable_schemas_are_rejected() {
        let refused = |schema: Value| read(&schema, SchemaForm::Repaired).err().unwrap_or_default();
        assert!(refused(json!([{}])).contains("not an object"));
        assert!(refused(json!(true)).contains("not an object"));
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
        let beside = json!({
            "properties": { "a": { "$ref": "#/$defs/a" } },
            "$defs": { "a": { "$ref": "#/$defs/b", "anyOf": [{ "$ref": "#/$defs/a" }] }, "b": {} },
        });
        assert!(refused(beside).contains("circular"));
        assert!(refused(json!({ "description": "x".repeat(5_000) })).contains("more than 4096"));
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "items": deep });
        }
        assert!(refused(json!({ "properties": { "a": deep } })).contains("levels"));
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
    fn a_chain_of_references_keeps_every_link() {
        let schema = json!({
            "type": "object",
            "properties": { "n": { "$ref": "#/$defs/a" } },
            "$defs": {
                "a": { "$ref": "#/$defs/b", "description": "a", "maximum": 9 },
                "b": { "type": "integer", "description": "b" },
            },
        });
        let n = json!({ "type": "integer", "description": "a", "maximum": 9 });
        let expected = json!({ "type": "object", "properties": { "n": n } });
        assert_eq!(read(&schema, SchemaForm::Portable), Ok(expected));
    }

    #[test]
    fn members_beside_a_reference_are_added() {
        let member = |name: &str| json!({ "properties": { name: { "type": "string" } } });
        let (mut base, mut use_of) = (member("a"), member("b"));
        (base["required"], use_of["required"]) = (json!(["a", "c"]), json!(["b", "c"]));
        use_of["$ref"] = "#/$defs/base".into();
        let schema =
            json!({ "type": "object", "properties": { "n": use_of }, "$defs": { "base": base } });
        let n = json!({
            "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
            "required": ["a", "c", "b"],
        });
        let expected = json!({ "type": "object", "properties": { "n": n } });
        assert_eq!(read(&schema, SchemaForm::Portable), Ok(expected));
    }

    #[test]
    fn inlined_bounds_do_not_contradict() {
        let schema = json!({
            "type": "object",
            "properties": { "n": { "$ref": "#/$defs/large", "maximum": 1 } },
            "$defs": { "large": { "type": "integer", "minimum": 10 } },
        });
        let expected = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        assert_eq!(read(&schema, SchemaForm::Portable), Ok(expected));
    }

    #[test]
    fn recursive_schema_has_no_portable_form() {
        let tree = json!({
            "type": "object",
            "properties": { "children": { "type": "array", "items": { "$ref": "#" } } },
        });
        let offered = read(&tree, SchemaForm::Repaired).unwrap();
        assert_eq!(offered["properties"]["children"]["items"]["$ref"], "#/$defs/part_1");
        assert_eq!(offered["$defs"]["part_1"]["properties"], offered["properties"]);
        assert!(read(&tree, SchemaForm::Portable).is_err());
    }

    /// The keys of the target would be forbidden otherwise.
    #[test]
    fn patterns_beside_a_reference_are_added() {
        let keys = |start: &str| json!({ "patternProperties": { start: { "type": "string" } } });
        let (mut base, mut use_of) = (keys("^x-"), keys("^y-"));
        base["additionalProperties"] = json!(false);
        use_of["$ref"] = "#/$defs/base".into();
        let schema =
            json!({ "type": "object", "properties": { "n": use_of }, "$defs": { "base": base } });
        let portable = read(&schema, SchemaForm::Portable).unwrap();
        let names = portable["properties"]["n"]["patternProperties"].as_object().unwrap();
        assert_eq!(names.keys().collect::<Vec<_>>(), ["^x-", "^y-"]);
    }

    /// Characters that nobody sees can carry instructions to a model.
    #[test]
    fn texts_have_no_invisible_characters() {
        let hidden = "Where\u{e0041}\u{e0042} to\u{200b} go";
        let texts =
            json!({ "type": "string", "title": hidden, "description": hidden, "default": hidden });
        let shown = json!({ "type": "string", "title": "Where to go", "description": "Where to go", "default": hidden });
        let of =
            |texts: &Value| json!({ "type": "object", "properties": { "description": texts } });
        assert_eq!(read(&of(&texts), SchemaForm::Repaired), Ok(of(&shown)));
    }

    #[test]
    fn strict_form_falls_back_to_portable() {
        let plain = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let strict = read(&plain, SchemaForm::Strict);
        assert_eq!(strict.map(|schema| schema["additionalProperties"].clone()), Ok(json!(false)));
        let map = json!({ "type": "object", "additionalProperties": { "type": "string", "format": "uri" } });
        let portable = read(&map, SchemaForm::Strict);
        let mut expected =
            json!({ "type": "object", "additionalProperties": { "type": "string" } });
        expected["properties"] = json!({});
        assert_eq!(portable, Ok(expected));
    }
}
