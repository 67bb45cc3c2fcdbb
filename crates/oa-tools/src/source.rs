use std::fmt;
use std::sync::Arc;

use crate::registry::Registry;
use crate::tool::Tool;

/// A source of tools that may change while an agent runs, such as another program.
///
/// The agent reads it before each request, so a change never falls between a call and its result.
///
/// ```
/// use std::sync::Arc;
/// use oa_tools::{Registry, SourcedTools, Tool, ToolSource, tool};
/// use serde_json::json;
///
/// struct Weekdays;
///
/// impl ToolSource for Weekdays {
///     fn revision(&self) -> u64 {
///         7 // changes with the list
///     }
///
///     fn tools(&self) -> Vec<Arc<dyn Tool>> {
///         vec![Arc::new(tool("today", "Tells the day").build(|_| async { Ok(json!("Sunday")) }))]
///     }
/// }
///
/// let (mut registry, mut sourced) = (Registry::new(), SourcedTools::new(Weekdays));
/// assert!(sourced.is_stale());
/// sourced.refresh(&mut registry);
/// assert!(registry.contains("today") && !sourced.is_stale());
/// ```
pub trait ToolSource: Send + Sync {
    /// Returns the revision of the list, a number that changes whenever the list changes. Called often, so it must be
    /// cheap.
    fn revision(&self) -> u64;

    /// Returns the current tools.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
}

/// The tools of a [`ToolSource`] within a registry of other tools.
#[derive(Clone)]
pub struct SourcedTools {
    source: Arc<dyn ToolSource>,
    /// The revision of the tools in the registry.
    revision: Option<u64>,
    /// Their names.
    names: Vec<String>,
}

impl SourcedTools {
    /// Creates an entry for a source whose tools are not in a registry yet.
    #[must_use]
    pub fn new(source: impl ToolSource + 'static) -> Self {
        Self { source: Arc::new(source), revision: None, names: Vec::new() }
    }

    /// Returns true if the source has changed since the last [`refresh`](Self::refresh).
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.revision != Some(self.source.revision())
    }

    /// Records that the registry was rebuilt without these tools.
    pub fn forget(&mut self) {
        self.revision = None;
        self.names.clear();
    }

    /// Replaces the source's tools in the registry with its current ones. Tools from elsewhere stay. A tool of the
    /// source is omitted if its name is taken by one of those, or if it [cannot be offered](Tool::check).
    pub fn refresh(&mut self, registry: &mut Registry) {
        // Before the tools: a change between the two is seen the next time.
        self.revision = Some(self.source.revision());
        for name in self.names.drain(..) {
            registry.remove(&name);
        }
        for tool in self.source.tools() {
            let name = tool.name().to_owned();
            // Only names that were added here are removed the next time.
            if registry.add_shared(tool).is_ok() {
                self.names.push(name);
            }
        }
    }
}

impl fmt::Debug for SourcedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourcedTools")
            .field("revision", &self.revision)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;
    use crate::builder::tool;

    type List = Mutex<(u64, Vec<&'static str>)>;

    struct Source(Arc<List>);

    impl ToolSource for Source {
        fn revision(&self) -> u64 {
            self.0.lock().unwrap().0
        }

        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            let named = |name: &&str| -> Arc<dyn Tool> {
                Arc::new(tool(*name, "A tool").build(|_| async { Ok(json!(null)) }))
            };
            self.0.lock().unwrap().1.iter().map(named).collect()
        }
    }

    #[test]
    fn refresh_replaces_only_sourced_tools() {
        let list = Arc::new(Mutex::new((1, vec!["a", "own", "b"])));
        let mut registry = Registry::new();
        registry.add(tool("own", "Mine").build(|_| async { Ok(json!(null)) })).unwrap();
        let mut sourced = SourcedTools::new(Source(Arc::clone(&list)));
        let names = |registry: &Registry| registry.names().map(str::to_owned).collect::<Vec<_>>();
        sourced.refresh(&mut registry);
        assert_eq!(names(&registry), ["own", "a", "b"]);
        assert_eq!(registry.get("own").unwrap().description(), "Mine");
        assert!(!sourced.is_stale());

        *list.lock().unwrap() = (2, vec!["b", "c", "not a name"]);
        assert!(sourced.is_stale());
        sourced.refresh(&mut registry);
        assert_eq!(names(&registry), ["own", "b", "c"]);

        // Somebody has replaced all tools.
        let mut registry = Registry::new();
        sourced.forget();
        assert!(sourced.is_stale());
        sourced.refresh(&mut registry);
        assert_eq!(names(&registry), ["b", "c"]);
    }
}
