use std::time::Duration;

use oa_types::{Outcome, micros};
use serde::{Deserialize, Serialize};

use crate::result::ExecutionResult;

/// Metrics of a batch.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BatchMetrics {
    /// The number of calls.
    pub calls: u64,
    /// Calls that succeeded, cached or not.
    pub ok: u64,
    /// Calls that failed or panicked.
    pub failed: u64,
    /// Calls that timed out.
    pub timed_out: u64,
    /// Calls that were canceled.
    pub cancelled: u64,
    /// Calls rejected for an unknown tool or invalid arguments.
    pub refused: u64,
    /// Calls that were not run.
    pub not_run: u64,
    /// Calls answered from the cache.
    pub cached: u64,
    /// Results that were truncated.
    pub truncated: u64,
    /// Attempts beyond the first of each call.
    pub retries: u64,
    /// Emissions dropped because the reader was too slow.
    pub dropped_events: u64,
    /// The largest number of calls running at once.
    pub peak_parallel: u64,
    /// Duration of the batch, from its first event.
    #[serde(rename = "duration_us", with = "micros")]
    pub duration: Duration,
    /// Sum of the durations of all calls.
    #[serde(rename = "busy_us", with = "micros")]
    pub busy: Duration,
}

impl BatchMetrics {
    pub(crate) fn count(&mut self, result: &ExecutionResult) {
        self.calls += 1;
        *match result.outcome {
            Outcome::Cancelled => &mut self.cancelled,
            Outcome::Failed | Outcome::Panicked => &mut self.failed,
            Outcome::NotRun => &mut self.not_run,
            Outcome::Ok => &mut self.ok,
            Outcome::TimedOut => &mut self.timed_out,
            _ => &mut self.refused,
        } += 1;
        self.cached += u64::from(result.cached);
        self.truncated += u64::from(result.truncated);
        self.retries += u64::from(result.attempts.saturating_sub(1));
        self.dropped_events += result.dropped_events;
        self.busy += result.duration;
    }
}
