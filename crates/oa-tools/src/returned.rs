use serde::Serialize;
use serde_json::Value;

use crate::tool_error::ToolError;

/// The return value of a function whose type may be a `Result` by another name.
///
/// Methods of a type come before those of its traits. So [`into_result`](Self::into_result) is the method below for
/// every `Result`, whatever the signature calls it, and the one of [`PlainValue`] for everything else.
#[derive(Debug)]
pub struct Returned<T>(T);

impl<T> Returned<T> {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T, E> Returned<Result<T, E>> {
    /// Returns the value as JSON, or the error for the model.
    ///
    /// The bounds are those of the method, not of the `impl`: a type that lacks one is an error, and not taken for a
    /// plain value.
    pub fn into_result(self) -> Result<Value, ToolError>
    where
        T: Serialize,
        ToolError: From<E>,
    {
        to_value(self.0?)
    }
}

/// Implemented for every return value.
pub trait PlainValue {
    /// The type of the value.
    type Value;

    /// Returns the value as JSON.
    fn into_result(self) -> Result<Value, ToolError>
    where
        Self::Value: Serialize;
}

impl<T> PlainValue for Returned<T> {
    type Value = T;

    fn into_result(self) -> Result<Value, ToolError>
    where
        T: Serialize,
    {
        to_value(self.0)
    }
}

/// Returns the result of a tool as JSON.
///
/// # Errors
///
/// If JSON has no form for it, such as a map whose keys are lists.
pub fn to_value<T: Serialize>(result: T) -> Result<Value, ToolError> {
    serde_json::to_value(result)
        .map_err(|error| ToolError::from(error).context("the result cannot be written as JSON"))
}
