use std::time::Duration;

/// The state of a batch, returned by [`RunningBatch::progress`](crate::RunningBatch::progress).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BatchProgress {
    /// Prompts with a reply, including those from the log.
    pub done: u64,
    /// Prompts that failed permanently.
    pub failed: u64,
    /// Prompts, of those done or failed, that were not sent, because the log already had their outcome.
    pub from_log: u64,
    /// Attempts after the first, of all prompts.
    pub retries: u64,
    /// Tokens of all requests and answers of this run, without those of sub-agents, as far as servers report them.
    pub tokens: u64,
    /// Prompts per second that this run has sent and finished, since the batch was first polled.
    pub per_second: f64,
    /// Prompts that are not finished; `None` if the source of the prompts does not know its length.
    pub remaining: Option<u64>,
}

impl BatchProgress {
    /// Returns an estimate of the time until the end; `None` without a speed or a length.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let seconds = self.remaining? as f64 / self.per_second;
        Duration::try_from_secs_f64(seconds).ok()
    }
}
