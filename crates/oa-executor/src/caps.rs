use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use oa_types::Timeout;
use tokio::time::Instant;

/// The limits of one run: one batch, or several that share a [`Run`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RunCaps {
    /// The largest number of calls. Calls answered from the cache or not run do not count.
    pub calls: Option<u32>,
    /// The longest time from the start of the first batch. Calls still running then time out.
    pub time: Option<Duration>,
}

impl RunCaps {
    /// Creates caps without limits.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Limits the number of calls.
    #[must_use]
    pub fn calls(mut self, calls: u32) -> Self {
        self.calls = Some(calls);
        self
    }

    /// Limits the time, in seconds or as a `Duration`.
    #[must_use]
    pub fn time(mut self, time: impl Into<Timeout>) -> Self {
        self.time = time.into().duration();
        self
    }

    /// Counts another call, or returns the reason why it must not run.
    pub(crate) fn admit(&self, run: &Run) -> Result<Counted, String> {
        if let Some(time) = self.time
            && self.deadline(run).is_some_and(|deadline| Instant::now() >= deadline)
        {
            return Err(format!("the run's time limit of {time:?} is reached"));
        }
        let most = self.calls.unwrap_or(u32::MAX);
        // Counted and compared at once, because batches of one run may be polled in parallel.
        let count = |calls: u32| (calls < most).then(|| calls + 1);
        match run.0.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count) {
            Ok(_) => Ok(Counted { run: run.clone(), has_started: false }),
            Err(_) if most == 1 => Err("the run's limit of 1 tool call is reached".to_owned()),
            Err(_) => Err(format!("the run's limit of {most} tool calls is reached")),
        }
    }

    pub(crate) fn deadline(&self, run: &Run) -> Option<Instant> {
        run.started().checked_add(self.time?)
    }
}

/// A group of batches that share [`RunCaps`]. Clones are the same run.
#[derive(Clone, Debug, Default)]
pub struct Run(Arc<Inner>);

/// A call that counts toward its run, unless it is dropped before it starts.
#[derive(Debug)]
pub(crate) struct Counted {
    run: Run,
    has_started: bool,
}

impl Counted {
    /// Marks the call as started.
    pub(crate) fn start(&mut self) {
        self.has_started = true;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if !self.has_started {
            self.run.0.calls.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    calls: AtomicU32,
    started: OnceLock<Instant>,
}

impl Run {
    /// Creates a run; its time starts with its first batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of calls that have started, including one that waits for the [rate](crate::CallRate).
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.0.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn started(&self) -> Instant {
        *self.0.started.get_or_init(Instant::now)
    }
}
