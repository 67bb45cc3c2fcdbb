//! A circuit breaker for one server: a state machine without a clock.

use std::time::{Duration, Instant};

/// The limit on concurrent requests at which a recovering server counts as recovered.
const WARM: u32 = 32;

/// Practically forever, but safe to add to any time.
const NEVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// The settings of a circuit breaker.
///
/// ```
/// use std::time::Duration;
///
/// use oa_router::BreakerConfig;
///
/// let strict = BreakerConfig::new(1).open_for(Duration::from_secs(5));
/// assert_eq!(strict.max_open, Duration::from_secs(30));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct BreakerConfig {
    /// Consecutive failures that open the circuit. 3 by default.
    pub failures: u32,
    /// The time for which the circuit stays open at first; each failed trial doubles it. 1 second by default.
    pub open_for: Duration,
    /// The longest it stays open. 30 seconds by default.
    pub max_open: Duration,
    /// The longest `Retry-After` that is honored. 10 minutes by default.
    pub max_retry_after: Duration,
}

impl BreakerConfig {
    /// Creates settings with this number of consecutive failures and defaults otherwise.
    #[must_use]
    pub fn new(failures: u32) -> Self {
        Self {
            failures,
            open_for: Duration::from_secs(1),
            max_open: Duration::from_secs(30),
            max_retry_after: Duration::from_secs(600),
        }
    }

    /// Sets how long the circuit stays open the first time.
    #[must_use]
    pub fn open_for(mut self, time: Duration) -> Self {
        self.open_for = time;
        self
    }

    /// Sets the longest time it stays open.
    #[must_use]
    pub fn max_open(mut self, time: Duration) -> Self {
        self.max_open = time;
        self
    }

    /// Sets the longest `Retry-After` that is honored.
    #[must_use]
    pub fn max_retry_after(mut self, time: Duration) -> Self {
        self.max_retry_after = time;
        self
    }

    /// Returns what is invalid, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.failures == 0 {
            return Some("the breaker's failures must be at least 1");
        }
        if self.open_for.is_zero() {
            return Some("the breaker's open_for must be longer than 0");
        }
        (self.max_open < self.open_for)
            .then_some("the breaker's max_open must not be shorter than its open_for")
    }
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self::new(3)
    }
}

/// The circuit breaker of one server: it opens after failures, allows one trial after a while, and closes if
/// the trial succeeds.
///
/// It has no clock; the caller passes the time. Call [`permit`](Self::permit) before a request,
/// [`began`](Self::began) when the first piece of its answer arrives, and [`done`](Self::done) when it is over,
/// once per pass.
///
/// - *Closed*: requests pass. [`BreakerConfig::failures`] in a row, or one with a `Retry-After`, open it. A
///   complete answer resets the count if it was requested after the first of these failures, because a failing
///   server may still finish earlier answers.
/// - *Open*: no request passes. The time doubles from [`open_for`](BreakerConfig::open_for) to
///   [`max_open`](BreakerConfig::max_open); a `Retry-After` replaces it, up to its own limit.
/// - *Half open*, when the time is up: one request passes as a trial. If it fails, the circuit opens again for
///   twice as long; if it is given up, the next request becomes the trial; once its answer starts, the circuit
///   closes.
///
/// A recovering server is not flooded: it may have two concurrent requests, plus one for each answer that
/// starts, up to 32, when the limit is removed. Until one answer completes, a single failure opens the circuit
/// again, for twice as long. After a `Retry-After`, the next time without one is not doubled.
///
/// Requests that passed before the circuit last opened do not affect it, except that their `Retry-After` may extend
/// the time.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use oa_router::{Breaker, BreakerConfig, AttemptOutcome};
///
/// let mut breaker = Breaker::new(BreakerConfig::new(1));
/// let mut now = Instant::now();
/// let pass = breaker.permit(now).expect("it starts closed");
/// breaker.done(pass, AttemptOutcome::Failed { retry_after: None }, now);
/// assert!(breaker.permit(now).is_none());
///
/// now += Duration::from_secs(1);
/// let trial = breaker.permit(now).expect("the time is up");
/// assert!(breaker.permit(now).is_none(), "one trial at a time");
/// breaker.began(trial);
/// breaker.done(trial, AttemptOutcome::Answered, now);
/// assert!(breaker.permit(now).is_some());
/// ```
#[derive(Clone, Debug)]
pub struct Breaker {
    config: BreakerConfig,
    state: State,
    /// Consecutive failures.
    failures: u32,
    /// The value of `passed` when the row of failures began.
    row_began: u64,
    /// The total number of passes.
    passed: u64,
    /// The number of times it opened since the last complete answer, but for those with a `Retry-After`.
    openings: u32,
    /// True if it has opened since the last complete answer, for whatever reason.
    is_recovering: bool,
    /// The limit on concurrent requests while recovering.
    room: Option<u32>,
    /// The number of running requests of this generation.
    running: u32,
    /// Increases each time the circuit opens.
    generation: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    HalfOpen,
    Open { until: Instant },
}

/// The permission for one request, from [`Breaker::permit`].
#[derive(Clone, Copy, Debug)]
#[must_use = "report the outcome of the request with `Breaker::done`"]
pub struct Pass {
    generation: u64,
    number: u64,
}

