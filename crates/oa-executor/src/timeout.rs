use std::collections::BTreeMap;
use std::time::Duration;

use oa_tools::Tool;

/// How long one run of a tool may take.
///
/// What is set here for a tool by name counts before what the tool says itself, and that before the
/// rest's.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TimeoutPolicy {
    otherwise: Option<Duration>,
    by_name: BTreeMap<String, Duration>,
}

impl TimeoutPolicy {
    /// Creates a policy without limits of its own: tools' own limits hold.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Limits tools of which nothing else is known.
    #[must_use]
    pub fn otherwise(mut self, timeout: Duration) -> Self {
        self.otherwise = Some(timeout);
        self
    }

    /// Limits the tool of this name.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, timeout: Duration) -> Self {
        self.by_name.insert(name.into(), timeout);
        self
    }

    /// Returns what holds for a tool that was called by this name.
    #[must_use]
    pub fn of(&self, name: &str, tool: &dyn Tool) -> Option<Duration> {
        self.by_name.get(name).copied().or_else(|| tool.timeout()).or(self.otherwise)
    }

    pub(crate) fn has_zero(&self) -> bool {
        self.by_name.values().chain(&self.otherwise).any(Duration::is_zero)
    }
}
