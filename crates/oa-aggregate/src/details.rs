//! Reasoning details: fragments of a list that goes back to the server (QUIRKS rows 30, 41, 42).

use serde_json::{Map, Value};

/// Adds a fragment to the list: members of text grow, others are set, in the item of the same index and
/// type.
pub(crate) fn merge(list: &mut Vec<Value>, fragment: &Value) {
    let Value::Object(new) = fragment else {
        list.push(fragment.clone());
        return;
    };
    let same = |item: &&mut Value| {
        let key =
            |item: &Map<String, Value>| (item.get("index").cloned(), item.get("type").cloned());
        item.as_object().is_some_and(|item| new.contains_key("index") && key(item) == key(new))
    };
    let Some(Value::Object(item)) = list.iter_mut().rfind(same) else {
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
