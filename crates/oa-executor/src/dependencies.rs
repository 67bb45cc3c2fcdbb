use std::collections::{HashMap, HashSet};

use oa_types::Error;

/// Dependencies between the calls of a batch, by id. Always acyclic: a dependency that would close a cycle is
/// rejected.
///
/// ```
/// use oa_executor::Dependencies;
///
/// let dependencies = Dependencies::new().run_after("send", "write")?.needs("log", "send")?;
/// let error = dependencies.run_after("write", "log").unwrap_err();
/// assert_eq!(error.to_string(), "call write cannot wait for log, which already waits for it");
/// # Ok::<(), oa_executor::Error>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Dependencies(HashMap<String, Vec<Dependency>>);

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Dependency {
    pub(crate) on: String,
    /// True if the other call must succeed.
    pub(crate) needs_success: bool,
}

impl Dependencies {
    /// Creates an empty set of dependencies.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a call wait until another has ended, with any outcome.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is the same call, or the other already waits for this one.
    pub fn run_after(self, call: &str, other: &str) -> Result<Self, Error> {
        self.add(call, other, false)
    }

    /// Makes a call wait until another has ended, and run only if that succeeded.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is the same call, or the other already waits for this one.
    pub fn needs(self, call: &str, other: &str) -> Result<Self, Error> {
        self.add(call, other, true)
    }

    fn add(mut self, call: &str, other: &str, needs_success: bool) -> Result<Self, Error> {
        if self.waits(other, call) {
            let message = match call == other {
                true => format!("call {call} cannot wait for itself"),
                false => format!("call {call} cannot wait for {other}, which already waits for it"),
            };
            return Err(Error::invalid_input(message));
        }
        let dependency = Dependency { on: other.to_owned(), needs_success };
        self.0.entry(call.to_owned()).or_default().push(dependency);
        Ok(self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn of(&self, call: &str) -> &[Dependency] {
        self.0.get(call).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns true if a call is `other`, or waits for it directly or indirectly.
    fn waits(&self, call: &str, other: &str) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![call];
        while let Some(call) = open.pop() {
            if call == other {
                return true;
            }
            if seen.insert(call) {
                open.extend(self.of(call).iter().map(|dependency| &*dependency.on));
            }
        }
        false
    }
}
