use std::time::Duration;

/// The longest silence and the longest duration of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) silence: Duration,
    pub(crate) total: Duration,
}

/// The limit that a request has reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Expired {
    Silence,
    Total,
}

/// The time that a request has left. It stands still while the server waits for an answer of ours.
///
/// Has no clock: `now` is the time since any fixed moment, and never goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallClock {
    patience: Patience,
    quiet_since: Duration,
    started: Duration,
    paused: Option<Duration>,
}

impl CallClock {
    pub(crate) fn new(patience: Patience, now: Duration) -> Self {
        Self { patience, quiet_since: now, started: now, paused: None }
    }

    /// The server gave a sign of life.
    pub(crate) fn beat(&mut self, now: Duration) {
        self.quiet_since = self.paused.unwrap_or(now);
    }

    /// Stops the clock, or lets it go on.
    pub(crate) fn set_paused(&mut self, is_paused: bool, now: Duration) {
        match (self.paused, is_paused) {
            (None, true) => self.paused = Some(now),
            (Some(since), false) => {
                // As if the pause had not been.
                let pause = now.saturating_sub(since);
                self.quiet_since += pause;
                self.started += pause;
                self.paused = None;
            }
            _ => {}
        }
    }

    /// Returns when the request expires, and by which limit; `None` while the clock stands still.
    pub(crate) fn deadline(&self) -> Option<(Duration, Expired)> {
        let silence = self.quiet_since.saturating_add(self.patience.silence);
        let total = self.started.saturating_add(self.patience.total);
        match self.paused {
            Some(_) => None,
            None if silence < total => Some((silence, Expired::Silence)),
            None => Some((total, Expired::Total)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATIENCE: Patience =
        Patience { silence: Duration::from_secs(60), total: Duration::from_secs(600) };

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn silence_ends_a_request_and_progress_extends_it() {
        let mut clock = CallClock::new(PATIENCE, secs(5));
        assert_eq!(clock.deadline(), Some((secs(65), Expired::Silence)));
        clock.beat(secs(50));
        assert_eq!(clock.deadline(), Some((secs(110), Expired::Silence)));
        clock.beat(secs(590));
        assert_eq!(clock.deadline(), Some((secs(605), Expired::Total)));
    }

    #[test]
    fn a_question_stops_both_limits() {
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
