use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

/// What one run may take altogether. A run is one batch, or several that share a [`Run`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RunCaps {
    /// How many calls may run. What is answered from the cache or not run at all does not count.
    pub calls: Option<u32>,
    /// How long they may take, from the first batch on. What runs then is timed out.
    pub time: Option<Duration>,
}

impl RunCaps {
    /// Creates caps that limit nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Limits how many calls may run.
    #[must_use]
    pub fn calls(mut self, calls: u32) -> Self {
        self.calls = Some(calls);
        self
    }

    /// Limits how long they may take.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// Counts one more call, or says why there may be none.
    pub(crate) fn admit(&self, run: &Run) -> Result<(), String> {
        if let Some(time) = self.time
            && self.deadline(run).is_some_and(|deadline| Instant::now() >= deadline)
        {
            return Err(format!("the time of the run ({time:?}) is up"));
        }
        let most = self.calls.unwrap_or(u32::MAX);
        let count = |calls: u32| (calls < most).then(|| calls + 1);
        match run.0.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("the run's limit of {most} tool calls is reached")),
        }
    }

    pub(crate) fn deadline(&self, run: &Run) -> Option<Instant> {
        run.started().checked_add(self.time?)
    }
}

/// Several batches that count as one, for [`RunCaps`]. Clones are the same run.
#[derive(Clone, Debug, Default)]
pub struct Run(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    calls: AtomicU32,
    started: OnceLock<Instant>,
}

impl Run {
    /// Creates a run; its time begins with its first batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many calls have run or are running.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.0.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn started(&self) -> Instant {
        *self.0.started.get_or_init(Instant::now)
    }
}
