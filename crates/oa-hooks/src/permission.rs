use oa_types::{History, ToolSpec};
use serde_json::Value;

/// A decision about a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Permission {
    /// The call runs.
    Allow,
    /// The call runs with this input instead. Defaults are filled in, and the input must match the tool's
    /// schema and pass the rules that deny calls.
    AllowWith(Value),
    /// The call does not run; the model reads this reason.
    Deny(String),
    /// There is no decision yet. The turn pauses until one is made. The turn of a sub-agent that runs as a tool
    /// (`AgentTool`) cannot pause: it ends as incomplete.
    Later,
}

impl Permission {
    /// Creates a denial with a reason for the model.
    #[must_use]
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny(reason.into())
    }
}

/// A call that needs permission.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The tool's name.
    pub tool_name: String,
    /// The input that would run, with defaults filled in.
    pub tool_input: Value,
    /// The call id.
    pub tool_use_id: String,
    /// The tool's category, such as `read`.
    pub category: Option<String>,
    /// The tool as it is described to the model, if it is known. Servers can change their tools: an answer for later calls
    /// must be forgotten when the description or the schema differs.
    pub tool: Option<ToolSpec>,
    /// The conversation, ending with the assistant message that contains the call.
    pub history: History,
    /// The names of the sub-agents that led to the call, outermost first. Empty if the top-level agent makes the call.
    pub agents: Vec<String>,
}

impl PermissionRequest {
    /// Creates a request for one call.
    #[must_use]
    pub fn new(
        tool_name: impl Into<String>,
        tool_input: Value,
        tool_use_id: impl Into<String>,
        history: impl Into<History>,
    ) -> Self {
        Self {
            tool_name: tool_name.into(),
            tool_input,
            tool_use_id: tool_use_id.into(),
            category: None,
            tool: None,
            history: history.into(),
            agents: Vec::new(),
        }
    }

    /// Sets the names of the sub-agents that led to the call, outermost first.
    #[must_use]
    pub fn with_agents(mut self, agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.agents = agents.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the description of the tool.
    #[must_use]
    pub fn with_tool(mut self, tool: Option<ToolSpec>) -> Self {
        self.tool = tool;
        self
    }

    /// Sets the tool's category.
    #[must_use]
    pub fn with_category(mut self, category: Option<impl Into<String>>) -> Self {
        self.category = category.map(Into::into);
        self
    }
}
