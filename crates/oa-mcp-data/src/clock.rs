use std::time::Duration;

/// The idle timeout and the total timeout of a request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Patience {
    /// The idle timeout: the longest wait for the answer or the next sign of life.
    pub silence: Duration,
    /// The total timeout.
    pub total: Duration,
}

impl Patience {
    /// Creates the limits of a request.
    #[must_use]
    pub const fn new(silence: Duration, total: Duration) -> Self {
        Self { silence, total }
    }
}

/// The timeout that a request reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Expired {
    /// The idle timeout.
    Silence,
    /// The total timeout.
    Total,
}

/// The remaining time of a request. It is paused while the server waits for an answer from us.
///
/// It does not read a clock: `now` is the time since any fixed moment and must never decrease.
///
/// ```
/// use std::time::Duration;
/// use oa_mcp_data::{CallClock, Expired, Patience};
///
/// let seconds = Duration::from_secs;
/// let mut clock = CallClock::new(Patience::new(seconds(60), seconds(600)), seconds(0));
/// clock.beat(seconds(50));
/// assert_eq!(clock.deadline(), Some((seconds(110), Expired::Silence)));
/// clock.set_paused(true, seconds(100)); // the server waits for us
/// assert_eq!(clock.deadline(), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CallClock {
    patience: Patience,
    quiet_since: Duration,
    started: Duration,
    paused: Option<Duration>,
}

impl CallClock {
    /// Starts the clock of a request.
    #[must_use]
    pub fn new(patience: Patience, now: Duration) -> Self {
        Self { patience, quiet_since: now, started: now, paused: None }
    }

    /// Records a sign of life from the server.
    pub fn beat(&mut self, now: Duration) {
        // Resuming adds the whole pause to this, so that silence counts from the end of the pause.
        self.quiet_since = self.paused.unwrap_or(now);
    }

    /// Pauses or resumes the clock.
    pub fn set_paused(&mut self, is_paused: bool, now: Duration) {
        match (self.paused, is_paused) {
            (None, true) => self.paused = Some(now),
            (Some(since), false) => {
                // Shift both starting points by the pause.
                let pause = now.saturating_sub(since);
                self.quiet_since += pause;
                self.started += pause;
                self.paused = None;
            }
            _ => {}
        }
    }

    /// Returns the time at which the request expires, and which timeout that is; `None` while the clock is paused.
    #[must_use]
    pub fn deadline(&self) -> Option<(Duration, Expired)> {
        let silence = self.quiet_since.saturating_add(self.patience.silence);
        let total = self.started.saturating_add(self.patience.total);
        match self.paused {
            Some(_) => None,
            // If both expire together, the total is named, because more progress would not help.
            None if silence < total => Some((silence, Expired::Silence)),
            None => Some((total, Expired::Total)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATIENCE: Patience = Patience::new(Duration::from_secs(60), Duration::from_secs(600));

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn progress_extends_only_the_idle_timeout() {
        let mut clock = CallClock::new(PATIENCE, secs(5));
        assert_eq!(clock.deadline(), Some((secs(65), Expired::Silence)));
        clock.beat(secs(50));
        assert_eq!(clock.deadline(), Some((secs(110), Expired::Silence)));
        clock.beat(secs(590));
        assert_eq!(clock.deadline(), Some((secs(605), Expired::Total)));
    }

    #[test]
    fn pause_stops_both_timeouts() {
        let mut clock = CallClock::new(PATIENCE, secs(0));
        clock.set_paused(true, secs(50));
        assert_eq!(clock.deadline(), None);
        clock.set_paused(true, secs(60));
        clock.beat(secs(3_000));
        clock.set_paused(false, secs(4_050));
        // The sign of life counts from the end of the pause.
        assert_eq!(clock.deadline(), Some((secs(4_110), Expired::Silence)));
        clock.beat(secs(4_599));
        assert_eq!(clock.deadline(), Some((secs(4_600), Expired::Total)));
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Beat,
        Pause,
        Resume,
    }

    proptest! {
        /// A request that is never silent for too long, pauses left out, ends by its total time alone; and the time that
        /// it is given is its patience, pauses left out.
        #[test]
        fn pauses_never_count(steps in prop::collection::vec(
            (0_u64..50, prop_oneof![Just(Step::Beat), Just(Step::Pause), Just(Step::Resume)]), 0..60,
        )) {
            let mut clock = CallClock::new(PATIENCE, secs(7));
            let (mut now, mut active, mut quiet, mut is_paused) = (secs(7), secs(0), secs(0), false);
            for (wait, step) in steps {
                now += secs(wait);
                if !is_paused {
                    active += secs(wait);
                    quiet += secs(wait);
                }
                match step {
                    Step::Beat => { clock.beat(now); quiet = secs(0); }
                    Step::Pause => { clock.set_paused(true, now); is_paused = true; }
                    Step::Resume => { clock.set_paused(false, now); is_paused = false; }
                }
                match clock.deadline() {
                    None => prop_assert!(is_paused),
                    Some((at, by)) => {
                        prop_assert!(!is_paused);
                        let silence = now + PATIENCE.silence - quiet;
                        let total = (now + PATIENCE.total).saturating_sub(active);
                        let expected = if silence < total { (silence, Expired::Silence) } else { (total, Expired::Total) };
                        prop_assert_eq!((at, by), expected);
                    }
                }
            }
        }
    }
}
