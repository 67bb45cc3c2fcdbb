use std::collections::HashMap;

use oa_tools::{ArgumentError, Cancel, IdempotencyKey, State};

use crate::caps::Run;
use crate::dependencies::Dependencies;

/// The settings of one batch: shared state, cancellation, dependencies, and whether tools may emit.
///
/// ```
/// use oa_executor::{Batch, Dependencies};
///
/// let batch = Batch::new()
///     .without_emissions()
///     .dependencies(Dependencies::new().run_after("call_2", "call_1")?);
/// # let _ = batch;
/// # Ok::<(), oa_executor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a batch does nothing until it is run"]
pub struct Batch {
    pub(crate) state: State,
    pub(crate) cancel: Cancel,
    pub(crate) emits: bool,
    pub(crate) dependencies: Dependencies,
    pub(crate) run: Run,
    /// The settings of single calls, by id.
    pub(crate) calls: HashMap<String, CallSettings>,
}

/// The settings of one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallSettings {
    /// The outcome of preparing its input before the batch.
    pub(crate) prepared: Option<Result<(), ArgumentError>>,
    pub(crate) key: Option<IdempotencyKey>,
}

impl Batch {
    /// Creates a batch without shared state or cancellation, with emissions, as a separate run.
    pub fn new() -> Self {
        Self {
            state: State::new(),
            cancel: Cancel::new(),
            emits: true,
            dependencies: Dependencies::new(),
            run: Run::new(),
            calls: HashMap::new(),
        }
    }

    /// Sets the state shared with the tools.
    pub fn state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Sets the signal that cancels the batch.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Disables progress, status, log and custom events of tools; emitting then costs nothing.
    pub fn without_emissions(mut self) -> Self {
        self.emits = false;
        self
    }

    /// Sets the dependencies between calls. A call that depends on one outside the batch is not run.
    pub fn dependencies(mut self, dependencies: Dependencies) -> Self {
        self.dependencies = dependencies;
        self
    }

    /// Sets the outcome of [preparing](oa_tools::Tool::prepare) a call's input before the batch.
    ///
    /// With `Ok` the call runs with its input exactly as given; with an error it does not run and ends as
    /// [`InvalidInput`](oa_types::Outcome::InvalidInput). The executor does not prepare this input again, so
    /// the input that was approved is the input that runs. Other calls are prepared when they start.
    pub fn prepared(
        mut self,
        call_id: impl Into<String>,
        outcome: Result<(), ArgumentError>,
    ) -> Self {
        self.calls.entry(call_id.into()).or_default().prepared = Some(outcome);
        self
    }

    /// Sets the [idempotency key](oa_tools::ToolContext::idempotency_key) of a call, which each attempt sees. Other
    /// calls have none. Calls that share an id share the key, so ids must be unique where keys are used.
    pub fn idempotency_key(
        mut self,
        call_id: impl AsRef<str>,
        key: impl Into<IdempotencyKey>,
    ) -> Self {
        let (id, key) = (call_id.as_ref(), Some(key.into()));
        match self.calls.get_mut(id) {
            Some(settings) => settings.key = key,
            None => {
                self.calls.insert(id.to_owned(), CallSettings { key, ..CallSettings::default() });
            }
        }
        self
    }

    /// Sets the run whose limits the batch counts toward.
    pub fn run(mut self, run: Run) -> Self {
        self.run = run;
        self
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}
