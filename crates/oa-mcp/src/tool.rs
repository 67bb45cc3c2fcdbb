use std::sync::Arc;

use oa_tools::{ArgumentError, Tool, ToolContext, ToolError, ToolFuture, check_arguments};
use serde_json::Value;

use crate::connection::Connection;
use crate::error::ErrorKind;
use crate::limits::Limits;
use crate::link::cut;
use crate::name::tool_name;
use crate::result;
use crate::schema::Schema;
use crate::server::McpServer;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Description {
    /// The name as the server says it.
    pub(crate) raw_name: String,
    pub(crate) name: String,
    description: String,
    offered: Value,
    checked: Value,
    category: &'static str,
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

/// A tool of a server, which an agent uses like any other.
pub(crate) struct McpTool {
    pub(crate) description: Arc<Description>,
    pub(crate) connection: Arc<Connection>,
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.description.name
    }

    fn description(&self) -> &str {
        &self.description.description
    }

    fn input_schema(&self) -> &Value {
        &self.description.offered
    }

    fn prepare(&self, input: Value) -> Result<Value, ArgumentError> {
        // The form for the model server may allow more or less than the server of the tool does.
        check_arguments(&self.description.checked, input)
    }

    fn category(&self) -> Option<&str> {
        Some(self.description.category)
    }

    fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let called = self.connection.call(&self.description.raw_name, input, &cx).await;
            match called {
                Ok(answer) => result::read(&answer, &cx, self.connection.secrets()),
                Err(error) => {
                    let message = match (error.kind(), error.code()) {
                        (ErrorKind::Rejected, Some(-32602)) => format!("wrong arguments: {error}"),
                        (ErrorKind::Rejected, Some(code)) => format!("{error} (code {code})"),
                        _ => format!("{}: {error}", self.connection.name()),
                    };
                    // A call that may have run is not repeated by a policy for retries.
                    Err(ToolError::new(message).retryable(false))
                }
            }
        })
    }
}
