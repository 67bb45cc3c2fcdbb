use oa_tools::Tool;
use serde_json::{Map, Value, json};

/// The key of a tool's category in its `_meta`.
const CATEGORY: &str = "open-agent/category";

/// Returns the entry of a tool in the list of a server.
#[must_use]
pub fn describe_tool(tool: &dyn Tool) -> Value {
    let mut described = json!({
        "name": tool.name(),
        "description": tool.description(),
        "inputSchema": of_object(tool.input_schema()),
    });
    if let Some(schema) = tool.output_schema() {
        described["outputSchema"] = of_object(schema);
    }
    let mut hints = Map::new();
    if tool.category() == Some("read") {
        hints.insert("readOnlyHint".to_owned(), true.into());
    }
    if tool.is_cacheable() {
        hints.insert("idempotentHint".to_owned(), true.into());
    }
    if !hints.is_empty() {
        described["annotations"] = hints.into();
    }
    if let Some(category) = tool.category() {
        described["_meta"] = json!({ CATEGORY: category });
    }
    described
}

/// Returns the schema with `"type": "object"`, which the protocol requires.
fn of_object(schema: &Value) -> Value {
    let mut schema = schema.clone();
    without_headers(&mut schema);
    if let Value::Object(keywords) = &mut schema {
        keywords.insert("type".to_owned(), "object".into());
    }
    schema
}

/// Removes requests for arguments in HTTP headers, which tools of other servers may have: this server does not read
/// them.
fn without_headers(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(without_headers),
        Value::Object(keywords) => {
            // An object here is the schema of a property with this name.
            if keywords.get("x-mcp-header").is_some_and(Value::is_string) {
                keywords.shift_remove("x-mcp-header");
            }
            keywords.values_mut().for_each(without_headers);
        }
        _ => {}
    }
}
