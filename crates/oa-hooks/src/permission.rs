use oa_types::History;
use serde_json::Value;

/// What may become of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Permission {
    /// It runs.
    Allow,
    /// It runs, with this input in place of its own. Defaults are filled in, and the input is held to the tool's schema
    /// and to the rules that deny calls.
    AllowWith(Value),
    /// It does not run; the model reads why.
    Deny(String),
    /// Nobody can say yet. The turn ends, and goes on when somebody has.
    Later,
}

impl Permission {
    /// Creates a denial with its reason, for the model.
    #[must_use]
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny(reason.into())
    }
}

/// A call that waits for permission.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The tool's name.
    pub tool_name: String,
    /// The input that would run, with defaults filled in.
    pub tool_input: Value,
    /// The call's id.
    pub tool_use_id: String,
    /// What the tool says it does: `read`, say.
    pub category: Option<String>,
    /// The conversation; it ends with the model's message that holds the call.
    pub history: History,
}

impl PermissionRequest {
    /// Creates a request about one call.
    #[must_use]
    pub fn new(
        tool_name: impl Into<String>,
        tool_input: Value,
        tool_use_id: impl Into<String>,
        history: impl Into<History>,
    ) -> Self {
        Self {
            tool_name: tool_name.into(),
            tool_input,
            tool_use_id: tool_use_id.into(),
            category: None,
            history: history.into(),
        }
    }

    /// Says what the tool does.
    #[must_use]
    pub fn with_category(mut self, category: Option<impl Into<String>>) -> Self {
        self.category = category.map(Into::into);
        self
    }
}
