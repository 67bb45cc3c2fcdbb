//! Descriptions of tools for the system prompt.

use std::collections::HashSet;

use oa_types::ToolSpec;
use serde_json::Value;

use crate::schema::Schema;
use crate::tools::Parameters;

/// Returns a list of tools that describes each argument.
pub(crate) fn list(tools: &[ToolSpec]) -> String {
    tools.iter().map(entry).collect::<Vec<_>>().join("\n\n")
}

fn entry(tool: &ToolSpec) -> String {
    let parameters = Parameters(&tool.parameters);
    let whole = parameters.whole();
    let members = whole.members();
    // Required parameters come first, in the order of the schema.
    let mut required = HashSet::new();
    let mut known = HashSet::new();
    let mut names: Vec<&str> = Vec::new();
    names.extend(members.required().filter(|name| members.has(name) && required.insert(*name)));
    names.extend(members.names().filter(|name| !required.contains(name) && known.insert(*name)));
    let mut entry = format!("{}({})", tool.name, names.join(", "));
    if !tool.description.is_empty() {
        entry.push_str(": ");
        entry.push_str(&tool.description);
    }
    let own: HashSet<&str> = members.own_names().collect();
    for name in names.into_iter().filter(|name| own.contains(name)) {
        let Some(parameter) = members.get(name) else { continue };
        let need = if required.contains(name) { "required" } else { "optional" };
        entry.push_str(&format!("\n- {name} ({}, {need})", type_of(parameter, DEPTH)));
        let text = |word| parameter.word(word).and_then(Value::as_str);
        if let Some(description) = text("description") {
            entry.push_str(": ");
            entry.push_str(description);
        }
        if let Some(values) = parameter.word("enum").and_then(Value::as_array) {
            entry.push_str(&format!("; one of {}", listed(values)));
        }
        if let Some(default) = parameter.word("default") {
            entry.push_str(&format!("; {default} if left out"));
        }
    }
    // Which members go together.
    let alternatives =
        |layer: &'_ Value| layer.get("anyOf").or_else(|| layer.get("oneOf")).cloned();
    for alternatives in whole.layers().into_iter().filter_map(alternatives) {
        entry.push_str(&format!("\n- as in one of {alternatives}"));
    }
    // What the schemas above refer to.
    if entry.contains(r#""$ref":"#) {
        for word in ["$defs", "definitions"] {
            if let Some(definitions) = tool.parameters.get(word) {
                entry.push_str(&format!("\n- {word}: {definitions}"));
            }
        }
    }
    entry
}

/// Describes a type in words, or by its schema if it is too complex for that.
fn type_of(schema: Schema<'_>, depth: usize) -> String {
    let named = schema.named();
    let own = named.own;
    let Some(word) = own.get("type").filter(|_| depth > 0) else {
        return match own.as_object() {
            // The values show the type.
            Some(_) if own.get("enum").is_some() => "value".to_owned(),
            Some(keywords) if !keywords.is_empty() => own.to_string(),
            _ => "any value".to_owned(),
        };
    };
    match word {
        Value::String(word) => match (&**word, own.get("items")) {
            ("array", Some(items)) if !items.is_array() && own.get("prefixItems").is_none() => {
                let item = named.items().next().flatten().unwrap_or(named);
                let values = item.word("enum").and_then(Value::as_array);
                let of = values.map(|values| format!("one of {}", listed(values)));
                format!("array of {}", of.unwrap_or_else(|| type_of(item, depth - 1)))
            }
            ("array", _) if own.get("prefixItems").or_else(|| own.get("items")).is_some() => {
                format!("array {own}")
            }
            ("object", _)
                if own.get("properties").is_some()
                    || own.get("additionalProperties").is_some_and(Value::is_object) =>
            {
                format!("object {own}")
            }
            (word, _) => word.to_owned(),
        },
        Value::Array(words) => {
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => own.to_string(),
    }
}

fn listed(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

/// The depth to which lists of lists are described in words.
const DEPTH: usize = 4;
