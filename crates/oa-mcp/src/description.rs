use oa_mcp_data::{Limits, MirroredArguments, OutputSchema, Schema, cut, tool_name};
use serde_json::{Value, json};

use crate::server::McpServer;

/// The longest name of a tool on its server, in bytes.
const LONGEST_NAME: usize = 1_024;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Description {
    /// The name on the server.
    pub(crate) raw_name: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) offered: Value,
    pub(crate) checked: Value,
    pub(crate) output: Option<OutputSchema>,
    /// The arguments that are repeated in headers.
    pub(crate) mirrored: MirroredArguments,
    pub(crate) category: &'static str,
    /// A failed call may be repeated: the trusted server calls the tool idempotent.
    pub(crate) may_repeat: bool,
    pub(crate) of: Origin,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    ListResources,
    ReadResource,
    Server,
}

impl Description {
    /// Reads a tool of a list. Returns `None` if it is filtered out; an error says why it cannot be offered. `mirrors`
    /// is true if arguments are repeated in headers.
    pub(crate) fn read(
        tool: &Value,
        server: &McpServer,
        mirrors: bool,
    ) -> Result<Option<Self>, String> {
        let Some(raw_name) =
            tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
        else {
            return Err("a tool has no name".to_owned());
        };
        if !server.selection.offers(raw_name) {
            return Ok(None);
        }
        let shown = oa_redact::visible(&raw_name.chars().take(80).collect::<String>()).to_string();
        let fail = |why: String| format!("the tool {shown} is left out: {why}");
        if raw_name.len() > LONGEST_NAME {
            return Err(fail(format!("its name has more than {LONGEST_NAME} bytes")));
        }
        if tool.pointer("/execution/taskSupport").and_then(Value::as_str) == Some("required") {
            return Err(fail("it can only run as a task".to_owned()));
        }
        let Limits { description_bytes, schema_bytes, .. } = server.limits;
        let schema =
            Schema::read(tool.get("inputSchema"), server.schemas, schema_bytes).map_err(fail)?;
        // After the schema was read, which bounds it.
        let mirrored = tool.get("inputSchema").filter(|_| mirrors);
        let mirrored = mirrored.map(MirroredArguments::read).transpose().map_err(fail)?;
        let said = [tool.get("description"), tool.get("title"), tool.pointer("/annotations/title")];
        let mut said = said.into_iter().flatten().filter_map(Value::as_str);
        let description = said.find(|text| !text.trim().is_empty());
        let hints = |name: &str| {
            let hint = tool.get("annotations").and_then(|hints| hints.get(name));
            server.trusts_annotations && hint == Some(&Value::Bool(true))
        };
        Ok(Some(Self {
            name: tool_name(server.name_prefix(), server.selection.renamed(raw_name)),
            raw_name: raw_name.to_owned(),
            description: cut(description.unwrap_or_default(), description_bytes),
            offered: schema.offered,
            checked: schema.checked,
            output: OutputSchema::read(tool, schema_bytes),
            mirrored: mirrored.unwrap_or_default(),
            category: if hints("readOnlyHint") { "read" } else { "mcp" },
            may_repeat: hints("idempotentHint"),
            of: Origin::Server,
        }))
    }

    /// Returns our tools for a server's resources.
    pub(crate) fn of_resources(server: &McpServer) -> [Self; 2] {
        let made = |raw_name: &str, description: &str, schema: Value, of: Origin| Self {
            name: tool_name(server.name_prefix(), raw_name),
            raw_name: raw_name.to_owned(),
            description: format!("{description} of {}", server.name),
            offered: schema.clone(),
            checked: schema,
            output: None,
            mirrored: MirroredArguments::default(),
            category: "mcp",
            may_repeat: true,
            of,
        };
        let none = json!({ "type": "object", "properties": {} });
        let uri = json!({
            "type": "object",
            "properties": { "uri": { "type": "string", "description": "The URI of the resource" } },
            "required": ["uri"],
        });
        [
            made("list_resources", "Lists resources and templates", none, Origin::ListResources),
            made("read_resource", "Reads a resource", uri, Origin::ReadResource),
        ]
    }
}
