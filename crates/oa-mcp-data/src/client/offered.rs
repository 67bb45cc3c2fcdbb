use crate::subschemas::visit_below;
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
    with_objects(&mut schema);
    if let Value::Object(keywords) = &mut schema {
        keywords.insert("type".to_owned(), "object".into());
    }
    schema
}

/// Writes the schemas `true` and `false` of properties as objects: clients refuse the whole list of tools when one
/// property has another form.
fn with_objects(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    if let Some(Value::Object(properties)) = keywords.get_mut("properties") {
        for property in properties.values_mut() {
            match property {
                Value::Bool(true) => *property = json!({}),
                Value::Bool(false) => *property = json!({ "not": {} }),
                _ => {}
            }
        }
    }
    // The visitor never fails.
    let _ = visit_below(keywords, &mut |below| {
        with_objects(below);
        Ok(())
    });
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

#[cfg(test)]
mod tests {
    use super::describe_tool;
    use oa_tools::tool;
    use serde_json::json;

    #[test]
    fn boolean_schemas_become_objects() {
        let schema = json!({
            "type": "object",
            "properties": {
                "any": true,
                "none": false,
                "list": { "items": { "properties": { "value": true } } },
                "set": { "type": "boolean", "default": true },
            },
            "additionalProperties": false,
        });
        let told = tool("set", "Sets a value")
            .schema(schema.clone())
            .output_schema(schema)
            .build(|_| async { Ok(json!({})) });
        let listed = describe_tool(&told);
        let expected = json!({
            "type": "object",
            "properties": {
                "any": {},
                "none": { "not": {} },
                "list": { "items": { "properties": { "value": {} } } },
                "set": { "type": "boolean", "default": true },
            },
            "additionalProperties": false,
        });
        assert_eq!(listed["inputSchema"], expected);
        assert_eq!(listed["outputSchema"], expected);
    }
}
