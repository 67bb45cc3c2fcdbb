//! Calls as JSON objects with a name and arguments.

use oa_json::{ErrorKind, LenientReader, quoted, read_lenient};
use serde_json::{Map, Value};

use crate::bare::limits;
use crate::grammar::ParsedCall;
use crate::head::CallHead;
use crate::tools::Tools;

const NAMES: [&str; 5] = ["name", "function", "tool", "tool_name", "action"];
const ARGUMENTS: [&str; 5] = ["arguments", "parameters", "args", "input", "action_input"];

/// The members of an object that lists calls.
pub(crate) const LISTS: [&str; 2] = ["calls", "tool_calls"];

/// Reads a call, or a list of calls.
pub(crate) fn calls(text: &str, tools: &Tools) -> Vec<ParsedCall> {
    let list = |list: Vec<Value>| list.into_iter().map(|value| call(value, tools)).collect();
    match json(text) {
        Ok(Value::Array(calls)) => list(calls),
        Ok(Value::Object(mut object)) if is_list(&object) => {
            let calls = LISTS.iter().filter_map(|member| object.remove(*member)).next();
            match calls {
                Some(Value::Array(calls)) => list(calls),
                _ => Vec::new(),
            }
        }
        Ok(value) => vec![call(value, tools)],
        Err(error) => vec![ParsedCall::malformed(name_in(text).as_deref(), error)],
    }
}

/// Reads calls of the form `{"name": {..}}`, or a list of them.
pub(crate) fn keyed_calls(text: &str) -> Vec<ParsedCall> {
    let list = match json(text) {
        Ok(Value::Array(list)) => list,
        Ok(value) => vec![value],
        Err(error) => return vec![ParsedCall::malformed(None, error)],
    };
    let call = |value| match value {
        Value::Object(object) if object.len() == 1 => {
            let calls = object.into_iter();
            calls.map(|(name, input)| ParsedCall::of(&name, as_arguments(input))).collect()
        }
        _ => vec![ParsedCall::malformed(None, "the call is not an object with one name")],
    };
    list.into_iter().flat_map(call).collect()
}

/// Reads the arguments of a call whose name is known.
pub(crate) fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    as_arguments(json(text)?)
}

/// Reads JSON, or text that deviates from it without ambiguity.
fn json(text: &str) -> Result<Value, String> {
    // Unlike `from_str`, `parse` is compiled once, in `serde_json`, which keeps programs smaller.
    match text.parse() {
        Ok(value) => unambiguous(value, text),
        Err(strict) => read_lenient(text, limits())
            .map_err(|error| format!("the call is not valid JSON: {error} ({strict})")),
    }
}

/// Refuses a value with a repeated name, of which `serde_json` takes the last.
fn unambiguous(value: Value, text: &str) -> Result<Value, String> {
    match read_lenient(text, limits()) {
        Err(error) if error.kind() == ErrorKind::Duplicate => {
            Err(format!("the call is ambiguous: {error}"))
        }
        _ => Ok(value),
    }
}

fn call(value: Value, tools: &Tools) -> ParsedCall {
    let Value::Object(mut object) = value else {
        return ParsedCall::malformed(None, "the call is not a JSON object");
    };
    // `{"type": "function", "function": {"name": .., "arguments": ..}}`
    if let Some(Value::Object(inner)) = object.get_mut("function") {
        object = std::mem::take(inner);
    }
    let mut names = NAMES.iter().filter_map(|name| object.get(*name)?.as_str());
    let name = match (names.next(), names.next()) {
        (Some(name), None) if !name.trim().is_empty() => name.trim().to_owned(),
        (Some(_), Some(_)) => return ParsedCall::malformed(None, "the call has two names"),
        _ => return ParsedCall::malformed(None, "the call has no name"),
    };
    let mut given = ARGUMENTS.iter().filter_map(|member| object.remove(*member));
    let (given, second) = (given.next(), given.next());
    // In `{"name": "add", "a": 1}` it is not certain whether `a` is an argument. Beside arguments, it is one that a
    // brace has left out if the tool has such a parameter; otherwise a remark. An id is an argument only where the tool
    // has such a parameter and no arguments are given.
    let parameters = tools.schema(&name);
    let is_parameter = |key: &str| parameters.is_some_and(|of| of.has(key));
    let is_lost = |key: &&String| match &given {
        Some(_) => !is_own(key) && is_parameter(key),
        None => !is_own(key) || is_parameter(key) && !NAMES.contains(&key.as_str()),
    };
    let input = match (object.keys().find(is_lost), given, second) {
        (_, Some(_), Some(_)) => Err("the call has arguments twice".to_owned()),
        (Some(lost), ..) => Err(format!("{} is outside `arguments`", quoted(lost))),
        (None, Some(input), None) => as_arguments(input),
        (None, None, _) => Ok(Map::new()),
    };
    ParsedCall::of(&name, input)
}

/// Returns true for a list of calls: `{"calls": [..]}`.
fn is_list(object: &Map<String, Value>) -> bool {
    LISTS.iter().any(|member| object.get(*member).is_some_and(Value::is_array))
        && !NAMES.iter().any(|name| object.contains_key(*name))
}

/// Returns true for members of a call that are not arguments.
fn is_own(member: &str) -> bool {
    NAMES.contains(&member)
        || ["id", "tool_call_id", "type", "thought", "description"].contains(&member)
}

fn as_arguments(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        // Servers write arguments as a string of JSON, and models have seen that.
        Value::String(text) => match text.parse() {
            Ok(value @ Value::Object(_)) => as_arguments(unambiguous(value, &text)?),
            _ => Err(format!("the arguments are text, not a JSON object: {}", quoted(&text))),
        },
        _ => Err("the arguments are not a JSON object".to_owned()),
    }
}

/// Returns the name in an unreadable call, if it is complete and not nested.
fn name_in(text: &str) -> Option<String> {
    let names = ["\"name\"", "'name'", "\"tool\""];
    let at = names.iter().find_map(|name| text.find(name))?;
    if text[..at].matches('{').count() != 1 {
        return None;
    }
    let mut reader = LenientReader::with_limits(&text[at..], limits());
    reader.name().ok()?;
    if !reader.take(':') || !reader.rest().starts_with(['"', '\'']) {
        return None;
    }
    let name = reader.name().ok()??;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!name.is_empty() && name.len() <= CallHead::NAME && name.chars().all(is_name)).then_some(name)
}
