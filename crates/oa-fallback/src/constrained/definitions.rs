//! Schemas of tools, made parts of one schema.

use std::collections::HashMap;

use oa_types::resolve;
use serde_json::{Map, Value, json};

use super::any_of::any_of;
use super::merged::merged;

/// The depth to which schemas are read. Deeper values may be anything.
const DEPTH: usize = 64;

/// The largest length or count that is sent. llama.cpp refuses a grammar that repeats a rule more often.
const LONGEST: u64 = 500;

/// The largest number that a bound may have: 2^53.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// The definitions of one schema, lifted out of its parts.
///
/// The parts keep the keywords that grammars support: types, members in their order, values, references. Servers ignore
/// or reject the rest, and arguments are checked against the tool's own schema before the tool runs.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    all: Map<String, Value>,
    /// The last number that was appended to a name.
    numbers: HashMap<String, usize>,
}

/// One part: the schema that its references point into, and the names that their targets got.
struct Part<'a> {
    root: &'a Value,
    owner: &'a str,
    names: HashMap<(&'a str, Others), String>,
}

/// Members of an object that its schema does not name.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Others {
    /// They are forbidden unless the schema says otherwise: models invent members.
    Forbidden,
    /// Another schema may require them of the same object, as beside it in `allOf`.
    Allowed,
}

impl Definitions {
    /// Returns a schema as a part of the whole; `owner` names it if it refers to itself.
    pub(super) fn adopt(&mut self, schema: &Value, owner: &str) -> Value {
        let mut part = Part { root: schema, owner, names: HashMap::new() };
        self.rewritten(schema, &mut part, Others::Forbidden, DEPTH)
    }

    /// Returns the schema of an object, of any if the schema does not say which.
    pub(super) fn adopt_object(&mut self, schema: &Value, owner: &str) -> Value {
        let mut schema = self.adopt(schema, owner);
        let says = ["type", "$ref", "anyOf", "allOf"];
        if let Some(keywords) = schema.as_object_mut()
            && !says.iter().any(|keyword| keywords.contains_key(*keyword))
        {
            keywords.insert("type".to_owned(), "object".into());
        }
        schema
    }

    /// Adds the definitions to the whole.
    pub(super) fn add_to(self, schema: &mut Value) {
        if let (false, Some(keywords)) = (self.all.is_empty(), schema.as_object_mut()) {
            keywords.insert("$defs".to_owned(), self.all.into());
        }
    }

