//! Conversion of values to the types that a schema requires.

use std::{fmt, ptr};

use oa_json::{LenientValue, excerpt, literal, quoted};
use serde_json::{Map, Value};

use crate::bare::whole;
use crate::schema::Schema;
use crate::tools::Parameters;

/// Converts a written value to a type that the schema allows. If that is ambiguous, the error names the field.
pub(crate) fn convert(
    written: LenientValue,
    schema: Option<Schema<'_>>,
    name: &str,
) -> Result<Value, String> {
    convert_at(written, schema, &Path::Name(name))
}

/// A path in the arguments, formatted only for errors.
#[derive(Clone, Copy)]
enum Path<'a> {
    Item(&'a Self, usize),
    Member(&'a Self, &'a str),
    Name(&'a str),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(parent, at) => write!(f, "{parent}[{at}]"),
            Self::Member(parent, name) => write!(f, "{parent}.{}", excerpt(name)),
            Self::Name(name) => f.write_str(&excerpt(name)),
        }
    }
}

fn convert_at(
    written: LenientValue,
    schema: Option<Schema<'_>>,
    path: &Path<'_>,
) -> Result<Value, String> {
    let types = Types::of(schema);
    let wrong = |found: &str| Err(format!("`{path}`: expected {}, found {found}", types.words()));
    match written {
        // Quotes mean text wherever the schema allows it, even if the text looks like a number.
        LenientValue::Quoted(text) if types.allow(Type::String) => Ok(Value::String(text)),
        LenientValue::Quoted(text) => match from_text(&text, schema, types, path) {
            Some(value) => Ok(value),
            None => wrong(&format!("text {}", quoted(&text))),
        },
        LenientValue::Word(word) => {
            let is_named = || schema.is_some_and(|schema| schema.lists(&word));
            match literal(&word) {
                // `None` and `true` may be members of an enum of strings.
                Some(_) if !types.is_any() && is_named() => Ok(Value::String(word)),
                // Whether the value may be absent is decided when the arguments are checked.
                Some(Value::Null) => Ok(Value::Null),
                // Without quotes, `7` is a number wherever one is allowed; `007` is none in JSON.
                Some(value) if types.allow_value(&value) => Ok(value),
                _ if types.allow(Type::String) => Ok(Value::String(word)),
                _ if types.allow(Type::Boolean) && word.eq_ignore_ascii_case("true") => {
                    Ok(Value::Bool(true))
                }
                _ if types.allow(Type::Boolean) && word.eq_ignore_ascii_case("false") => {
                    Ok(Value::Bool(false))
                }
                _ => wrong(&quoted(&word)),
            }
        }
        LenientValue::Array(items) if types.allow(Type::Array) => {
            let mut of = schema.map(Schema::items);
            let items = items.into_iter().enumerate();
            let item = |(at, item)| {
                let of = of.as_mut().and_then(|of| of.next().flatten());
                convert_at(item, of, &Path::Item(path, at))
            };
            items.map(item).collect()
        }
        LenientValue::Array(_) => wrong("a list"),
        LenientValue::Object(members) if types.allow(Type::Object) => {
            let known = schema.map(Schema::members);
            let mut object = Map::new();
            for (name, member) in members {
                let schema = known.as_ref().and_then(|known| known.get(&name));
                let member = convert_at(member, schema, &Path::Member(path, &name))?;
                object.insert(name, member);
            }
            Ok(Value::Object(object))
        }
        LenientValue::Object(_) => wrong("an object"),
    }
}

/// Converts the text of an argument between tags: to a string where the schema allows strings, else by reading it as
/// JSON. `null` is none where the schema allows it, and for a parameter that may be missing.
pub(crate) fn convert_text(
    text: &str,
    parameters: Option<Parameters<'_>>,
    name: &str,
) -> Result<Value, String> {
    let schema = parameters.and_then(|parameters| parameters.get(name));
    let may_lack = || parameters.is_some_and(|of| !of.required().any(|needed| needed == name));
    convert_text_of(text, schema, may_lack, name)
}

