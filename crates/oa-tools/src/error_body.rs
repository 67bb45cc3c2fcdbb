use serde::Serialize;
use serde_json::Value;

/// What the model reads in place of a result that there is not: `{"error", "tool", "available"?,
/// "reason"?}`.
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
    /// What went wrong.
    pub error: String,
    /// The tool that was called.
    pub tool: String,
    /// The names of the tools that there are, if the one that was called is not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<Vec<String>>,
    /// More about it: which argument is wrong, why a call was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ErrorBody {
    /// Creates a body that says this of a call of `tool`.
    #[must_use]
    pub fn new(tool: impl Into<String>, error: impl Into<String>) -> Self {
        Self { error: error.into(), tool: tool.into(), available: None, reason: None }
    }

    /// Names the tools that there are.
    #[must_use]
    pub fn with_available(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.available = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Says more about it.
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
