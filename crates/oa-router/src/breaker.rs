//! Whether a server is asked: the circuit, as a state machine without a clock.

use std::time::{Duration, Instant};

/// How many requests a server has at once when it is no longer held back after a trial.
const WARM: u32 = 32;

/// A time that is as good as never, and can be added to any other.
const NEVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// When a server is left alone, and for how long.
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
    /// How many failures in a row open the circuit. 3 by default.
    pub failures: u32,
    /// How long it is open the first time; each failed trial doubles it. 1 second by default.
    pub open_for: Duration,
    /// The longest it is open. 30 seconds by default.
    pub max_open: Duration,
    /// The longest `Retry-After` that is honored. 10 minutes by default.
    pub max_retry_after: Duration,
}

impl BreakerConfig {
    /// Opens after this many failures in a row; the rest is as by default.
    #[must_use]
    pub fn new(failures: u32) -> Self {
        Self {
            failures,
            open_for: Duration::from_secs(1),
            max_open: Duration::from_secs(30),
            max_retry_after: Duration::from_secs(600),
        }
    }

    /// Sets how long the circuit is open the first time.
    #[must_use]
    pub fn open_for(mut self, time: Duration) -> Self {
        self.open_for = time;
        self
    }

    /// Sets the longest time for which it is open.
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

    /// What cannot work about it.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.failures == 0 {
            return Some("a breaker that opens after 0 failures is never closed");
        }
        if self.open_for.is_zero() {
            return Some("a breaker that opens for no time leaves no server alone");
        }
        (self.max_open < self.open_for)
            .then_some("the breaker's max_open is shorter than its open_for")
    }
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self::new(3)
    }
}

/// The circuit of one server: it opens after failures, lets one trial through after a while, and closes
/// when that goes well.
///
/// Without a clock: the time is given from outside. Ask [`permit`](Self::permit) before a request, tell
/// [`began`](Self::began) when the first piece of its answer is there and [`done`](Self::done) when it is
/// over, once for each pass.
///
/// - *Closed*: everybody passes. [`BreakerConfig::failures`] in a row, or one with a `Retry-After`, open
///   it. A whole answer ends a row, if it was asked for after the row began: a server that fails may still
///   finish what it has.
/// - *Open*: nobody passes. The time doubles from [`open_for`](BreakerConfig::open_for) to
///   [`max_open`](BreakerConfig::max_open); a `Retry-After` is taken instead, up to its own bound.
/// - *Half open*, when the time is up: one passes, as a trial. If it fails the circuit opens again for
///   twice as long; if it is given up the next one is the trial; when its answer has begun the circuit
///   closes.
///
/// After that the server is not buried: it gets two requests at once, and one more for each answer that
/// begins, until there are 32 and the bound falls. Until one answer has come to its end a single failure
/// opens the circuit again, for twice as long.
///
/// What passed before the circuit last opened says nothing about now, and changes nothing; only the
/// `Retry-After` of such a one lengthens the time.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use oa_router::{Breaker, BreakerConfig, Outcome};
///
/// let mut breaker = Breaker::new(BreakerConfig::new(1));
/// let mut now = Instant::now();
/// let pass = breaker.permit(now).expect("it begins closed");
/// breaker.done(pass, Outcome::Failed { retry_after: None }, now);
/// assert!(breaker.permit(now).is_none());
///
/// now += Duration::from_secs(1);
/// let trial = breaker.permit(now).expect("the time is up");
/// assert!(breaker.permit(now).is_none(), "one trial at a time");
/// breaker.began(trial);
/// breaker.done(trial, Outcome::Answered, now);
/// assert!(breaker.permit(now).is_some());
/// ```
#[derive(Clone, Debug)]
pub struct Breaker {
    config: BreakerConfig,
    state: State,
    /// In a row.
    failures: u32,
    /// How many had passed when the row began.
    row_began: u64,
    /// How many have passed, ever.
    passed: u64,
    /// How often it opened since the last whole answer.
    openings: u32,
    /// How many may run at once after a trial.
    room: Option<u32>,
    /// How many run of this generation.
    running: u32,
    /// Counts the openings for ever.
    generation: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    HalfOpen,
    Open { until: Instant },
}

