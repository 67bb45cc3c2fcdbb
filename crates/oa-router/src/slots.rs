//! One server as the scheduler sees it: its breaker, its cap and its counts.

use std::time::Instant;

use crate::breaker::{AttemptOutcome, Breaker, Pass};
use crate::outcome::Outcome;

/// A slot at a server, to be released once.
#[derive(Clone, Copy, Debug)]
#[must_use = "a grant that is not released occupies its slot forever"]
pub(crate) struct Grant {
    pub(crate) server: usize,
    pub(crate) pass: Pass,
}

#[derive(Debug)]
pub(crate) struct ServerSlots {
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

impl ServerSlots {
    pub(crate) fn new(breaker: Breaker, cap: Option<usize>) -> Self {
        Self { breaker, cap, in_use: 0, counts: Counts::default(), last_failure: None }
    }

    /// Returns true if another request may be sent now.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.cap.is_none_or(|cap| self.in_use < cap) && self.breaker.permits(now)
    }

    /// Occupies a slot, if one is free.
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
        outcome: Outcome,
        message: Option<String>,
        now: Instant,
    ) {
        self.in_use = self.in_use.saturating_sub(1);
        let (count, outcome) = match outcome {
            Outcome::Answered => (&mut self.counts.answered, AttemptOutcome::Answered),
            Outcome::Failed { retry_after } => {
                (&mut self.counts.failed, AttemptOutcome::Failed { retry_after })
            }
            Outcome::GivenUp => (&mut self.counts.given_up, AttemptOutcome::GivenUp),
            // To the breaker, a server that lacks the model is neither healthy nor broken. One that rejects a
            // request for what is in it has answered.
            Outcome::Unfit => (&mut self.counts.failed, AttemptOutcome::GivenUp),
            Outcome::Refused => (&mut self.counts.refused, AttemptOutcome::Answered),
            // A silent server must not count as recovered because its trial ran out of time.
            Outcome::Unrelated => (&mut self.counts.refused, AttemptOutcome::GivenUp),
        };
        *count += 1;
        self.breaker.done(grant.pass, outcome, now);
        if message.is_some() {
            self.last_failure = message;
        }
    }
}
