use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::json::read_json;

/// The error code for text that is not JSON.
const PARSE_ERROR: i64 = -32700;
/// The error code for JSON that is not a valid request.
pub const INVALID_REQUEST: i64 = -32600;
/// The error code for an unknown method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The error code for invalid parameters.
pub const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
/// The error code for headers that do not match the body.
pub const HEADER_MISMATCH: i64 = -32020;
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
/// The error code for a request that the server cannot serve now.
const UNAVAILABLE: i64 = -32000;
/// The longest id of a request in bytes, as JSON. Each answer repeats it.
const LONGEST_ID: usize = 256;
/// The memory that a JSON value, or a name in an object, takes in addition to its text.
const VALUE: usize = 80;
/// The longest excerpt of a client's text in an error, in characters.
const EXCERPT: usize = 100;

/// A message from a client.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum Incoming {
    /// JSON that is not a message.
    Invalid {
        /// The id, if there is one; otherwise null.
        id: Value,
        /// The reason.
        why: &'static str,
    },
    /// A notification, which gets no answer.
    Notice {
        /// The method.
        method: String,
        /// The parameters; null if there are none.
        params: Value,
    },
    /// A request, which gets one answer.
    Request {
        /// A string or a number, of at most 256 bytes.
        id: Value,
        /// The method.
        method: String,
        /// The parameters; null if there are none.
        params: Value,
    },
    /// An answer, which a server that sends no requests ignores.
    Response,
}

/// Reads one piece of input of at most `most_values` JSON values: a message, or a batch of messages as in version
/// 2025-03-26.
///
/// # Errors
///
/// The JSON of the answer to input that cannot be read at all.
pub fn read(bytes: &[u8], most_values: usize) -> Result<Vec<Incoming>, String> {
    match read_json(bytes, most_values) {
        Ok(Value::Array(batch)) if batch.is_empty() => {
            Err(error(&Value::Null, INVALID_REQUEST, "the batch is empty"))
        }
        Ok(Value::Array(batch)) => Ok(batch.into_iter().map(message).collect()),
        Ok(value) => Ok(vec![message(value)]),
        Err(unreadable) => {
            let (code, why) = match unreadable.is_too_large {
                true => (INVALID_REQUEST, unreadable.cause),
                false => (PARSE_ERROR, format!("not valid JSON: {}", unreadable.cause)),
            };
            // Without the id, the client would wait for the answer until its timeout.
            let id = unreadable.id.filter(|id| unreadable.has_method && !is_long(id));
            Err(error(&id.unwrap_or_default(), code, &why))
        }
    }
}

fn is_long(id: &Value) -> bool {
    id.to_string().len() > LONGEST_ID
}

fn message(mut value: Value) -> Incoming {
    let Some(message) = value.as_object_mut() else {
        return Incoming::Invalid { id: Value::Null, why: "a message must be an object" };
    };
    let id = message.shift_remove("id");
    // Answers to any other id have the id null, as JSON-RPC demands for ids that cannot be read.
    let is_id = matches!(id, Some(Value::Number(_) | Value::String(_)));
    let is_long = id.as_ref().is_some_and(|id| is_id && is_long(id));
    let is_id = is_id && !is_long;
    let known = id.clone().filter(|_| is_id).unwrap_or_default();
    let invalid = |why| Incoming::Invalid { id: known.clone(), why };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("jsonrpc must be \"2.0\"");
    }
    let method = match message.shift_remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return invalid("the method must be a string"),
        None if message.contains_key("result") || message.contains_key("error") => {
            return Incoming::Response;
        }
        None => return invalid("the method is missing"),
    };
    let params = message.shift_remove("params").unwrap_or_default();
    match id {
        Some(id) if is_id => Incoming::Request { id, method, params },
        Some(_) if is_long => invalid("the id is too long"),
        Some(_) => invalid("the id must be a string or a number"),
        None => Incoming::Notice { method, params },
    }
}

