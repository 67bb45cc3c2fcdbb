//! JSON values that are kept unchanged.

use oa_json::{held, read_or_text};
use oa_types::shallow;
use serde_json::Value;

use crate::allowance::Allowance;

/// Reads the value of a kept member like [`present`], and counts its name.
pub(crate) fn present_member(name: &str, raw: &str, allowance: &mut Allowance) -> Option<Value> {
    present(raw, allowance).filter(|_| allowance.hold(held::member(name)))
}

/// Reads any value, as [`shallow`] as a message allows. Null, false, `""`, `[]`, `{}` and what does not fit are absent.
pub(crate) fn present(raw: &str, allowance: &mut Allowance) -> Option<Value> {
    // A tree that does not fit is not built.
    if !held::fits(raw, allowance.room) {
        allowance.is_cut = true;
        return None;
    }
    let value = shallow(read_or_text(raw));
    // This cannot fail: the bound by the text fits, and is larger.
    allowance.hold_value(&value);
    match &value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(list) if list.is_empty() => None,
        Value::Object(members) if members.is_empty() => None,
        _ => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_serde_rejects_are_counted() {
        for raw in [r#""\ud800""#, "NaN", "[1, Infinity]", r#""plain""#] {
            let mut allowance = Allowance::new(10_000, 10_000);
            assert!(present(raw, &mut allowance).is_some());
            assert!(allowance.room < 10_000, "{raw}");
            while !allowance.is_cut {
                let room = allowance.room;
                present(raw, &mut allowance);
                assert!(allowance.is_cut || allowance.room < room, "{raw}");
            }
        }
    }
}
