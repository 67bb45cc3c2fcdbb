use serde_json::Value;

use crate::limits::Limits;
use crate::link::cut;
use crate::name::tool_name;
use crate::schema::Schema;
use crate::server::McpServer;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Description {
    /// The name as the server says it.
    pub(crate) raw_name: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) offered: Value,
    pub(crate) checked: Value,
    pub(crate) category: &'static str,
}

impl Description {
    /// Reads a tool of a list. `None` if it is not wanted; an error says why it cannot be offered.
    pub(crate) fn read(tool: &Value, server: &McpServer) -> Result<Option<Self>, String> {
        let Some(raw_name) =
            tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
        else {
            return Err("a tool has no name".to_owned());
        };
        if !server.offers(raw_name) {
            return Ok(None);
        }
        let shown = oa_redact::visible(&raw_name.chars().take(80).collect::<String>()).to_string();
        let fail = |why: String| format!("the tool {shown} is left out: {why}");
        if tool.pointer("/execution/taskSupport").and_then(Value::as_str) == Some("required") {
            return Err(fail("it runs as a task only".to_owned()));
        }
        let Limits { description_bytes, schema_bytes, .. } = server.limits;
        let schema =
            Schema::read(tool.get("inputSchema"), server.schemas, schema_bytes).map_err(fail)?;
        let said = [tool.get("description"), tool.get("title"), tool.pointer("/annotations/title")];
        let mut said = said.into_iter().flatten().filter_map(Value::as_str);
        let description = said.find(|text| !text.trim().is_empty());
        let reads = tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true));
        let prefix = server.prefix.as_deref().unwrap_or(&server.name);
        Ok(Some(Self {
            name: tool_name(prefix, raw_name),
            raw_name: raw_name.to_owned(),
            description: cut(description.unwrap_or_default(), description_bytes),
            offered: schema.offered,
            checked: schema.checked,
            category: if reads && server.trusts_annotations { "read" } else { "mcp" },
        }))
    }
}
