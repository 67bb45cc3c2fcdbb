//! Counts of messages that are nobody's.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of things that a server has said and that were ignored, over all its starts. See
/// [`Connection::ignored`](crate::Connection::ignored).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Ignored {
    /// Lines, and events over HTTP, that are no messages of the protocol.
    pub lines: u64,
    /// Answers with an id that is unknown, or that was answered or given up before.
    pub answers: u64,
    /// Progress of no call that runs.
    pub progress: u64,
}

/// The counters behind it, which outlive a connection.
#[derive(Debug, Default)]
pub(crate) struct Ignoring {
    pub(crate) lines: AtomicU64,
    pub(crate) answers: AtomicU64,
    pub(crate) progress: AtomicU64,
}

impl Ignoring {
    pub(crate) fn counts(&self) -> Ignored {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Ignored {
            lines: count(&self.lines),
            answers: count(&self.answers),
            progress: count(&self.progress),
        }
    }
}
