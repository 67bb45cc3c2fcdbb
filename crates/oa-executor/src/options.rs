use std::sync::Arc;
use std::time::Duration;

use oa_types::{Error, Timeout, ToolUseBlock};

use crate::cache::ToolCache;
use crate::caps::RunCaps;
use crate::rate::CallRate;
use crate::result::ExecutionResult;
use crate::retry::RetryPolicy;
use crate::skip::SkipPolicy;
use crate::timeout::TimeoutPolicy;
use crate::truncation::TruncationPolicy;

/// The default number of calls running at once.
const PARALLEL: usize = 8;
/// The default number of queued emissions.
const EMISSIONS: usize = 1024;

/// Runs the calls of a batch in parallel or sequentially.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ExecutionMode {
    /// In parallel, up to [`ExecutorOptions::max_parallel`].
    #[default]
    Parallel,
    /// One at a time, in call order.
    Sequential,
}

/// The task in which tools run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Placement {
    /// In the task that polls the stream: tools make progress while it waits for the next event, and are
    /// dropped with the stream. Blocking handlers still run on the blocking pool.
    #[default]
    Inline,
    /// Each in its own task: tools make progress independently of the reader and on other threads. Dropping the
    /// stream aborts the tasks, which takes effect shortly after.
    Spawned,
}

/// Options for running batches.
///
/// The fields are for reading; the methods of the same names set them.
///
/// ```
/// use std::time::Duration;
///
/// use oa_executor::{ExecutionMode, ExecutorOptions, RetryPolicy, TruncationPolicy};
///
/// let options = ExecutorOptions::new()
///     .max_parallel(4)
///     .timeout(Duration::from_secs(30))
///     .truncation(TruncationPolicy::max_chars(2_000))
///     .retry(RetryPolicy::new(2));
/// assert_eq!(options.mode, ExecutionMode::Parallel);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutorOptions {
    /// Parallel or sequential execution.
    pub mode: ExecutionMode,
    /// The largest number of calls running at once; `None` for no limit.
    pub max_parallel: Option<usize>,
    /// The number of calls that may start per minute; `None` for no limit.
    pub rate: Option<CallRate>,
    /// The task in which tools run.
    pub placement: Placement,
    /// The size of results shown to the model.
    pub truncation: TruncationPolicy,
    /// The timeouts of tools.
    pub timeouts: TimeoutPolicy,
    /// The retry policy.
    pub retry: Option<RetryPolicy>,
    /// The cache for results of cacheable tools.
    pub cache: Option<ToolCache>,
    /// The policy that skips calls.
    pub skip: Option<SkipPolicy>,
    /// The limits of one run.
    pub caps: RunCaps,
    /// True if each batch ends with its metrics.
    pub metrics: bool,
    /// The largest number of queued emissions; the oldest is dropped when the queue is full. Retries share the
    /// queue and are never dropped. 1,024 by default.
    pub emission_queue: usize,
}

impl ExecutorOptions {
    /// Creates the default options: eight calls at once, no timeouts, 10,000 characters per result.
    #[must_use]
    pub fn new() -> Self {
        Self {
            mode: ExecutionMode::default(),
            max_parallel: Some(PARALLEL),
            rate: None,
            placement: Placement::default(),
            truncation: TruncationPolicy::default(),
            timeouts: TimeoutPolicy::none(),
            retry: None,
            cache: None,
            skip: None,
            caps: RunCaps::none(),
            metrics: false,
            emission_queue: EMISSIONS,
        }
    }

    /// Sets parallel or sequential execution.
    #[must_use]
    pub fn mode(mut self, mode: ExecutionMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the largest number of calls running at once.
    #[must_use]
    pub fn max_parallel(mut self, calls: usize) -> Self {
        self.max_parallel = Some(calls);
        self
    }

    /// Removes the limit on calls running at once.
    #[must_use]
    pub fn unlimited_parallel(mut self) -> Self {
        self.max_parallel = None;
        self
    }

    /// Limits the calls that may start per minute; further calls wait.
    #[must_use]
    pub fn rate(mut self, rate: CallRate) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sets the task in which tools run.
    #[must_use]
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Sets the size of results shown to the model.
    #[must_use]
    pub fn truncation(mut self, truncation: TruncationPolicy) -> Self {
        self.truncation = truncation;
        self
    }

    /// Sets the timeout for tools without one of their own, in seconds or as a `Duration`; none by default.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.timeouts = self.timeouts.otherwise(timeout);
        self
    }

    /// Sets the timeouts of tools.
    #[must_use]
    pub fn timeouts(mut self, timeouts: TimeoutPolicy) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Retries failed tools.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Caches results of tools marked cacheable.
    #[must_use]
    pub fn cache(mut self, cache: ToolCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Skips calls for which `reason` returns a reason, given the call and the results so far, in order of
    /// completion.
    #[must_use]
    pub fn skip_if<F>(mut self, reason: F) -> Self
    where
        F: Fn(&ToolUseBlock, &[Arc<ExecutionResult>]) -> Option<String> + Send + Sync + 'static,
    {
        self.skip = Some(SkipPolicy::new(reason));
        self
    }

    /// Sets the limits of one run.
    #[must_use]
    pub fn caps(mut self, caps: RunCaps) -> Self {
        self.caps = caps;
        self
    }

    /// Reports metrics at the end of each batch, before `tools_end`.
    #[must_use]
    pub fn with_metrics(mut self) -> Self {
        self.metrics = true;
        self
    }

    /// Sets the largest number of queued emissions.
    #[must_use]
    pub fn emission_queue(mut self, emissions: usize) -> Self {
        self.emission_queue = emissions;
        self
    }

    /// Checks the options.
    ///
    /// # Errors
    ///
    /// `Config` if a limit or a time is zero.
    pub fn check(&self) -> Result<(), Error> {
        let zeros = [
            (self.max_parallel == Some(0), "max_parallel must be at least 1"),
            (
                self.rate.as_ref().is_some_and(|rate| rate.calls() == 0),
                "the call rate must be at least 1 per minute",
            ),
            (self.emission_queue == 0, "emission_queue must be at least 1"),
            (self.timeouts.has_zero(), "a timeout must be longer than 0"),
            (
                self.cache.as_ref().is_some_and(|cache| cache.capacity() == 0),
                "the cache capacity must be at least 1",
            ),
            (self.caps.calls == Some(0), "the call limit of a run must be at least 1"),
            (
                self.caps.time == Some(Duration::ZERO),
                "the time limit of a run must be longer than 0",
            ),
        ];
        match zeros.into_iter().find(|(is_zero, _)| *is_zero) {
            Some((_, message)) => Err(Error::config(message)),
            None => Ok(()),
        }
    }
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        Self::new()
    }
}