    fn rewritten<'a>(
        &mut self,
        schema: &'a Value,
        part: &mut Part<'a>,
        others: Others,
        depth: usize,
    ) -> Value {
        let any = || json!({});
        // Boolean schemas, and anything too deep, become a schema that allows all.
        let (Some(keywords), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
            return any();
        };
        let is_closed_whole = others == Others::Forbidden;
        let others = if is_combined(keywords) { Others::Allowed } else { others };
        // A map whose names have a pattern, such as one from numbers, forbids the other names. Grammars have no patterns
        // of names, so all names are allowed.
        let is_closed = match keywords.get("additionalProperties") {
            None => keywords.contains_key("properties") && others == Others::Forbidden,
            Some(of) => of != &Value::Bool(true),
        };
        let patterns = keywords.get("patternProperties").and_then(Value::as_object);
        let patterns = patterns.filter(|patterns| is_closed && !patterns.is_empty());
        if let Some(pointer) = keywords.get("$ref") {
            let pointer = pointer.as_str();
            let name = pointer.and_then(|pointer| self.lifted(pointer, part, others, depth));
            return name.map_or_else(any, |name| json!({ "$ref": format!("#/$defs/{name}") }));
        }
        let mut kept = Map::new();
        for (keyword, value) in keywords {
            let value = match &**keyword {
                "const" | "enum" | "type" => value.clone(),
                "properties" => {
                    let Some(members) = value.as_object() else { continue };
                    let members = members.iter().map(|(name, member)| {
                        (name.clone(), self.rewritten(member, part, Others::Forbidden, depth))
                    });
                    Value::Object(members.collect())
                }
                "required" => {
                    let is_member = |name: &&Value| {
                        name.as_str().is_some_and(|name| schema["properties"].get(name).is_some())
                    };
                    value.as_array().into_iter().flatten().filter(is_member).cloned().collect()
                }
                "additionalProperties" if patterns.is_some() => continue,
                "additionalProperties" | "items" if value.is_object() => {
                    self.rewritten(value, part, Others::Forbidden, depth)
                }
                "additionalProperties" if value.is_boolean() => value.clone(),
                "allOf" | "anyOf" | "items" | "oneOf" | "prefixItems" => {
                    let Some(schemas) = value.as_array() else { continue };
                    let is_of_items = matches!(&**keyword, "items" | "prefixItems");
                    let others = if is_of_items { Others::Forbidden } else { others };
                    let schemas = schemas.iter();
                    schemas.map(|schema| self.rewritten(schema, part, others, depth)).collect()
                }
                "maxItems" | "maxLength" | "minItems" | "minLength"
                    if value.as_u64().is_some_and(|length| length <= LONGEST) =>
                {
                    value.clone()
                }
                "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum"
                    if value.as_f64().is_some_and(|bound| bound.abs() <= LARGEST) =>
                {
                    value.clone()
                }
                "pattern" if value.as_str().is_some_and(is_plain_pattern) => value.clone(),
                "format" if ["date", "date-time", "time", "uuid"].iter().any(|it| value == it) => {
                    value.clone()
                }
                _ => continue,
            };
            // Grammars cannot express that only one of them may match.
            let keyword = if keyword == "oneOf" && !keywords.contains_key("anyOf") {
                "anyOf"
            } else {
                keyword
            };
            kept.insert(keyword.to_owned(), value);
        }
        if let Some(patterns) = patterns {
            let of = keywords.get("additionalProperties").filter(|of| of.is_object());
            let schemas = patterns.values().chain(of);
            let mut schemas: Vec<Value> =
                schemas.map(|of| self.rewritten(of, part, Others::Forbidden, depth)).collect();
            schemas.dedup();
            kept.insert("additionalProperties".to_owned(), any_of(schemas));
        }
        if let Some(alternatives) = merged(keywords, &kept, is_closed_whole) {
            return json!({ "anyOf": alternatives });
        }
        if kept.contains_key("properties") {
            kept.entry("type").or_insert_with(|| "object".into());
            if others == Others::Forbidden {
                kept.entry("additionalProperties").or_insert(Value::Bool(false));
            }
        }
        kept.into()
    }

    /// Adds a definition for the target of a reference, and returns its name; `None` if the schema has no such target.
    fn lifted<'a>(
        &mut self,
        pointer: &'a str,
        part: &mut Part<'a>,
        others: Others,
        depth: usize,
    ) -> Option<String> {
        if let Some(name) = part.names.get(&(pointer, others)) {
            return Some(name.clone());
        }
        // `#/$defs/Item` becomes `#/$defs/Item`, or `Item_2` if another tool has a different `Item`.
        let target = resolve(part.root, pointer)?;
        let last = pointer.rsplit(['#', '/']).next().filter(|last| !last.is_empty());
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let base: String = last.unwrap_or(part.owner).chars().map(plain).collect();
        let mut name = base.clone();
        // From the last number on: a server may have tools with thousands of different schemas of one name.
        while self.all.contains_key(&name) {
            let number = self.numbers.entry(base.clone()).or_insert(1);
            *number += 1;
            name = format!("{base}_{number}");
        }
        part.names.insert((pointer, others), name.clone());
        // Its name is taken while it is read: it may refer to itself.
        self.all.insert(name.clone(), Value::Null);
        let schema = self.rewritten(target, part, others, depth);
        // Equal schemas share one definition. Nothing refers to the copy: a schema that refers to itself has
        // its own name in it, and so is never equal.
        let known = self.all.get(&base).filter(|known| name != base && **known == schema);
        if known.is_some() {
            self.all.remove(&name);
            part.names.insert((pointer, others), base.clone());
            return Some(base);
        }
        self.all.insert(name.clone(), schema);
        Some(name)
    }
}

/// True for a schema that demands several things of the same object.
fn is_combined(keywords: &Map<String, Value>) -> bool {
    let words = ["$ref", "allOf", "anyOf", "const", "enum", "oneOf", "properties", "required"];
    let demands = words.iter().map(|keyword| match (*keyword, keywords.get(*keyword)) {
        (_, None) => 0,
        ("allOf", Some(schemas)) => schemas.as_array().map_or(0, Vec::len),
        ("required", Some(names)) => {
            // Members that another part has, or that nothing describes.
            let properties = keywords.get("properties");
            let is_known = |name: &str| properties.is_some_and(|of| of.get(name).is_some());
            let mut names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
            usize::from(names.any(|name| !is_known(name)))
        }
        (_, Some(_)) => 1,
    });
    demands.sum::<usize>() > 1
}

/// True for a pattern that all grammars read alike: of the whole text, without escapes and groups of special kinds.
fn is_plain_pattern(pattern: &str) -> bool {
    let inner = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
    inner.is_some_and(|inner| !inner.contains(['\\', '^', '$']) && !inner.contains("(?"))
}
