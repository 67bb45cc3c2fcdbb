use std::sync::Arc;
use std::time::Duration;

use oa_types::ToolUseBlock;

use crate::cache::ToolCache;
use crate::caps::RunCaps;
use crate::error::Error;
use crate::rate::CallRate;
use crate::result::ExecutionResult;
use crate::retry::RetryPolicy;
use crate::skip::SkipPolicy;
use crate::timeout::TimeoutPolicy;
use crate::truncation::TruncationPolicy;

/// How many calls run at once unless told otherwise.
const PARALLEL: usize = 8;
/// How many emissions wait for the reader unless told otherwise.
const EMISSIONS: usize = 1024;

/// Whether the calls of a batch run together or one by one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ExecutionMode {
    /// Together, up to [`ExecutorOptions::max_parallel`].
    #[default]
    Parallel,
    /// One by one, in the order of the calls.
    Sequential,
}

/// Where tools run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Placement {
    /// In the task that reads the events: they move on while it waits for the next event, and are gone
    /// the moment the stream is dropped. Handlers that block run on the blocking pool all the same.
    #[default]
    Inline,
    /// Each in a task of its own: they move on while the reader does something else, and on other
    /// threads. Dropping the stream aborts the tasks, which the runtime does a moment later.
    Spawned,
}

/// How batches are run: one policy for each question.
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
///     .retry(RetryPolicy::new(3));
/// assert_eq!(options.mode, ExecutionMode::Parallel);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutorOptions {
    /// Whether calls run together.
    pub mode: ExecutionMode,
    /// How many calls run at once at most; `None` is no limit.
    pub max_parallel: Option<usize>,
    /// The number of calls that may begin in a minute; `None` is no limit.
    pub rate: Option<CallRate>,
    /// Where tools run.
    pub placement: Placement,
    /// How much of a result the model sees.
    pub truncation: TruncationPolicy,
    /// How long one run of a tool may take.
    pub timeouts: TimeoutPolicy,
    /// Which failures are tried again.
    pub retry: Option<RetryPolicy>,
    /// Where results of cacheable tools are kept.
    pub cache: Option<ToolCache>,
    /// Which calls are left out.
    pub skip: Option<SkipPolicy>,
    /// What one run may take altogether.
    pub caps: RunCaps,
    /// Whether each batch ends with its metrics.
    pub metrics: bool,
    /// How many emissions of tools wait for the reader; the oldest goes when one more comes. Retries wait in
    /// the same queue, and never go.
    pub emission_queue: usize,
}

impl ExecutorOptions {
    /// Creates the defaults: eight calls at once, no timeout, 10,000 characters of each result.
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

    /// Sets whether calls run together or one by one.
    #[must_use]
    pub fn mode(mut self, mode: ExecutionMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets how many calls run at once at most.
    #[must_use]
    pub fn max_parallel(mut self, calls: usize) -> Self {
        self.max_parallel = Some(calls);
        self
    }

    /// Lets any number of calls run at once.
    #[must_use]
    pub fn unlimited_parallel(mut self) -> Self {
        self.max_parallel = None;
        self
    }

    /// Limits how many calls may begin in a minute; further ones wait.
    #[must_use]
    pub fn rate(mut self, rate: CallRate) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sets where tools run.
    #[must_use]
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Sets how much of a result the model sees.
    #[must_use]
    pub fn truncation(mut self, truncation: TruncationPolicy) -> Self {
        self.truncation = truncation;
        self
    }

    /// Sets how long one run of a tool may take, unless the tool sets that itself.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeouts = self.timeouts.otherwise(timeout);
        self
    }

    /// Sets how long one run of each tool may take.
    #[must_use]
    pub fn timeouts(mut self, timeouts: TimeoutPolicy) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Tries failed tools again.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Keeps results of tools that are marked cacheable.
    #[must_use]
    pub fn cache(mut self, cache: ToolCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Leaves out calls for which this returns a reason, given what has ended before, in the order of
    /// completion.
    #[must_use]
    pub fn skip_if<F>(mut self, reason: F) -> Self
    where
        F: Fn(&ToolUseBlock, &[Arc<ExecutionResult>]) -> Option<String> + Send + Sync + 'static,
    {
        self.skip = Some(SkipPolicy::new(reason));
        self
    }

    /// Limits what one run may take altogether.
    #[must_use]
    pub fn caps(mut self, caps: RunCaps) -> Self {
        self.caps = caps;
        self
    }

    /// Ends each batch with its metrics, before `tools_end`.
    #[must_use]
    pub fn with_metrics(mut self) -> Self {
        self.metrics = true;
        self
    }

    /// Sets how many emissions wait for the reader.
    #[must_use]
    pub fn emission_queue(mut self, emissions: usize) -> Self {
        self.emission_queue = emissions;
        self
    }

    /// Checks that every option can act.
    ///
    /// # Errors
    ///
    /// `Config` for limits, attempts or times of zero.
    pub fn check(&self) -> Result<(), Error> {
        let zeros = [
            (self.max_parallel == Some(0), "no call may run at once: max_parallel is 0"),
            (
                self.rate.as_ref().is_some_and(|rate| rate.calls() == 0),
                "no call may begin: the rate is 0",
            ),
            (self.emission_queue == 0, "no emission may wait: emission_queue is 0"),
            (self.timeouts.has_zero(), "a timeout is 0"),
            (self.retry.as_ref().is_some_and(|retry| retry.attempts == 0), "no attempt is allowed"),
            (
                self.cache.as_ref().is_some_and(|cache| cache.capacity() == 0),
                "the cache holds nothing",
            ),
            (self.caps.calls == Some(0), "a run may have no call"),
            (self.caps.time == Some(Duration::ZERO), "a run may take no time"),
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