/// Converts the text of a value between tags. The value may be missing if `may_lack` returns true.
pub(crate) fn convert_text_of(
    text: &str,
    schema: Option<Schema<'_>>,
    may_lack: impl Fn() -> bool,
    name: &str,
) -> Result<Value, String> {
    let types = Types::of(schema);
    if types.is_any() {
        // Between tags, quotes are part of the text.
        return Ok(match text.parse() {
            Ok(Value::String(_)) | Err(_) => text.into(),
            Ok(Value::Number(_)) => literal(text.trim()).unwrap_or_else(|| text.into()),
            Ok(value) => value,
        });
    }
    if text.trim() == "null" && (types.allow(Type::Null) || may_lack()) {
        return Ok(Value::Null);
    }
    if types.allow(Type::String) {
        return Ok(text.into());
    }
    match whole(text) {
        Ok(written) => convert(written, schema, name),
        Err(_) => {
            let (name, wanted) = (quoted(name), types.words());
            Err(format!("{name}: expected {wanted}, found {}", quoted(text)))
        }
    }
}

/// Returns the value of quoted text where the schema does not allow strings, such as `"3"` or `"[1, 2]"`.
fn from_text(
    text: &str,
    schema: Option<Schema<'_>>,
    types: Types,
    path: &Path<'_>,
) -> Option<Value> {
    let text = text.trim();
    if text.starts_with(['[', '{']) {
        let written = whole(text).ok()?;
        return convert_at(written, schema, path).ok();
    }
    literal(text).filter(|value| types.allow_value(value))
}

/// The number of schemas visited to find the types of one value, so that a hostile schema cannot take long.
const WORK: usize = 64;

/// The types that a schema allows, as bits of [`Type`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Types(u8);

#[derive(Clone, Copy, Debug)]
enum Type {
    Array,
    Boolean,
    Integer,
    Null,
    Number,
    Object,
    String,
}

const WORDS: [(Type, &str); 7] = [
    (Type::Array, "array"),
    (Type::Boolean, "boolean"),
    (Type::Integer, "integer"),
    (Type::Null, "null"),
    (Type::Number, "number"),
    (Type::Object, "object"),
    (Type::String, "string"),
];

impl Types {
    const ANY: Self = Self(u8::MAX);

    fn of(schema: Option<Schema<'_>>) -> Self {
        let Some(schema) = schema else { return Self::ANY };
        let types = Self::within(schema, &mut Vec::new(), &mut { WORK });
        // Contradictions say nothing.
        if types.0 == 0 { Self::ANY } else { types }
    }