/// The result of a request, as its circuit breaker sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// The server responded correctly: a complete answer, or a rejection caused by the request.
    Answered,
    /// The server failed.
    Failed {
        /// The `Retry-After` of the server, if any.
        retry_after: Option<Duration>,
    },
    /// Unknown: the request was given up, or failed for a reason unrelated to the server.
    GivenUp,
}

/// The state of a server's circuit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Health {
    /// The server is used.
    Healthy,
    /// A trial request is running, or the next request will be one.
    Trial,
    /// The server is not used.
    Open {
        /// The remaining time.
        left: Duration,
    },
}

impl Breaker {
    /// Creates a closed circuit.
    #[must_use]
    pub fn new(config: BreakerConfig) -> Self {
        Self {
            config,
            state: State::Closed,
            failures: 0,
            row_began: 0,
            passed: 0,
            openings: 0,
            is_recovering: false,
            room: None,
            running: 0,
            generation: 0,
        }
    }

    /// Returns a pass if a request may be sent now.
    pub fn permit(&mut self, now: Instant) -> Option<Pass> {
        if !self.permits(now) {
            return None;
        }
        if let State::Open { .. } = self.state {
            self.state = State::HalfOpen;
        }
        // `running` counts passes of this generation only, so after the circuit opened it starts at 0 and the
        // first pass is the trial, whatever is still in flight from before.
        self.running += 1;
        self.passed += 1;
        Some(Pass { generation: self.generation, number: self.passed })
    }

    /// Records that an answer has started.
    pub fn began(&mut self, pass: Pass) {
        if pass.generation != self.generation {
            return;
        }
        match (self.state, self.room) {
            // The start is enough to close: a long answer would block all others while it streams. Until an
            // answer is complete, `is_recovering` is kept, and a single failure opens the circuit again.
            (State::HalfOpen, _) => self.close(),
            (State::Closed, Some(room)) => self.room = Some(room + 1).filter(|room| *room < WARM),
            _ => {}
        }
    }

    /// Records the end of a request.
    pub fn done(&mut self, pass: Pass, outcome: AttemptOutcome, now: Instant) {
        let is_current = pass.generation == self.generation;
        if is_current {
            self.running = self.running.saturating_sub(1);
        }
        match (outcome, self.state) {
            (AttemptOutcome::Answered, state) if is_current => {
                // A rejection counts as an answer but never begins, so a trial can also end here.
                if let State::HalfOpen = state {
                    self.close();
                }
                (self.openings, self.is_recovering) = (0, false);
                // Passes 1 to 3 run; 2 fails, then 1 is answered. 1 says nothing about the server since the
                // failure, so the row goes on. An answer to pass 4 ends it.
                if pass.number > self.row_began {
                    self.failures = 0;
                }
            }
            (AttemptOutcome::Failed { retry_after }, state) if is_current => {
                if self.failures == 0 {
                    self.row_began = self.passed;
                }
                self.failures += 1;
                // `Retry-After: 0` asks for no pause, so the failure counts like one without the header.
                let retry_after = retry_after.filter(|wait| !wait.is_zero());
                let at_once = matches!(state, State::HalfOpen) || self.is_recovering;
                if at_once || retry_after.is_some() || self.failures >= self.config.failures {
                    self.open(retry_after, now);
                }
            }
            // From a request that passed before: the server still knows best when it is back. It may only
            // lengthen the time, or a row of short ones would undo the doubling.
            (AttemptOutcome::Failed { retry_after: Some(wait) }, State::Open { until }) => {
                let until = until.max(now + self.bounded(wait));
                self.state = State::Open { until };
            }
            _ => {}
        }
    }

    /// Returns true if [`permit`](Self::permit) would return a pass.
    #[must_use]
    pub fn permits(&self, now: Instant) -> bool {
        match self.state {
            State::Closed => self.room.is_none_or(|room| self.running < room),
            State::HalfOpen => self.running == 0,
            State::Open { until } => now >= until,
        }
    }

    /// Returns the time of the next trial; `None` unless the circuit is open.
    #[must_use]
    pub fn open_until(&self) -> Option<Instant> {
        match self.state {
            State::Open { until } => Some(until),
            State::Closed | State::HalfOpen => None,
        }
    }

    /// Returns the state of the circuit.
    #[must_use]
    pub fn health(&self, now: Instant) -> Health {
        match self.state {
            State::Closed => Health::Healthy,
            State::Open { until } if now < until => Health::Open { left: until - now },
            State::Open { .. } | State::HalfOpen => Health::Trial,
        }
    }

    fn close(&mut self) {
        (self.state, self.failures, self.room) = (State::Closed, 0, Some(2));
    }

    fn open(&mut self, retry_after: Option<Duration>, now: Instant) {
        let time = match retry_after {
            Some(wait) => self.bounded(wait),
            None => {
                let doubled = 2_u32.saturating_pow(self.openings);
                self.openings = self.openings.saturating_add(1);
                let time = self.config.open_for.saturating_mul(doubled);
                time.min(self.config.max_open).min(NEVER)
            }
        };
        // Both kinds of `time` are at most `NEVER`, so the sum cannot overflow.
        self.state = State::Open { until: now + time };
        (self.failures, self.running, self.room) = (0, 0, None);
        self.is_recovering = true;
        // From here on the passes in flight are of an old generation, and `done` ignores them but for their
        // `Retry-After`.
        self.generation += 1;
    }

    fn bounded(&self, retry_after: Duration) -> Duration {
        retry_after.min(self.config.max_retry_after).min(NEVER)
    }
}
