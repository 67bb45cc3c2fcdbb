use std::collections::HashMap;
use std::fmt;
use std::slice;
use std::sync::Arc;

use oa_types::ToolSpec;

use crate::error::Error;
use crate::tool::Tool;

/// The depth down to which the tools of sub-agents are read.
const MAX_DEPTH: usize = 8;

/// Tools by name, in insertion order.
///
/// Cheap to clone; clones share the tools.
///
/// ```
/// use oa_tools::{Registry, tool};
/// use serde_json::json;
///
/// let add = || tool("add", "Add two numbers").build(|_| async { Ok(json!(0)) });
/// let mut tools = Registry::new();
/// tools.add(add())?;
/// assert_eq!(tools.add(add()).unwrap_err().to_string(), "Duplicate tool name: add");
/// assert_eq!(tools.names().collect::<Vec<_>>(), ["add"]);
/// # Ok::<(), oa_tools::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry(Arc<Inner>);

#[derive(Clone, Default)]
struct Inner {
    tools: Vec<Arc<dyn Tool>>,
    /// The names under which they were added, in the same order.
    names: Vec<String>,
    /// The index of each name, if there are too many names to compare one by one.
    places: HashMap<String, usize>,
}

impl Inner {
    /// Up to this many names, comparing each is faster than hashing.
    const FEW: usize = 12;

    fn place(&self, name: &str) -> Option<usize> {
        if self.names.len() <= Self::FEW {
            return self.names.iter().position(|other| other == name);
        }
        self.places.get(name).copied()
    }

    /// Adds the names that are missing from the index.
    fn index(&mut self) {
        if self.names.len() > Self::FEW {
            // The index is empty, or covers the first names without a gap: names are only appended, and a
            // removal clears it.
            let missing = self.names.iter().cloned().enumerate().skip(self.places.len());
            self.places.extend(missing.map(|(place, name)| (name, place)));
        }
    }
}

impl Registry {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a registry with these tools.
    ///
    /// # Errors
    ///
    /// `Config` for the first tool that fails [`Tool::check`] or has a duplicate name.
    pub fn from_tools<T: Tool + 'static>(
        tools: impl IntoIterator<Item = T>,
    ) -> Result<Self, Error> {
        let mut this = Self::new();
        for tool in tools {
            this.add(tool)?;
        }
        Ok(this)
    }

    /// Adds a tool.
    ///
    /// # Errors
    ///
    /// `Config` if it fails [`Tool::check`] or has a duplicate name; the registry is then unchanged.
    pub fn add(&mut self, tool: impl Tool + 'static) -> Result<(), Error> {
        self.add_shared(Arc::new(tool))
    }

    /// Adds a shared tool.
    ///
    /// # Errors
    ///
    /// The same as [`add`](Self::add).
    pub fn add_shared(&mut self, tool: Arc<dyn Tool>) -> Result<(), Error> {
        tool.check()?;
        let name = tool.name().to_owned();
        if self.contains(&name) {
            return Err(Error::config(format!("Duplicate tool name: {name}")));
        }
        let inner = Arc::make_mut(&mut self.0);
        inner.names.push(name);
        inner.tools.push(tool);
        inner.index();
        Ok(())
    }

    /// Removes and returns a tool.
    pub fn remove(&mut self, name: &str) -> Option<Arc<dyn Tool>> {
        let place = self.0.place(name)?;
        let inner = Arc::make_mut(&mut self.0);
        inner.names.remove(place);
        let removed = inner.tools.remove(place);
        // The places behind the removed one have changed.
        inner.places.clear();
        inner.index();
        Some(removed)
    }

    /// Returns the tool with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.place(name).map(|place| &self.0.tools[place])
    }

    /// Returns true if there is a tool with this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.place(name).is_some()
    }

    /// Returns the tools in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<dyn Tool>> {
        self.0.tools.iter()
    }

    /// Returns true if the predicate accepts a tool, or a tool of a sub-agent. Returns `None` if it accepts none of them,
    /// and a sub-agent does not list its tools.
    pub fn any(&self, is_meant: &dyn Fn(&dyn Tool) -> bool) -> Option<bool> {
        finds(&self.0.tools, is_meant, 0)
    }

    /// Returns the names in order.
    #[must_use]
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.tools.iter().map(|tool| tool.name())
    }

    /// Returns the tools as described to the model, in order.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.0.tools.iter().map(|tool| tool.spec()).collect()
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.tools.len()
    }

    /// Returns true if there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.tools.is_empty()
    }
}

impl IntoIterator for Registry {
    type Item = Arc<dyn Tool>;
    type IntoIter = std::vec::IntoIter<Arc<dyn Tool>>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).tools.into_iter()
    }
}

impl<'a> IntoIterator for &'a Registry {
    type Item = &'a Arc<dyn Tool>;
    type IntoIter = slice::Iter<'a, Arc<dyn Tool>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.tools.iter()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.names().collect::<Vec<_>>()).finish()
    }
}

fn finds(
    tools: &[Arc<dyn Tool>],
    is_meant: &dyn Fn(&dyn Tool) -> bool,
    depth: usize,
) -> Option<bool> {
    let mut found = Some(false);
    for tool in tools {
        if is_meant(tool) {
            return Some(true);
        }
        let inner = match tool.agent_tools() {
            Some(inner) if depth < MAX_DEPTH => finds(&inner, is_meant, depth + 1),
            None if !tool.is_agent() => Some(false),
            _ => None,
        };
        match inner {
            Some(true) => return inner,
            Some(false) => {}
            None => found = None,
        }
    }
    found
}
