//! Reasoning details: fragments of a list that goes back to the server (QUIRKS rows 30, 41, 42).

use serde_json::Value;

/// How far back the item of a fragment is looked for; looking through all of them each time would be
/// quadratic.
const LATEST: usize = 64;

/// Adds a fragment to the list: members of text grow, others are set, in the latest item of the same
/// index and type.
pub(crate) fn merge(list: &mut Vec<Value>, fragment: &Value) {
    let Value::Object(new) = fragment else {
        list.push(fragment.clone());
        return;
    };
    let same = |item: &&mut Value| {
        let same_member = |member: &str| item.get(member) == new.get(member);
        new.contains_key("index") && same_member("index") && same_member("type")
    };
    let latest = list.len().saturating_sub(LATEST);
    let Some(Value::Object(item)) = list[latest..].iter_mut().rfind(same) else {
        list.push(fragment.clone());
        return;
    };
    for (member, value) in new {
        match (item.get_mut(member), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if matches!(&**member, "data" | "summary" | "text") =>
            {
                text.push_str(more);
            }
            _ => drop(item.insert(member.clone(), value.clone())),
        }
    }
}
