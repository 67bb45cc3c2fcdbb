use std::collections::BTreeMap;
use std::time::Duration;

use oa_tools::Tool;

/// The timeouts of tools.
///
/// Precedence: a timeout set here by tool name, then the tool's own, then the default set here.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TimeoutPolicy {
    otherwise: Option<Duration>,
    by_name: BTreeMap<String, Duration>,
}

impl TimeoutPolicy {
    /// Creates a policy without timeouts; the tools' own still apply.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the default timeout, for tools without another one.
    #[must_use]
    pub fn otherwise(mut self, timeout: Duration) -> Self {
        self.otherwise = Some(timeout);
        self
    }

    /// Sets the timeout of the tool with this name.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, timeout: Duration) -> Self {
        self.by_name.insert(name.into(), timeout);
        self
    }

    /// Returns the timeout of a tool called by this name.
    #[must_use]
    pub fn of(&self, name: &str, tool: &dyn Tool) -> Option<Duration> {
        self.by_name.get(name).copied().or_else(|| tool.timeout()).or(self.otherwise)
    }

    /// Returns the names of the tools with a timeout here.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    pub(crate) fn has_zero(&self) -> bool {
        self.by_name.values().chain(&self.otherwise).any(Duration::is_zero)
    }
}