/// Returns the answer to a request.
#[must_use]
pub fn answer(id: &Value, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

/// Returns the answer with a result that is already JSON text.
#[must_use]
pub fn answer_with(id: &Value, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
}

/// Returns an error as the answer to a request; the id is null if it is not known.
#[must_use]
pub fn error(id: &Value, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}

/// Returns an error with additional data.
pub(crate) fn error_with(id: &Value, code: i64, message: &str, data: &Value) -> String {
    let error = json!({ "code": code, "message": message, "data": data });
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}

/// Returns the answer to a request that cannot be served now. The newest version reserves the code that the others use.
#[must_use]
pub fn unavailable(id: &Value, is_stateless: bool, message: &str) -> String {
    error(id, if is_stateless { INTERNAL } else { UNAVAILABLE }, message)
}

/// Returns a notification.
#[must_use]
pub fn notice(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// Returns answers as one message: several are a batch.
#[must_use]
pub fn joined(mut answers: Vec<String>) -> String {
    match answers.len() {
        0 | 1 => answers.pop().unwrap_or_default(),
        _ => format!("[{}]", answers.join(",")),
    }
}

/// Returns true for an answer of this server, and false for a notification.
#[must_use]
pub fn is_answer(message: &str) -> bool {
    let members = serde_json::from_str::<HashMap<String, IgnoredAny>>(message);
    members.is_ok_and(|members| members.contains_key("id") && !members.contains_key("method"))
}

/// Returns the beginning of a client's text on one line, for an error.
#[must_use]
pub fn excerpt(text: &str) -> String {
    oa_redact::printable(&text.chars().take(EXCERPT).collect::<String>()).to_string()
}

/// Returns true for a valid token of progress: a number, or a text of at most 256 bytes, because each report repeats it.
#[must_use]
pub fn is_progress_token(token: &Value) -> bool {
    token.is_number() || token.as_str().is_some_and(|text| text.len() <= LONGEST_ID)
}

/// Returns the approximate memory of a value, in bytes.
#[must_use]
pub fn memory_of(value: &Value) -> usize {
    VALUE
        + match value {
            Value::Array(values) => values.iter().map(memory_of).sum(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| VALUE + name.len() + memory_of(value)).sum()
            }
            Value::String(text) => text.len(),
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(text: &str) -> Incoming {
        let mut read = read(text.as_bytes(), 1_000).unwrap();
        assert_eq!(read.len(), 1);
        read.remove(0)
    }

    #[test]
    fn messages_are_classified() {
        let request = |id: Value| Incoming::Request { id, method: "m".into(), params: json!([1]) };
        assert_eq!(one(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#), request(json!(1)));
        assert_eq!(
            one(r#"{"jsonrpc":"2.0","id":"a","method":"m","params":[1]}"#),
            request(json!("a"))
        );
        let notice = Incoming::Notice { method: "m".into(), params: Value::Null };
        assert_eq!(one(r#"{"jsonrpc":"2.0","method":"m"}"#), notice);
        assert_eq!(one(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Incoming::Response);
        let id = |text: &str| match one(text) {
            Incoming::Invalid { id, .. } => id,
            other => panic!("{other:?}"),
        };
        assert_eq!(id(r#"{"id":1,"method":"m"}"#), json!(1));
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":"a","method":7}"#), json!("a"));
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#), Value::Null);
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#), Value::Null);
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":3}"#), json!(3));
        assert_eq!(id("7"), Value::Null);
        let long = |length| {
            let id = "x".repeat(length);
            one(&json!({ "jsonrpc": "2.0", "id": id, "method": "m" }).to_string())
        };
        assert!(matches!(long(254), Incoming::Request { .. }));
        let why = "the id is too long";
        assert_eq!(long(255), Incoming::Invalid { id: Value::Null, why });
    }

    #[test]
    fn unreadable_input_gets_a_null_id() {
        let refused = |text: &str| -> Value {
            serde_json::from_str(&read(text.as_bytes(), 4).unwrap_err()).unwrap()
        };
        assert_eq!(refused("{")["error"]["code"], PARSE_ERROR);
        assert_eq!(refused("[]")["error"]["code"], INVALID_REQUEST);
        assert_eq!(refused("[0,0,0,0]")["error"]["message"], "the message has more than 4 values");
        assert_eq!(refused("[]")["id"], Value::Null);
        // Without its id, the client would wait until its timeout.
        let large = refused(r#"{"id":7,"method":"m","params":[0,0,0]}"#);
        assert_eq!((&large["id"], &large["error"]["code"]), (&json!(7), &json!(INVALID_REQUEST)));
        assert!(read(br#"",,,,,,[[[[""#, 4).is_ok(), "separators in a text count for nothing");
    }

    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(values) => values.iter().map(count).sum(),
            Value::Object(members) => members.values().map(count).sum(),
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn value_count_is_an_upper_bound(texts in proptest::collection::vec(".{0,8}", 0..8), depth in 0..8_usize) {
            let mut value = json!({ "a": texts, "b": {}, "c": [] });
            for _ in 0..depth {
                value = json!([value, 1, { "d": null }]);
            }
            prop_assert!(oa_json::count_values(value.to_string().as_bytes()) >= count(&value));
        }

        #[test]
        fn read_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&bytes, 16);
        }
    }
}
