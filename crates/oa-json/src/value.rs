//! Builds [`Value`]s from the grammar.

use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::excerpt::quoted;
use crate::held;
use crate::syntax::{Build, Doubt};

impl Build for Value {
    type Members = Map<String, Self>;

    fn item_cost(count: usize) -> usize {
        if count == 1 { held::LIST } else { held::ITEM }
    }

    fn member_cost(count: usize) -> usize {
        held::by_member(count)
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn insert(members: &mut Self::Members, name: String, value: Self, doubt: Doubt) -> Result<()> {
        match members.entry(name) {
            Entry::Occupied(entry) if doubt == Doubt::Refuse => {
                return Err(given_twice(entry.key()));
            }
            Entry::Occupied(mut entry) => _ = entry.insert(value),
            Entry::Vacant(entry) => _ = entry.insert(value),
        }
        Ok(())
    }

    fn object(members: Self::Members, _: Doubt) -> Result<Self> {
        Ok(Self::Object(members))
    }

    fn string(text: String) -> Self {
        Self::String(text)
    }

    fn word(word: &str, doubt: Doubt) -> Result<Self> {
        let value = match doubt {
            Doubt::Refuse => literal(word),
            Doubt::Resolve => constant(word).or_else(|| number(word).map(Self::Number)),
        };
        value.ok_or_else(|| {
            Error::syntax(format!("{} is not a JSON value: strings need quotes", quoted(word)))
        })
    }
}

/// The error for a second member of one name.
pub(crate) fn given_twice(name: &str) -> Error {
    Error::new(ErrorKind::Duplicate, format!("{} appears twice", quoted(name)))
}

/// Returns the value of an unquoted word in JSON or Python: a number, `true`, `false`, `null`, `True`, `False` or
/// `None`. Returns `None` for any other word, and for an integer that would lose digits.
///
/// ```
/// use oa_json::literal;
/// use serde_json::json;
///
/// assert_eq!(literal("-1.5e3"), Some(json!(-1500.0)));
/// assert_eq!(literal("None"), Some(json!(null)));
/// assert_eq!(literal("Oslo"), None);
/// assert_eq!(literal("12345678901234567890123"), None);
/// ```
#[must_use]
pub fn literal(word: &str) -> Option<Value> {
    constant(word).or_else(|| {
        let is_whole = !word.contains(['.', 'e', 'E']);
        // serde_json reads long integers as floats, which lose digits. `-0` is a float, too, but exact.
        let is_exact = |number: &Number| !is_whole || !number.is_f64() || word == "-0";
        number(word).filter(is_exact).map(Value::Number)
    })
}

fn constant(word: &str) -> Option<Value> {
    match word {
        "true" | "True" => Some(Value::Bool(true)),
        "false" | "False" => Some(Value::Bool(false)),
        "null" | "None" => Some(Value::Null),
        _ => None,
    }
}

fn number(word: &str) -> Option<Number> {
    let is_number = word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    is_number.then(|| word.parse().ok())?
}

/// Returns the value of a valid JSON text; `None` if it is not valid.
///
/// The same as `serde_json::from_slice`, except that it is compiled once, not in each crate that calls it.
#[must_use]
pub fn read_strict(json: &[u8]) -> Option<Value> {
    std::str::from_utf8(json).ok()?.parse().ok()
}

/// Returns the value of a valid JSON text; `None` also if it would take more than `bytes` of [memory](held).
///
/// For text from a peer: `{"":0},` takes a hundred times its length.
///
/// ```
/// use oa_json::read_within;
///
/// assert_eq!(read_within(b"[1, 2]", 1_000).unwrap()[1], 2);
/// assert_eq!(read_within("0,".repeat(1_000).as_bytes(), 1_000), None);
/// ```
#[must_use]
pub fn read_within(json: &[u8], bytes: usize) -> Option<Value> {
    let text = std::str::from_utf8(json).ok()?;
    if held::fits(text, bytes) { text.parse().ok() } else { None }
}
