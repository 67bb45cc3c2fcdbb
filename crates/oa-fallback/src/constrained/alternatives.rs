//! The schema that constrains an answer.

use oa_types::ToolSpec;
use oa_types::wire::{ChatParameters, ToolChoice};
use serde_json::{Value, json};

use super::any_of::any_of;
use super::definitions::Definitions;

/// The most calls in one answer. A bound, because small models repeat themselves.
const MOST_CALLS: usize = 16;

/// Returns the response format of a request with tools: calls, an answer, or both. `None` without tools, and if the
/// type of the caller's response format is unknown.
pub(super) fn response_format(parameters: &ChatParameters, is_parallel: bool) -> Option<Value> {
    let ChatParameters { tools, tool_choice, response_format, .. } = parameters;
    if tools.is_empty() {
        return None;
    }
    let mut definitions = Definitions::default();
    let is_chosen = |tool: &&ToolSpec| match tool_choice {
        Some(ToolChoice::None) => false,
        Some(ToolChoice::Tool(name)) => tool.name == *name,
        _ => true,
    };
    let mut calls: Vec<Value> =
        tools.iter().filter(is_chosen).map(|tool| call(tool, &mut definitions)).collect();
    if is_parallel && !calls.is_empty() {
        let list = json!({
            "type": "array",
            "items": any_of(calls),
            "minItems": 1,
            "maxItems": MOST_CALLS,
        });
        calls = vec![object([("calls", list)])];
    }
    let must_call = matches!(tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    // A choice of a tool that is not offered is ignored.
    if !must_call || calls.is_empty() {
        let text = json!({ "type": "string", "minLength": 1 });
        let answer = match response_format {
            None => text,
            Some(format) => match format["type"].as_str()? {
                "json_object" => json!({ "type": "object" }),
                "json_schema" => definitions.adopt(&format["json_schema"]["schema"], "answer"),
                "text" => text,
                _ => return None,
            },
        };
        calls.push(object([("answer", answer)]));
    }
    let mut schema = any_of(calls);
    definitions.add_to(&mut schema);
    Some(json!({
        "type": "json_schema",
        "json_schema": { "name": "call_or_answer", "schema": schema, "strict": false },
    }))
}

fn call(tool: &ToolSpec, definitions: &mut Definitions) -> Value {
    let arguments = definitions.adopt_object(&tool.parameters, &tool.name);
    object([("tool", json!({ "const": tool.name })), ("arguments", arguments)])
}

/// Returns the schema of an object that has these members and no others.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let names = members.each_ref().map(|(name, _)| *name);
    let required = json!(names.as_slice());
    let properties: serde_json::Map<String, Value> =
        members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
