use oa_types::{ToolUseBlock, ToolUseError};
use serde_json::{Map, Value};

/// An item that a [`Scanner`](crate::Scanner) found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scanned<'a> {
    /// A valid call.
    Call(TextCall),
    /// A call that is recognizable but cannot be run.
    Malformed(MalformedCall),
    /// Text for the user.
    Text(&'a str),
}

/// A call that a model wrote as text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TextCall {
    /// The tool's name. The tool need not exist.
    pub name: String,
    /// The arguments.
    pub input: Map<String, Value>,
    /// The number of bytes of text before the call.
    pub offset: usize,
}

impl TextCall {
    /// Returns the call as a block with this id.
    #[must_use]
    pub fn into_tool_use(self, id: impl Into<String>) -> ToolUseBlock {
        ToolUseBlock::new(id, self.name, Value::Object(self.input))
    }
}

/// A call that cannot be run, because its meaning is not certain.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MalformedCall {
    /// The tool's name, if it is known.
    pub name: Option<String>,
    /// The problem, in words for the model.
    pub error: String,
    /// The text of the call, marks included: the first 4 KiB.
    pub raw: String,
    /// The number of bytes of text before the call.
    pub offset: usize,
}

impl MalformedCall {
    /// Returns the call as a block with this id.
    #[must_use]
    pub fn into_tool_use_error(self, id: impl Into<String>) -> ToolUseError {
        let mut block = ToolUseError::new(self.error, self.raw);
        (block.id, block.name) = (Some(id.into()), self.name);
        block
    }
}
