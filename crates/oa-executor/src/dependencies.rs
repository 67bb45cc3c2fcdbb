use std::collections::{BTreeMap, BTreeSet};

use crate::error::Error;

/// Which calls of a batch wait for which, by their ids. Never a circle: adding the dependency that would
/// close one is refused.
///
/// ```
/// use oa_executor::Dependencies;
///
/// let dependencies = Dependencies::new().run_after("send", "write")?.needs("log", "send")?;
/// let error = dependencies.run_after("write", "log").unwrap_err();
/// assert_eq!(error.to_string(), "the call write cannot wait for log, which waits for it");
/// # Ok::<(), oa_executor::Error>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Dependencies(BTreeMap<String, Vec<Dependency>>);

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Dependency {
    pub(crate) on: String,
    /// The other call must have succeeded.
    pub(crate) needs_success: bool,
}

impl Dependencies {
    /// Creates none.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Has a call wait until another has ended, however it ends.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the other waits for it already, or is the same.
    pub fn run_after(self, call: &str, other: &str) -> Result<Self, Error> {
        self.add(call, other, false)
    }

    /// Has a call wait until another has ended, and run only if that succeeded.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the other waits for it already, or is the same.
    pub fn needs(self, call: &str, other: &str) -> Result<Self, Error> {
        self.add(call, other, true)
    }

    fn add(mut self, call: &str, other: &str, needs_success: bool) -> Result<Self, Error> {
        if self.waits(other, call) {
            let message = match call == other {
                true => format!("the call {call} cannot wait for itself"),
                false => format!("the call {call} cannot wait for {other}, which waits for it"),
            };
            return Err(Error::invalid_input(message));
        }
        let dependency = Dependency { on: other.to_owned(), needs_success };
        self.0.entry(call.to_owned()).or_default().push(dependency);
        Ok(self)
    }

    pub(crate) fn of(&self, call: &str) -> &[Dependency] {
        self.0.get(call).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether a call is another, or waits for it over any number of steps.
    fn waits(&self, call: &str, other: &str) -> bool {
        let mut seen = BTreeSet::new();
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
