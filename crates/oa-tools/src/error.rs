use std::error::Error as StdError;
use std::fmt;

use crate::arguments::ArgumentError;
use crate::tool_error::ToolError;

/// The category of an error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A tool that cannot be offered: invalid name or schema, or a duplicate name.
    Config,
    /// Arguments that do not match the tool's schema.
    InvalidInput,
    /// The tool returned an error.
    Tool,
}

/// An error from setting up tools, or from running one directly.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
}

impl Error {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into() }))
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// The text is not shortened, because the model reads it.
    pub(crate) fn arguments(tool: &str, error: &ArgumentError) -> Self {
        let message = format!("invalid arguments for the tool {tool}: {error}");
        Self::new(ErrorKind::InvalidInput, message)
    }

    pub(crate) fn tool(error: &ToolError) -> Self {
        Self::new(ErrorKind::Tool, error.to_string())
    }

    /// Returns the category of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, message } = &*self.0;
        f.debug_struct("Error").field("message", message).field("kind", kind).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for Error {}
