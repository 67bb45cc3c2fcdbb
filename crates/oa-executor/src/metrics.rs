use std::time::Duration;

use oa_types::Outcome;
use serde::{Deserialize, Serialize};

use crate::result::{ExecutionResult, micros};

/// What a batch took.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BatchMetrics {
    /// How many calls there were.
    pub calls: u64,
    /// How many succeeded, from the cache or not.
    pub ok: u64,
    /// How many failed or panicked.
    pub failed: u64,
    /// How many took too long.
    pub timed_out: u64,
    /// How many were cancelled.
    pub cancelled: u64,
    /// How many were refused: unknown tools and invalid arguments.
    pub refused: u64,
    /// How many were left out.
    pub not_run: u64,
    /// How many were answered from the cache.
    pub cached: u64,
    /// How many results were truncated.
    pub truncated: u64,
    /// How many attempts there were beyond each call's first.
    pub retries: u64,
    /// How many emissions were dropped because the reader was too slow.
    pub dropped_events: u64,
    /// How many calls ran at once at most.
    pub peak_parallel: u64,
    /// How long the batch took, from its first event.
    #[serde(rename = "duration_us", with = "micros")]
    pub duration: Duration,
    /// How long the calls took, summed up.
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
