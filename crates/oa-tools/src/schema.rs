use serde_json::{Map, Value, json};

/// Keywords found at the top level of a JSON Schema. A shorthand whose parameter has such a name is recognized
/// by its values.
const WORDS: &[&str] = &[
    "$comment",
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "if",
    "maxProperties",
    "minProperties",
    "not",
    "nullable",
    "oneOf",
    "patternProperties",
    "properties",
    "propertyNames",
    "required",
    "strict",
    "then",
    "title",
    "type",
    "unevaluatedProperties",
];

/// The type names that error messages suggest.
const TYPES: &str = "string, number, integer, boolean, array, object or null";

/// Parameters under construction: the schema for the model, and the defaults hidden from it.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) schema: Map<String, Value>,
    /// Default values of optional parameters, filled in before a call.
    pub(crate) defaults: Map<String, Value>,
}

impl Parameters {
    pub(crate) fn new() -> Self {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), Value::Object(Map::new()));
        schema.insert("required".to_owned(), Value::Array(Vec::new()));
        Self { schema, defaults: Map::new() }
    }

    /// Parses a full JSON Schema, kept as it is, or a shorthand: an object that maps names to types.
    pub(crate) fn read(given: Value) -> Result<Self, String> {
        let Value::Object(given) = given else {
            return Err("the schema must be a JSON object".to_owned());
        };
        if is_schema(&given) {
            return Ok(Self { schema: given, defaults: Map::new() });
        }
        let mut this = Self::new();
        for (name, parameter) in given {
            this.add(&name, parameter)?;
        }
        Ok(this)
    }

    /// Adds a parameter: a type name, or a schema with the flags `required` and `optional`.
    pub(crate) fn add(&mut self, name: &str, parameter: Value) -> Result<(), String> {
        let mut schema = match parameter {
            Value::String(word) => {
                let mut schema = Map::new();
                schema.insert("type".to_owned(), word.into());
                schema
            }
            Value::Object(schema) => schema,
            other => {
                return Err(format!(
                    "parameter {name} must be a type name or a schema, not {other}"
                ));
            }
        };
        if let Some(Value::String(word)) = schema.get_mut("type") {
            match type_of(word) {
                Some(of) => *word = of.to_owned(),
                None => {
                    return Err(format!("parameter {name} has unknown type {word:?}; use {TYPES}"));
                }
            }
        }
        // A list of required members is part of the schema; a boolean is a flag for this parameter.
        let mut flag = |word| match schema.get(word) {
            Some(Value::Bool(_)) => schema.shift_remove(word).and_then(|flag| flag.as_bool()),
            _ => None,
        };
        let (required, optional) = (flag("required"), flag("optional"));
        // Not `remove`, which moves the last member into the gap: members keep their order.
        let default = schema.shift_remove("default");
        let is_required = match required {
            Some(required) => required,
            None => optional != Some(true) && default.is_none(),
        };
        if self.properties()?.insert(name.to_owned(), Value::Object(schema)).is_some() {
            return Err(format!("parameter {name} is declared twice"));
        }
        if is_required {
            self.required()?.push(name.into());
        }
        if let Some(default) = default {
            self.defaults.insert(name.to_owned(), default);
        }
        Ok(())
    }

    pub(crate) fn set_optional(&mut self, name: &str) -> Result<(), String> {
        self.parameter(name)?;
        self.required()?.retain(|required| required != name);
        Ok(())
    }

    pub(crate) fn set_default(&mut self, name: &str, default: Value) -> Result<(), String> {
        self.set_optional(name)?;
        self.defaults.insert(name.to_owned(), default);
        Ok(())
    }

    /// Sets a keyword in one parameter's schema.
    pub(crate) fn set(&mut self, name: &str, word: &str, value: Value) -> Result<(), String> {
        self.parameter(name)?.insert(word.to_owned(), value);
        Ok(())
    }

    fn parameter(&mut self, name: &str) -> Result<&mut Map<String, Value>, String> {
        let parameter = self.properties()?.get_mut(name).and_then(Value::as_object_mut);
        parameter.ok_or_else(|| format!("there is no parameter {name}; declare it first"))
    }

    fn properties(&mut self) -> Result<&mut Map<String, Value>, String> {
        let properties = self.schema.entry("properties").or_insert_with(|| json!({}));
        properties.as_object_mut().ok_or_else(|| "`properties` must be an object".to_owned())
    }

    fn required(&mut self) -> Result<&mut Vec<Value>, String> {
        let required = self.schema.entry("required").or_insert_with(|| json!([]));
        required.as_array_mut().ok_or_else(|| "`required` must be a list".to_owned())
    }
}

/// Returns true if an object is a JSON Schema rather than a shorthand.
fn is_schema(given: &Map<String, Value>) -> bool {
    // A parameter may be called like a keyword, so the value decides: `{"properties": {"q": ..}}` is a
    // schema, and `{"properties": "string"}` or `{"type": "string"}` is a shorthand with one parameter.
    // Whatever is beside it, such as `"x-go-type": "string"`: a shorthand parameter called `properties` would have a
    // string as its type.
    let properties = given.get("properties").and_then(Value::as_object);
    if properties.is_some_and(|of| !of.get("type").is_some_and(Value::is_string)) {
        return true;
    }
    let names_object = |of: &Value| match of {
        Value::Array(types) => types.iter().any(|of| of == "object"),
        of => of == "object",
    };
    if given.get("type").is_some_and(names_object) {
        // `{"type": "object", "q": "string"}` has two parameters.
        return !given.iter().any(|(name, value)| {
            !WORDS.contains(&&**name)
                && (value.as_str().is_some_and(|word| type_of(word).is_some())
                    || value.get("type").is_some())
        });
    }
    let has_list = |word: &str| given.get(word).is_some_and(Value::is_array);
    given.get("$ref").and_then(Value::as_str).is_some_and(|to| to.starts_with('#'))
        || ["allOf", "anyOf", "oneOf"].into_iter().any(has_list)
}

/// Returns the JSON Schema type for a word. The short forms are for programs written for the earlier SDK.
fn type_of(word: &str) -> Option<&'static str> {
    Some(match word {
        "array" | "list" | "vec" => "array",
        "bool" | "boolean" => "boolean",
        "f32" | "f64" | "float" | "number" => "number",
        "i32" | "i64" | "int" | "integer" | "u32" | "u64" => "integer",
        "dict" | "map" | "object" => "object",
        "str" | "string" => "string",
        "null" => "null",
        _ => return None,
    })
}
