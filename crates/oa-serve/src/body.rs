//! Bodies of requests.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads a JSON object. On its own, what serde derives would also read an array of the values of the members.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    let members: Map<String, Value> = serde_json::from_slice(body)?;
    serde_json::from_value(Value::Object(members))
}
