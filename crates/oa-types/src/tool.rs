use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as described to the model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name by which the model calls the tool.
    pub name: String,
    /// A description of the tool, written for the model.
    pub description: String,
    /// The JSON Schema of the arguments, an object schema.
    pub parameters: Value,
}

impl ToolSpec {
    /// Creates a tool description.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }
}
