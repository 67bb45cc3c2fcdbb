use std::time::Duration;

use oa_tools::Tool;
use oa_types::Timeout;

/// The timeouts of tools.
///
/// Precedence: a timeout set here by tool name, then the tool's own, then the default set here.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TimeoutPolicy {
    otherwise: Option<Duration>,
    /// Sorted by name.
    by_name: Vec<(String, Option<Duration>)>,
}

impl TimeoutPolicy {
    /// Creates a policy without timeouts; the tools' own still apply.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the default timeout, for tools without another one.
    #[must_use]
    pub fn otherwise(mut self, timeout: impl Into<Timeout>) -> Self {
        self.otherwise = timeout.into().duration();
        self
    }

    /// Sets the timeout of the tool with this name. `None` means no limit, not even its own.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, timeout: impl Into<Timeout>) -> Self {
        let (name, timeout) = (name.into(), timeout.into().duration());
        match self.place(&name) {
            Ok(place) => self.by_name[place].1 = timeout,
            Err(place) => self.by_name.insert(place, (name, timeout)),
        }
        self
    }

    /// Returns the timeout of a tool called by this name.
    #[must_use]
    pub fn of(&self, name: &str, tool: &dyn Tool) -> Option<Duration> {
        match self.place(name) {
            Ok(place) => self.by_name[place].1,
            Err(_) => tool.timeout().or(self.otherwise),
        }
    }

    /// Returns the names of the tools with a timeout here.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.iter().map(|(name, _)| &**name)
    }

    pub(crate) fn has_zero(&self) -> bool {
        let by_name = self.by_name.iter().filter_map(|(_, timeout)| *timeout);
        by_name.chain(self.otherwise).any(|timeout| timeout.is_zero())
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.by_name.binary_search_by(|(other, _)| other.as_str().cmp(name))
    }
}
