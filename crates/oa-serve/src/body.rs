//! Bodies of requests.

use std::borrow::Cow;

use oa_json::{count_values, replace_lone_surrogates};
use oa_types::{MAX_NESTING, is_nested_within};
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Map, Value};

use crate::error::Refusal;

/// The maximum number of values and names in a body, and in all the arguments of calls in it. In memory, a value takes
/// much more than its text: `[{"":0},{"":0},..]` takes eighty times its length.
const MOST_VALUES: usize = 250_000;

/// Reads a JSON object. On its own, what serde derives would also read an array of the values of the members.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    if count_values(body) > MOST_VALUES {
        return Err(serde_json::Error::custom(format_args!("more than {MOST_VALUES} values")));
    }
    let members: Map<String, Value> = parse(body)?;
    serde_json::from_value(Value::Object(members))
}

/// Parses JSON. Half a surrogate pair is read as U+FFFD: JavaScript and Python write it for a text that was cut within a
/// character, and a front end sends its history with each request.
fn parse<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(json).or_else(|error| {
        match std::str::from_utf8(json).map(replace_lone_surrogates) {
            Ok(Cow::Owned(whole)) => serde_json::from_str(&whole),
            _ => Err(error),
        }
    })
}

/// Reads the arguments of calls, which are texts in a body.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    values: usize,
}

impl Arguments {
    /// Returns the arguments of a call; `None` if they are not [an input](is_input), such as those of a truncated call.
    pub(crate) fn read(&mut self, json: &str) -> Result<Option<Value>, Refusal> {
        self.values += count_values(json.as_bytes());
        if self.values > MOST_VALUES {
            let message =
                format!("the arguments of all calls can have at most {MOST_VALUES} values");
            return Err(Refusal::too_large(message));
        }
        Ok(parse(json.as_bytes()).ok().filter(is_input))
    }
}

/// Returns true for the input of a call that a conversation can hold. A model's calls have no other.
pub(crate) fn is_input(value: &Value) -> bool {
    value.is_object() && is_nested_within(value, MAX_NESTING)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn halves_of_pairs_are_replaced() {
        let read = |json: &str| read::<Map<String, Value>>(json.as_bytes());
        for (json, expected) in [
            (r#"{"a":"cut \ud83d"}"#, "cut \u{fffd}"),
            (r#"{"a":"\ude00 \ud83d\ud83d\ude00\ud83dx"}"#, "\u{fffd} \u{fffd}\u{1f600}\u{fffd}x"),
            (r#"{"a":"\\ud83d\n\ud83d\\"}"#, "\\ud83d\n\u{fffd}\\"),
        ] {
            assert_eq!(read(json).expect(json)["a"], expected, "{json}");
        }
        for json in [r#"{"a":"\ud83d"#, r#"{"a":"\ud8"}"#, r#"{"a":"\"#, r"{\ud83d}", r"\"] {
            assert!(read(json).is_err(), "{json}");
        }
    }

    proptest::proptest! {
        #[test]
        fn text_as_javascript_writes_it_is_read(units in proptest::collection::vec(proptest::prelude::any::<u16>(), 0..8)) {
            let escapes: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let read: Map<String, Value> = read(format!(r#"{{"a":"{escapes}"}}"#).as_bytes()).expect("it is text");
            proptest::prop_assert_eq!(&read["a"], &Value::from(String::from_utf16_lossy(&units)));
        }
    }

    /// Of a body, and of all the texts in it that are read as JSON.
    #[test]
    fn number_of_values_is_bounded() {
        let zeros = |count: usize| format!(r#"{{"a":[{}0]}}"#, "0,".repeat(count - 1));
        let body = |count| read::<Map<String, Value>>(zeros(count).as_bytes());
        assert!(body(MOST_VALUES - 3).is_ok());
        let refused = body(MOST_VALUES).expect_err("it has too many");
        assert_eq!(refused.to_string(), "more than 250000 values");

        let mut arguments = Arguments::default();
        let half = zeros(MOST_VALUES / 2 - 10);
        for _ in 0..2 {
            assert!(arguments.read(&half).is_ok_and(|input| input.is_some()));
        }
        assert_eq!(arguments.read(&half).expect_err("too many").status.as_u16(), 413);
    }

    #[test]
    fn arguments_are_objects_of_some_depth() {
        let nested = |levels: usize| {
            let inner = (1..levels).fold(json!(1), |inner, _| json!([inner]));
            json!({"a": inner}).to_string()
        };
        let mut arguments = Arguments::default();
        let mut is_read = |json: &str| arguments.read(json).is_ok_and(|input| input.is_some());
        assert!(is_read(&nested(MAX_NESTING)) && !is_read(&nested(MAX_NESTING + 1)));
        assert!(!is_read("[1]") && !is_read(r#"{"a": 1"#) && !is_read(""));
    }
}
