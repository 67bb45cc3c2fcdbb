//! Counts of ignored messages.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of a server's output that was ignored, over all its starts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Ignored {
    /// Lines, and events over HTTP, that are not protocol messages.
    pub lines: u64,
    /// Answers with an unknown id, or to a request that was already answered or canceled.
    pub answers: u64,
    /// Progress for a call that is not running.
    pub progress: u64,
}

/// The counters behind [`Ignored`], which outlive a session.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Ignoring {
    /// Counts lines and events that are not messages.
    pub lines: AtomicU64,
    /// Counts answers that nothing waits for.
    pub answers: AtomicU64,
    /// Counts progress for calls that are not running.
    pub progress: AtomicU64,
}

impl Ignoring {
    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> Ignored {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Ignored {
            lines: count(&self.lines),
            answers: count(&self.answers),
            progress: count(&self.progress),
        }
    }
}
