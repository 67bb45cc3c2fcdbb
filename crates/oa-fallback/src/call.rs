use oa_types::{ToolUseBlock, ToolUseError};
use serde_json::{Map, Value};

/// What an answer holds, piece by piece.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scanned<'a> {
    /// A call that can be run.
    Call(Call),
    /// What was plainly meant as a call, and is none.
    Malformed(MalformedCall),
    /// Text for the user.
    Text(&'a str),
}

/// A call that a model wrote as text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The tool's name; whether there is such a tool was not asked.
    pub name: String,
    /// The arguments.
    pub input: Map<String, Value>,
    /// How many bytes of text came before it.
    pub place: usize,
}

impl Call {
    /// Returns the call as a block, under an id that is the caller's to make up.
    #[must_use]
    pub fn into_tool_use(self, id: impl Into<String>) -> ToolUseBlock {
        ToolUseBlock::new(id, self.name, Value::Object(self.input))
    }
}

/// A call that cannot be run, because it is not certain what was meant.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MalformedCall {
    /// The tool's name, if it can be told.
    pub name: Option<String>,
    /// What is wrong with it, in words for the model.
    pub error: String,
    /// What the model wrote, marks and all: the first 4 KiB.
    pub raw: String,
    /// How many bytes of text came before it.
    pub place: usize,
}

impl MalformedCall {
    /// Returns the call as a block, under an id that is the caller's to make up.
    #[must_use]
    pub fn into_tool_use_error(self, id: impl Into<String>) -> ToolUseError {
        let mut block = ToolUseError::new(self.error, self.raw);
        (block.id, block.name) = (Some(id.into()), self.name);
        block
    }
}
