//! Descriptions of tools for the system prompt.

use std::collections::HashSet;

use oa_types::ToolSpec;
use serde_json::{Map, Value};

use crate::tools::Parameters;

/// Returns a list of tools that describes each argument.
pub(crate) fn list(tools: &[ToolSpec]) -> String {
    tools.iter().map(entry).collect::<Vec<_>>().join("\n\n")
}

fn entry(tool: &ToolSpec) -> String {
    let schema = Parameters(&tool.parameters);
    // Required parameters come first, in the order of the schema.
    let mut required = HashSet::new();
    let mut names: Vec<&str> = Vec::new();
    names.extend(
        schema.required().filter(|name| schema.get(name).is_some() && required.insert(*name)),
    );
    names.extend(schema.names().filter(|name| !required.contains(name)));
    let mut entry = format!("{}({})", tool.name, names.join(", "));
    if !tool.description.is_empty() {
        entry.push_str(": ");
        entry.push_str(&tool.description);
    }
    for name in names {
        let parameter = schema.get(name).unwrap_or(&Value::Null);
        let need = if required.contains(name) { "required" } else { "optional" };
        entry.push_str(&format!("\n- {name} ({}, {need})", type_of(parameter)));
        let text = |word| parameter.get(word).and_then(Value::as_str);
        if let Some(description) = text("description") {
            entry.push_str(": ");
            entry.push_str(description);
        }
        if let Some(values) = parameter.get("enum").and_then(Value::as_array) {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            entry.push_str(&format!("; one of {}", values.join(", ")));
        }
        if let Some(default) = parameter.get("default") {
            entry.push_str(&format!("; {default} if left out"));
        }
    }
    entry
}

/// Describes a type in words, or by its schema if it is too complex for that.
fn type_of(schema: &Value) -> String {
    match (schema.get("type"), schema.get("items")) {
        (Some(Value::String(word)), Some(items)) if word == "array" => {
            format!("array of {}", type_of(items))
        }
        (Some(Value::String(word)), _)
            if word != "object" || schema.get("properties").is_none() =>
        {
            word.clone()
        }
        (Some(Value::String(_)), _) => format!("object {schema}"),
        (Some(Value::Array(words)), _) => {
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        // The values show the type.
        _ if schema.get("enum").is_some() => "value".to_owned(),
        _ if schema.as_object().is_none_or(Map::is_empty) => "any value".to_owned(),
        _ => schema.to_string(),
    }
}
