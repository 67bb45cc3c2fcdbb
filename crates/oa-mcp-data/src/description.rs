use serde_json::{Value, json};

use crate::schema::is_nothing;
use crate::{
    Limits, MirroredArguments, OutputSchema, Schema, SchemaForm, ToolSelection, cut, tool_name,
};

/// The longest name of a tool on its server, in bytes.
const LONGEST_NAME: usize = 1_024;

/// A tool as its server describes it, and as it is offered to a model.
///
/// ```
/// use oa_mcp_data::{Limits, SchemaForm, ToolDescription, ToolRules, ToolSelection};
/// use serde_json::json;
///
/// let (selection, limits) = (ToolSelection::default(), Limits::default());
/// let rules = ToolRules {
///     prefix: "files",
///     selection: &selection,
///     schemas: SchemaForm::Repaired,
///     limits: &limits,
///     trusts_annotations: false,
///     mirrors: false,
/// };
/// let tool = json!({ "name": "read.file", "title": "Reads a file", "inputSchema": {} });
/// let tool = ToolDescription::read(&tool, &rules)?.expect("nothing is filtered out");
/// assert_eq!((&*tool.description, tool.category), ("Reads a file", "mcp"));
/// assert!(tool.name.starts_with("files__read_file_"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolDescription {
    /// The name on the server.
    pub raw_name: String,
    /// The name for the model.
    pub name: String,
    /// The description, bounded; empty if there is none.
    pub description: String,
    /// The input schema for the model server.
    pub offered: Value,
    /// The input schema by which arguments are checked.
    pub checked: Value,
    /// The schema of the structured content.
    pub output: Option<OutputSchema>,
    /// The arguments that are repeated in headers.
    pub mirrored: MirroredArguments,
    /// The category for permissions: `mcp`, or `read` if a trusted server calls the tool read-only.
    pub category: &'static str,
    /// A failed call may be repeated: the trusted server calls the tool idempotent.
    pub may_repeat: bool,
    /// The tool's implementation.
    pub of: ToolOrigin,
    /// The part of an invalid description that is read as something else, for a warning.
    pub repair: Option<String>,
}

/// The implementation of a [`ToolDescription`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a tool is the server's or one of the two for resources"
)]
pub enum ToolOrigin {
    /// The tool that lists the server's resources.
    ListResources,
    /// The tool that reads a resource.
    ReadResource,
    /// The server.
    Server,
}

/// The rules by which a server's tools are offered.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "it is built by its fields")]
pub struct ToolRules<'a> {
    /// The prefix of names.
    pub prefix: &'a str,
    /// The tools that are offered, and their new names.
    pub selection: &'a ToolSelection,
    /// The form of schemas for the model server.
    pub schemas: SchemaForm,
    /// The bounds of descriptions and schemas.
    pub limits: &'a Limits,
    /// The annotations of tools are trusted.
    pub trusts_annotations: bool,
    /// Arguments are repeated in headers.
    pub mirrors: bool,
}

impl ToolDescription {
    /// Reads a tool of a list. Returns `None` if it is filtered out.
    ///
    /// # Errors
    ///
    /// The reason why the tool cannot be offered.
    pub fn read(tool: &Value, rules: &ToolRules<'_>) -> Result<Option<Self>, String> {
        let Some(raw_name) =
            tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
        else {
            return Err("a tool has no name".to_owned());
        };
        if !rules.selection.offers(raw_name) {
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
        let Limits { description_bytes, schema_bytes, .. } = *rules.limits;
        let schema =
            Schema::read(tool.get("inputSchema"), rules.schemas, schema_bytes).map_err(fail)?;
        // After the schema was read, which bounds it.
        let mirrored = tool.get("inputSchema").filter(|_| rules.mirrors);
        let mirrored = mirrored.map(MirroredArguments::read).transpose().map_err(fail)?;
        let said = [tool.get("description"), tool.get("title"), tool.pointer("/annotations/title")];
        let mut said = said.into_iter().flatten().filter_map(Value::as_str);
        let description = said.find(|text| !text.trim().is_empty());
        let hints = |name: &str| {
            let hint = tool.get("annotations").and_then(|hints| hints.get(name));
            rules.trusts_annotations && hint == Some(&Value::Bool(true))
        };
        Ok(Some(Self {
            name: tool_name(rules.prefix, rules.selection.renamed(raw_name)),
            raw_name: raw_name.to_owned(),
            description: cut(description.unwrap_or_default(), description_bytes),
            offered: schema.offered,
            checked: schema.checked,
            output: OutputSchema::read(tool, schema_bytes),
            mirrored: mirrored.unwrap_or_default(),
            category: if hints("readOnlyHint") { "read" } else { "mcp" },
            may_repeat: hints("idempotentHint"),
            of: ToolOrigin::Server,
            // Servers without parameters, and those whose library for schemas does not fit.
            repair: tool.get("inputSchema").is_none_or(is_nothing).then(|| {
                format!("the tool {shown} has no input schema: it is offered without parameters")
            }),
        }))
    }

    /// Returns the two tools for the resources of a server, by its name.
    #[must_use]
    pub fn of_resources(server: &str, prefix: &str) -> [Self; 2] {
        let made = |raw_name: &str, description: &str, schema: Value, of: ToolOrigin| Self {
            name: tool_name(prefix, raw_name),
            raw_name: raw_name.to_owned(),
            description: format!("{description} of {server}"),
            offered: schema.clone(),
            checked: schema,
            output: None,
            mirrored: MirroredArguments::default(),
            category: "mcp",
            may_repeat: true,
            of,
            repair: None,
        };
        let none = json!({ "type": "object", "properties": {} });
        let uri = json!({
            "type": "object",
            "properties": { "uri": { "type": "string", "description": "The URI of the resource" } },
            "required": ["uri"],
        });
        [
            made(
                "list_resources",
                "Lists resources and templates",
                none,
                ToolOrigin::ListResources,
            ),
            made("read_resource", "Reads a resource", uri, ToolOrigin::ReadResource),
        ]
    }
}
