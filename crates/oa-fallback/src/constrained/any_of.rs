use serde_json::{Value, json};

/// Returns a schema of values that match any of these schemas.
pub(super) fn any_of(mut schemas: Vec<Value>) -> Value {
    if schemas.len() == 1 { schemas.remove(0) } else { json!({ "anyOf": schemas }) }
}