    /// Returns the types that all layers of a schema allow. One that contains itself adds none there.
    fn within<'a>(schema: Schema<'a>, open: &mut Vec<&'a Value>, work: &mut usize) -> Self {
        if open.iter().any(|outer| ptr::eq(*outer, schema.own)) {
            return Self(0);
        }
        let Some(left) = work.checked_sub(1) else { return Self::ANY };
        *work = left;
        open.push(schema.own);
        let layers = schema.layers().into_iter();
        let types = layers.map(|layer| Self::of_layer(schema, layer, open, work));
        let types = Self(types.fold(Self::ANY.0, |all, types| all & types.0));
        open.pop();
        types
    }

    fn of_layer<'a>(
        schema: Schema<'a>,
        layer: &'a Value,
        open: &mut Vec<&'a Value>,
        work: &mut usize,
    ) -> Self {
        let mut types = match layer.get("type") {
            Some(Value::String(word)) => Self::named(word),
            Some(Value::Array(words)) => {
                Self::all(words.iter().map(|word| word.as_str().map_or(Self::ANY, Self::named)))
            }
            _ => {
                let of = |value: &Value| Self(1 << Self::type_of(value) as u8);
                let values = layer.get("enum").and_then(Value::as_array).into_iter().flatten();
                let mut values = values.chain(layer.get("const")).map(of).peekable();
                let mut parts = schema.alternatives(layer).peekable();
                // A schema that names no types allows all of them.
                if values.peek().is_none() && parts.peek().is_none() {
                    Self::ANY
                } else {
                    Self::all(values.chain(parts.map(|part| Self::within(part, open, work))))
                }
            }
        };
        if layer.get("nullable") == Some(&Value::Bool(true)) {
            types.0 |= 1 << Type::Null as u8;
        }
        types
    }

    fn all(types: impl Iterator<Item = Self>) -> Self {
        Self(types.fold(0, |all, types| all | types.0))
    }

    fn named(word: &str) -> Self {
        let found = WORDS.iter().find(|(_, name)| *name == word);
        found.map_or(Self::ANY, |(of, _)| Self(1 << *of as u8))
    }

    fn type_of(value: &Value) -> Type {
        match value {
            Value::Array(_) => Type::Array,
            Value::Bool(_) => Type::Boolean,
            Value::Null => Type::Null,
            Value::Number(_) => Type::Number,
            Value::Object(_) => Type::Object,
            Value::String(_) => Type::String,
        }
    }

    fn is_any(self) -> bool {
        self == Self::ANY
    }

    fn allow(self, of: Type) -> bool {
        self.0 & 1 << of as u8 != 0
    }

    fn allow_value(self, value: &Value) -> bool {
        // In JSON Schema, `3.0` is an integer.
        let is_whole = || value.as_f64().is_some_and(|number| number.fract() == 0.0);
        self.allow(Self::type_of(value))
            || value.is_number() && self.allow(Type::Integer) && is_whole()
    }

    fn words(self) -> String {
        let words = WORDS.iter().filter(|(of, _)| self.allow(*of)).map(|(_, word)| *word);
        words.collect::<Vec<_>>().join(" or ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bare::Bare;

    #[track_caller]
    fn check(written: &str, schema: Value, expected: Result<Value, &str>) {
        let value = Bare::Words.reader(written).value().unwrap();
        let converted = convert(value, Some(Schema::whole(&schema)), "n");
        assert_eq!(converted, expected.map_err(str::to_owned), "{written} by {schema}");
    }

    #[test]
    fn the_schema_decides_what_bare_text_is() {
        check("007", json!({"type": "string"}), Ok(json!("007")));
        check("3.50", json!({"type": "string"}), Ok(json!("3.50")));
        check("true", json!({"type": "string"}), Ok(json!("true")));
        check("7", json!({"type": "integer"}), Ok(json!(7)));
        check("7", json!({"type": ["string", "integer"]}), Ok(json!(7)));
        check("TRUE", json!({"type": "boolean"}), Ok(json!(true)));
        check("None", json!({"type": "string"}), Ok(Value::Null));
        check("None", json!({"type": "string", "enum": ["None", "All"]}), Ok(json!("None")));
        check("Oslo", json!({}), Ok(json!("Oslo")));
        check("5", json!({"enum": [5, 6]}), Ok(json!(5)));
    }

    #[test]
    fn quoted_text_is_converted_if_needed() {
        check("\"3\"", json!({"type": "integer"}), Ok(json!(3)));
        check("\"3\"", json!({"type": ["string", "integer"]}), Ok(json!("3")));
        check("\"[1, 2]\"", json!({"type": "array"}), Ok(json!([1, 2])));
        check("\"[1, 2]\"", json!({"type": "string"}), Ok(json!("[1, 2]")));
    }

    #[test]
    fn errors_name_the_field() {
        let integer = || json!({"type": "integer"});
        check("\"007\"", integer(), Err("`n`: expected integer, found text `007`"));
        check("3.5", integer(), Err("`n`: expected integer, found `3.5`"));
        check("three", integer(), Err("`n`: expected integer, found `three`"));
        check("yes", json!({"type": "boolean"}), Err("`n`: expected boolean, found `yes`"));
        check("5", json!({"type": "array"}), Err("`n`: expected array, found `5`"));
        let list = json!({"type": "array", "items": {"type": "integer"}});
        check("[1, x]", list, Err("`n[1]`: expected integer, found `x`"));
        check("[a]", json!({"type": "string"}), Err("`n`: expected string, found a list"));
    }

    #[test]
    fn text_between_tags_follows_the_schema() {
        let check = |text, schema: Value, expected: Result<Value, ()>| {
            let tool = json!({"properties": {"n": schema}, "required": ["n"]});
            let converted = convert_text(text, Some(Parameters(&tool)), "n");
            assert_eq!(converted.map_err(drop), expected, "{text} by {schema}");
        };
        check("5", json!({"type": "string"}), Ok(json!("5")));
        check("5", json!({"type": "number"}), Ok(json!(5)));
        check("True", json!({"type": "boolean"}), Ok(json!(true)));
        check("[1]", json!({}), Ok(json!([1])));
        check("so it is", json!({}), Ok(json!("so it is")));
        check("five", json!({"type": "number"}), Err(()));
    }
}
