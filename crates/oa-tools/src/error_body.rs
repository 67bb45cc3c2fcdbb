use serde::Serialize;
use serde_json::Value;

/// The JSON that the model receives in place of a tool result: `{"error", "tool", "available"?, "reason"?}`.
///
/// ```
/// use oa_tools::ErrorBody;
///
/// let body = ErrorBody::new("ad", "there is no such tool").with_available(["add", "sub"]);
/// assert_eq!(
///     body.to_value().to_string(),
///     r#"{"error":"there is no such tool","tool":"ad","available":["add","sub"]}"#
/// );
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ErrorBody {
    /// The error message.
    pub error: String,
    /// The called tool.
    pub tool: String,
    /// The names of the available tools, if the called one is not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<Vec<String>>,
    /// Details: the invalid argument, or the reason for a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ErrorBody {
    /// Creates a body with this error for a call to `tool`.
    #[must_use]
    pub fn new(tool: impl Into<String>, error: impl Into<String>) -> Self {
        Self { error: error.into(), tool: tool.into(), available: None, reason: None }
    }

    /// Sets the names of the available tools.
    #[must_use]
    pub fn with_available(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.available = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the details.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Returns the body as JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("texts always serialize")
    }
}
