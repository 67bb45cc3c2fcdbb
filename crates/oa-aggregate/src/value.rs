//! JSON values that are kept as they are.

use oa_json::held;
use serde_json::Value;

use crate::allowance::Allowance;

/// Reads the value of a member that is kept, as [`present`] does, and counts its name.
pub(crate) fn present_member(name: &str, raw: &str, allowance: &mut Allowance) -> Option<Value> {
    present(raw, allowance).filter(|_| allowance.hold(held::member(name)))
}

/// Reads any value; null, false, `""`, `[]` and `{}` are absent, and so is what there is no room for.
pub(crate) fn present(raw: &str, allowance: &mut Allowance) -> Option<Value> {
    // No tree is built that does not fit.
    if !held::fits(raw, allowance.room) {
        allowance.cut();
        return None;
    }
    // Lone surrogates and numbers of Python pass our own reader, and `serde_json` refuses them.
    let Ok(value) = serde_json::from_str::<Value>(raw) else {
        return Some(Value::String(raw.to_owned()));
    };
    allowance.hold_value(&value);
    match &value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(list) if list.is_empty() => None,
        Value::Object(members) if members.is_empty() => None,
        _ => Some(value),
    }
}
