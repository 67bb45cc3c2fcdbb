mod wrapped;

use std::fmt;

use oa_tools::{ArgumentError, check_arguments, complete_arguments};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A response format: a name and the JSON Schema of an object.
///
/// In `oa-client`, `AgentOptionsBuilder::response_format` takes one, and `Client::send_for` creates one from a type.
///
/// ```
/// use oa_output::ResponseFormat;
/// use serde_json::{Value, json};
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let format = Value::from(ResponseFormat::new("place", schema));
/// assert_eq!(format["json_schema"]["name"], "place");
/// ```
///
/// Serialized by itself, it is `{"name": "place", "schema": {...}}`.
#[derive(Clone, Deserialize, PartialEq, Serialize)]
pub struct ResponseFormat {
    #[serde(deserialize_with = "name")]
    name: String,
    /// The schema to validate with, also used for the parameters of an output tool.
    schema: Value,
    /// The schema to send, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strict: Option<Value>,
    /// True if the value is wrapped in an object with one member.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_wrapped: bool,
}

/// The longest name that servers accept.
const LONGEST: usize = 64;

impl ResponseFormat {
    /// Creates a format from the JSON Schema of an object. The schema is sent unchanged, without `strict`.
    ///
    /// Servers accept names of 1 to 64 letters, digits, `_` and `-`; other characters are replaced by `_`.
    #[must_use]
    pub fn new(name: impl AsRef<str>, schema: Value) -> Self {
        Self { name: accepted(name.as_ref()), schema, strict: None, is_wrapped: false }
    }

    /// Creates a format from a type. Its fields become members, and their doc comments become descriptions.
    ///
    /// A type that is not an object (a list, an enum, a number) is wrapped in an object with the member `value`,
    /// because OpenAI and compatible servers accept only objects.
    ///
    /// The format sets `strict`, and the schema that is sent uses the part of JSON Schema that strict servers accept,
    /// as far as the type allows: no additional members; all members required, with optional ones nullable (null is
    /// read as missing); alternatives as `anyOf`; nothing beside a `$ref`; no `default`, no number formats, and no
    /// ranges that only repeat the size of an integer. Local servers compile any schema to a grammar, and the strict
    /// form keeps small models from omitting members. Your own ranges, lengths and patterns are kept, although some
    /// strict servers reject them. Maps, tuples and arbitrary JSON have no strict form: their schema is sent
    /// unchanged, with `strict: false`.
    ///
    /// Members are sent in declaration order, and servers with a grammar make the model write them in that order.
    /// Declare a member for reasoning before the members that depend on it.
    ///
    /// ```
    /// use oa_output::ResponseFormat;
    /// use schemars::JsonSchema;
    /// use serde_json::{Value, json};
    ///
    /// #[derive(JsonSchema)]
    /// struct Place {
    ///     /// As it is called there.
    ///     city: String,
    ///     people: Option<u32>,
    /// }
    ///
    /// let format = Value::from(ResponseFormat::of::<Place>());
    /// assert_eq!(
    ///     format["json_schema"],
    ///     json!({
    ///         "name": "Place",
    ///         "strict": true,
    ///         "schema": {
    ///             "type": "object",
    ///             "properties": {
    ///                 "city": {"type": "string", "description": "As it is called there."},
    ///                 "people": {"type": ["integer", "null"]},
    ///             },
    ///             "required": ["city", "people"],
    ///             "additionalProperties": false,
    ///         },
    ///     })
    /// );
    /// ```
    #[cfg(feature = "schemars")]
    #[must_use]
    pub fn of<T: schemars::JsonSchema>() -> Self {
        let mut schema = oa_tools::schema_of::<T>();
        let is_wrapped = schema.get("type").is_none_or(|of| of != "object");
        if is_wrapped {
            schema = oa_tools::schema_of::<wrapped::Wrapped<T>>();
        }
        let strict = oa_tools::strict_schema(&schema);
        Self { strict, is_wrapped, ..Self::new(T::schema_name(), schema) }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the schema to validate with. The schema that is sent may be stricter.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Validates an object and returns the value in it, with defaults added.
    ///
    /// # Errors
    ///
    /// Lists each member that does not match the schema, with its path.
    pub fn check(&self, object: Value) -> Result<Value, ArgumentError> {
        check_arguments(&self.schema, object).map(|object| self.unwrapped(object))
    }

    /// Returns the value in an incomplete object, with defaults added.
    #[must_use]
    pub fn complete(&self, object: &Value) -> Value {
        self.unwrapped(complete_arguments(&self.schema, object.clone()))
    }

    fn unwrapped(&self, mut object: Value) -> Value {
        match object.get_mut(wrapped::MEMBER) {
            Some(value) if self.is_wrapped => value.take(),
            _ => object,
        }
    }

    /// Returns the value in an incomplete object; `None` if it has not begun.
    #[must_use]
    pub fn wanted<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        if self.is_wrapped { object.get(wrapped::MEMBER) } else { Some(object) }
    }

    /// Returns true if the schema describes an object.
    #[must_use]
    pub fn is_of_object(&self) -> bool {
        self.schema.get("type").is_some_and(|of| of == "object")
    }
}

/// Returns a name that servers accept.
fn accepted(name: &str) -> String {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let letter = |c: char| if is_letter(c) { c } else { '_' };
    let name: String = name.chars().take(LONGEST).map(letter).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}

fn name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|name| accepted(&name))
}

/// Converts to the JSON of a request.
impl From<ResponseFormat> for Value {
    fn from(format: ResponseFormat) -> Self {
        let ResponseFormat { name, schema, strict, .. } = format;
        let is_strict = strict.is_some();
        let schema = strict.unwrap_or(schema);
        let schema = json!({ "name": name, "schema": schema, "strict": is_strict });
        json!({ "type": "json_schema", "json_schema": schema })
    }
}

impl fmt::Debug for ResponseFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFormat")
            .field("name", &self.name)
            .field("schema", &format_args!("{}", self.schema))
            .field("is_strict", &self.strict.is_some())
            .finish_non_exhaustive()
    }
}
