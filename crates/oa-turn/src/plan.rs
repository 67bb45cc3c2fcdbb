use oa_types::FinishReason;
use oa_types::wire::ToolChoice;
use serde::{Deserialize, Serialize};

/// The plan of one request: the ways in which it differs from the other requests of its turn.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StepPlan {
    /// The model. By default, the model of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The names of the tools to offer. By default, all of them. A call to any other tool is answered with "no such
    /// tool".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_tools: Option<Vec<String>>,
    /// The tools that the model may or must call. By default, the choice of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Instructions for this request alone, in addition to the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The reason to end the turn instead of sending the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<FinishReason>,
}

impl StepPlan {
    /// Returns true if a tool of this name is offered.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        self.only_tools.as_ref().is_none_or(|names| names.iter().any(|name| name == tool))
    }
}
