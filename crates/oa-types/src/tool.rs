use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a model is told about a tool.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name that the model calls it by.
    pub name: String,
    /// What it does, in words for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object schema.
    pub parameters: Value,
}

impl ToolSpec {
    /// Describes a tool.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }
}
