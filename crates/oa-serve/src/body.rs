//! Bodies of requests.

use oa_types::{MAX_NESTING, is_nested_within};
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Map, Value};

use crate::error::Refusal;

/// The maximum number of values in a body, and in all the arguments of calls in it. In memory, a value takes much more
/// than its text: `[{"":0},{"":0},..]` takes eighty times its length.
const MOST_VALUES: usize = 250_000;

/// Reads a JSON object. On its own, what serde derives would also read an array of the values of the members.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    if values(body) > MOST_VALUES {
        return Err(serde_json::Error::custom(format_args!("more than {MOST_VALUES} values")));
    }
    let members: Map<String, Value> = serde_json::from_slice(body)?;
    serde_json::from_value(Value::Object(members))
}

/// Reads the arguments of calls, which are texts in a body.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    values: usize,
}

impl Arguments {
    /// Returns the arguments of a call; `None` if they are not [an input](is_input), such as those of a truncated call.
    pub(crate) fn read(&mut self, json: &str) -> Result<Option<Value>, Refusal> {
        self.values += values(json.as_bytes());
        if self.values > MOST_VALUES {
            let message =
                format!("the arguments of all calls can have at most {MOST_VALUES} values");
            return Err(Refusal::too_large(message));
        }
        Ok(serde_json::from_str(json).ok().filter(is_input))
    }
}

/// Returns true for the input of a call that a conversation can hold. A model's calls have no other.
pub(crate) fn is_input(value: &Value) -> bool {
    value.is_object() && is_nested_within(value, MAX_NESTING)
}

/// Returns an upper bound of the number of values in a JSON text, without parsing it.
fn values(json: &[u8]) -> usize {
    // Each value but the first follows one of three characters, if names are left out. Text that is not JSON may be
    // miscounted, but is refused anyway.
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        for (json, expected) in
            [("1", 1), (r#"["a,\",[b\\",{"c,":[2]}]"#, 5), ("[]", 2), (r#"{"a":1,"b":{}}"#, 4)]
        {
            assert_eq!(values(json.as_bytes()), expected, "{json}");
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
