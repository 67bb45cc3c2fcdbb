//! The state of one server.

use std::time::{Duration, Instant};

use crate::breaker::{AttemptOutcome, Breaker, Pass};

/// The permission to use a server once. Must be given back.
#[derive(Clone, Copy, Debug)]
#[must_use = "what is not given back is lost"]
pub(crate) struct Grant {
    pub(crate) server: usize,
    pub(crate) pass: Pass,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// A complete answer.
    Answered,
    /// The server failed, and would fail other requests too.
    Failed { retry_after: Option<Duration> },
    /// The request was dropped before its end.
    GivenUp,
    /// The server cannot answer this request, but may answer others.
    Unfit,
    /// The request itself was wrong.
    Refused,
}

#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) breaker: Breaker,
    /// The largest number of answers in progress.
    pub(crate) cap: Option<usize>,
    /// The number of answers in progress.
    pub(crate) in_use: usize,
    pub(crate) counts: Counts,
    /// The message of the last failure.
    pub(crate) last_failure: Option<String>,
}

/// Counts of all requests so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    pub(crate) given_up: u64,
    pub(crate) refused: u64,
}

impl Seat {
    pub(crate) fn new(breaker: Breaker, cap: Option<usize>) -> Self {
        Self { breaker, cap, in_use: 0, counts: Counts::default(), last_failure: None }
    }

    /// Returns true if another request may be sent now.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.cap.is_none_or(|cap| self.in_use < cap) && self.breaker.permits(now)
    }

    /// Occupies a place, if there is room.
    pub(crate) fn enter(&mut self, now: Instant) -> Option<Pass> {
        if !self.has_room(now) {
            return None;
        }
        let pass = self.breaker.permit(now)?;
        self.in_use += 1;
        self.counts.asked += 1;
        Some(pass)
    }

    pub(crate) fn done(
        &mut self,
        grant: Grant,
        verdict: Verdict,
        words: Option<String>,
        now: Instant,
    ) {
        self.in_use = self.in_use.saturating_sub(1);
        let (count, outcome) = match verdict {
            Verdict::Answered => (&mut self.counts.answered, AttemptOutcome::Answered),
            Verdict::Failed { retry_after } => {
                (&mut self.counts.failed, AttemptOutcome::Failed { retry_after })
            }
            Verdict::GivenUp => (&mut self.counts.given_up, AttemptOutcome::GivenUp),
            Verdict::Unfit => (&mut self.counts.failed, AttemptOutcome::GivenUp),
            Verdict::Refused => (&mut self.counts.refused, AttemptOutcome::Answered),
        };
        *count += 1;
        self.breaker.done(grant.pass, outcome, now);
        if words.is_some() {
            self.last_failure = words;
        }
    }
}
