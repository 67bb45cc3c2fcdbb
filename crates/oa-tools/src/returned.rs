use serde::Serialize;
use serde_json::Value;

use crate::tool_error::ToolError;
use crate::typed::to_value;

/// The return value of a function whose type may be an alias of `Result`.
///
/// Inherent methods take precedence over trait methods. So [`into_result`](Self::into_result) is the inherent one for
/// every `Result`, whatever the signature calls it, and the one of [`PlainValue`] for every other type.
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
    /// The bounds are on the method, not on the `impl`: a type that does not satisfy them is a compile error and is
    /// not mistaken for a plain value.
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
