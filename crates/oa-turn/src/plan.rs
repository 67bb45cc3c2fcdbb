use oa_types::FinishReason;
use oa_types::wire::{Thinking, ToolChoice};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The plan of one request: the ways in which it differs from the other requests of its turn.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
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
    /// The amount of thinking. By default, that of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// The sampling temperature, from 0 to 2. By default, that of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// The longest answer, in tokens. By default, that of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Further members of the request. They override those of the agent, and options.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
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