/// The right to ask once, from [`Breaker::permit`].
#[derive(Clone, Copy, Debug)]
#[must_use = "tell the breaker by `done` how it went"]
pub struct Pass {
    generation: u64,
    number: u64,
}

/// What came of a request, as its server's circuit sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The server did its part: a whole answer, or a refusal that is the request's own fault.
    Answered,
    /// The server failed.
    Failed {
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// Nobody knows: it was given up, or failed in a way that says nothing of the server.
    GivenUp,
}

/// How a server's circuit stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Health {
    /// It is asked.
    Healthy,
    /// One request is on its way to find out whether it works again, or the next one will be.
    Trial,
    /// It is left alone.
    Open {
        /// For this long.
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
            room: None,
            running: 0,
            generation: 0,
        }
    }

    /// Lets a request through, if one may go now.
    pub fn permit(&mut self, now: Instant) -> Option<Pass> {
        if !self.permits(now) {
            return None;
        }
        if let State::Open { .. } = self.state {
            self.state = State::HalfOpen;
        }
        self.running += 1;
        self.passed += 1;
        Some(Pass { generation: self.generation, number: self.passed })
    }

    /// Notes that an answer has begun.
    pub fn began(&mut self, pass: Pass) {
        if pass.generation != self.generation {
            return;
        }
        match (self.state, self.room) {
            (State::HalfOpen, _) => self.close(),
            (State::Closed, Some(room)) => self.room = Some(room + 1).filter(|room| *room < WARM),
            _ => {}
        }
    }

    /// Notes that a request is over.
    pub fn done(&mut self, pass: Pass, outcome: Outcome, now: Instant) {
        let is_current = pass.generation == self.generation;
        if is_current {
            self.running = self.running.saturating_sub(1);
        }
        match (outcome, self.state) {
            (Outcome::Answered, state) if is_current => {
                if let State::HalfOpen = state {
                    self.close();
                }
                self.openings = 0;
                if pass.number > self.row_began {
                    self.failures = 0;
                }
            }
            (Outcome::Failed { retry_after }, state) if is_current => {
                if self.failures == 0 {
                    self.row_began = self.passed;
                }
                self.failures += 1;
                let retry_after = retry_after.filter(|wait| !wait.is_zero());
                let at_once = matches!(state, State::HalfOpen) || self.openings > 0;
                if at_once || retry_after.is_some() || self.failures >= self.config.failures {
                    self.open(retry_after, now);
                }
            }
            (Outcome::Failed { retry_after: Some(wait) }, State::Open { until }) => {
                let until = until.max(now + self.bounded(wait));
                self.state = State::Open { until };
            }
            _ => {}
        }
    }

    /// Returns whether [`permit`](Self::permit) would let a request through.
    #[must_use]
    pub fn permits(&self, now: Instant) -> bool {
        match self.state {
            State::Closed => self.room.is_none_or(|room| self.running < room),
            State::HalfOpen => self.running == 0,
            State::Open { until } => now >= until,
        }
    }

    /// Returns until when nobody passes; `None` unless it is open. After that time one may try.
    #[must_use]
    pub fn open_until(&self) -> Option<Instant> {
        match self.state {
            State::Open { until } => Some(until),
            State::Closed | State::HalfOpen => None,
        }
    }

    /// Returns how it stands.
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
        self.state = State::Open { until: now + time };
        (self.failures, self.running, self.room) = (0, 0, None);
        self.generation += 1;
    }

    fn bounded(&self, retry_after: Duration) -> Duration {
        retry_after.min(self.config.max_retry_after).min(NEVER)
    }
}
