//! Keys that the client rejects because they are dangerous in JavaScript.

use serde_json::{Map, Value};

/// Renames the key `__proto__`, and `constructor` if it contains `prototype`: with one of them, the client fails the
/// stream.
pub(crate) fn without_forbidden_keys(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(without_forbidden_keys).collect(),
        Value::Object(members) => {
            let mut renamed = Map::new();
            let mut forbidden = Vec::new();
            for (key, value) in members {
                let value = without_forbidden_keys(value);
                if is_forbidden(&key, &value) {
                    forbidden.push((key, value));
                } else {
                    renamed.insert(key, value);
                }
            }
            // Last, when all other keys are known: a new name must not replace one of them.
            for (key, value) in forbidden {
                let mut key = format!("_{}", key.trim_start_matches('_'));
                while renamed.contains_key(&key) {
                    key.push('_');
                }
                renamed.insert(key, value);
            }
            Value::Object(renamed)
        }
        value => value,
    }
}

fn is_forbidden(key: &str, value: &Value) -> bool {
    match key {
        "__proto__" => true,
        "constructor" => value.as_object().is_some_and(|members| members.contains_key("prototype")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// At any depth, and without the loss of a value.
    #[test]
    fn forbidden_keys_are_renamed() {
        let value = json!([{"__proto__": {"__proto__": 1}, "_proto__": 2, "constructor": {"prototype": 3}}]);
        let expected = json!([{"_proto__": 2, "_proto___": {"_proto__": 1}, "_constructor": {"prototype": 3}}]);
        assert_eq!(without_forbidden_keys(value), expected);
        let harmless = json!({"constructor": "x", "a": {"constructor": {"name": 1}}});
        assert_eq!(without_forbidden_keys(harmless.clone()), harmless);
    }
}
