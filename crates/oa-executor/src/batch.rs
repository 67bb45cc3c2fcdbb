use std::collections::HashMap;

use oa_tools::{ArgumentError, Cancel, State};

use crate::caps::Run;
use crate::dependencies::Dependencies;

/// What belongs to one batch: shared state, who may cancel it, whether tools may emit.
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
    /// The calls whose input was prepared before.
    pub(crate) prepared: HashMap<String, Result<(), ArgumentError>>,
}

impl Batch {
    /// Creates a batch that shares nothing, lets tools emit, and is a run of its own.
    pub fn new() -> Self {
        Self {
            state: State::new(),
            cancel: Cancel::new(),
            emits: true,
            dependencies: Dependencies::new(),
            run: Run::new(),
            prepared: HashMap::new(),
        }
    }

    /// Sets what tools share.
    pub fn state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Sets the signal that cancels it.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Turns progress, status, log and custom events of tools off, which then cost nothing.
    pub fn without_emissions(mut self) -> Self {
        self.emits = false;
        self
    }

    /// Sets which calls wait for which. A call that waits for one which is not in the batch is not run.
    pub fn dependencies(mut self, dependencies: Dependencies) -> Self {
        self.dependencies = dependencies;
        self
    }

    /// Sets the outcome of [preparing](oa_tools::Tool::prepare) a call's input before the batch.
    ///
    /// With `Ok` the call runs with its input exactly as given; with the error it is not run and ends as
    /// [`InvalidInput`](oa_types::Outcome::InvalidInput). Either way the executor does not prepare the input again, so
    /// whatever approved the call has seen the input that runs. All other calls are prepared when they begin.
    pub fn prepared(
        mut self,
        call_id: impl Into<String>,
        outcome: Result<(), ArgumentError>,
    ) -> Self {
        self.prepared.insert(call_id.into(), outcome);
        self
    }

    /// Sets the run that it counts for.
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
