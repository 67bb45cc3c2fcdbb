//! The nesting of JSON values in conversations.

use serde_json::{Map, Value};

/// The maximum nesting of a value in a conversation. JSON is read to 127 levels, and the formats that store messages,
/// turns and events add some.
#[doc(hidden)]
pub const MAX_NESTING: usize = 100;

/// The maximum nesting of a value that is written as text. Writing is recursive, and takes stack for each level.
const MAX_WRITTEN: usize = 500;

/// Returns true if a value is nested at most this many levels deep.
#[doc(hidden)]
#[must_use]
pub fn is_nested_within(value: &Value, levels: usize) -> bool {
    let fits = |inner| is_nested_within(inner, levels - 1);
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(fits),
        Value::Object(members) => levels > 0 && members.values().all(fits),
        _ => true,
    }
}

/// Checks that the arguments of a call are not nested too deeply for a conversation.
///
/// # Errors
///
/// If they are, with a message for the model.
#[doc(hidden)]
pub fn check_nesting(arguments: &Map<String, Value>) -> Result<(), String> {
    if arguments.values().all(|value| is_nested_within(value, MAX_NESTING - 1)) {
        return Ok(());
    }
    Err(format!("the arguments are nested more than {MAX_NESTING} levels deep"))
}

/// Returns the value, or its JSON as a text if it is nested too deeply for a conversation. The model reads
/// the same text.
#[doc(hidden)]
#[must_use]
pub fn flattened(value: Value) -> Value {
    if is_nested_within(&value, MAX_NESTING) {
        value
    } else if is_nested_within(&value, MAX_WRITTEN) {
        value.to_string().into()
    } else {
        take_apart(value);
        format!("[a value that is nested more than {MAX_WRITTEN} levels deep]").into()
    }
}

/// Returns a value that may be an item of a list in a message. What is nested too deeply for that is the text of its
/// JSON: the value, or members of an object. The value must not be nested deeper than JSON is read.
#[doc(hidden)]
#[must_use]
pub fn shallow(value: Value) -> Value {
    let levels = MAX_NESTING - 1;
    let fitting = |value: Value, levels| {
        if is_nested_within(&value, levels) { value } else { value.to_string().into() }
    };
    match value {
        Value::Object(members) => {
            let members = members.into_iter();
            members.map(|(name, member)| (name, fitting(member, levels - 1))).collect()
        }
        value => fitting(value, levels),
    }
}

/// Drops a value without recursion.
fn take_apart(value: Value) {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => rest.extend(members.into_iter().map(|(_, inner)| inner)),
            _ => {}
        }
    }
}
