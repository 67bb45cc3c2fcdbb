use std::time::Duration;

/// The limits of a worker on sizes and times.
///
/// The engine stores one value for each turn of a session, and an invocation may hold 32 MiB in all. The defaults stay
/// well below that: beyond it, the engine pauses the session, which then accepts no more requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum size of a conversation, in bytes of JSON. Beyond it, a prompt is rejected with 413, and a turn in
    /// progress ends before its next request. 8 MiB by default.
    pub session_bytes: usize,
    /// The maximum size of a result of a call, in bytes of JSON. A larger one is replaced by an error that the model
    /// reads. 1 MiB by default.
    pub result_bytes: usize,
    /// The maximum size of all results of one round, in bytes of JSON. Calls share it evenly. 4 MiB by default.
    pub round_bytes: usize,
    /// The maximum size of an answer of the model, in bytes of JSON. A larger one fails the turn. 4 MiB by default.
    pub answer_bytes: usize,
    /// The longest wait for an approval or for an external result. After it, the result is an error that the model
    /// reads. 24 hours by default.
    pub longest_wait: Duration,
    /// The maximum duration of a request or a call. The engine disconnects a worker that sends nothing for longer, and
    /// restarts the step. 1 hour by default.
    pub longest_step: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            session_bytes: 8 << 20,
            result_bytes: 1 << 20,
            round_bytes: 4 << 20,
            answer_bytes: 4 << 20,
            longest_wait: Duration::from_secs(24 * 60 * 60),
            longest_step: Duration::from_secs(60 * 60),
        }
    }
}

impl Limits {
    /// The maximum size of a session, whatever the limits say: half of the engine's limit.
    const CEILING: usize = 16 << 20;

    /// The longest time that the engine is asked to wait: 100 years. It cannot add a time without end to its clock.
    const ENDLESS: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

    /// Returns the limits with sizes and times reduced so that the engine can hold all of them.
    #[must_use]
    pub(crate) fn held(mut self) -> Self {
        self.session_bytes = self.session_bytes.min(Self::CEILING);
        self.round_bytes = self.round_bytes.min(Self::CEILING / 4);
        self.answer_bytes = self.answer_bytes.min(Self::CEILING / 4);
        self.result_bytes = self.result_bytes.min(self.round_bytes);
        self.longest_wait = Self::held_time(self.longest_wait);
        self.longest_step = Self::held_time(self.longest_step);
        self
    }

    /// Returns the time, reduced to one that the engine can wait for.
    #[must_use]
    pub(crate) fn held_time(time: Duration) -> Duration {
        time.min(Self::ENDLESS)
    }

    /// Returns true if a conversation of this size has room for a prompt of that size.
    #[must_use]
    pub fn admits(&self, session_bytes: usize, prompt_bytes: usize) -> bool {
        session_bytes.saturating_add(prompt_bytes) <= self.session_bytes
    }

    /// Returns the maximum size of each result in a round of this many calls.
    #[must_use]
    pub fn share(&self, calls: usize) -> usize {
        self.result_bytes.min(self.round_bytes / calls.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_times_are_held() {
        let limits = Limits {
            longest_wait: Duration::MAX,
            longest_step: Duration::MAX,
            ..Limits::default()
        };
        let held = limits.held();
        assert_eq!((held.longest_wait, held.longest_step), (Limits::ENDLESS, Limits::ENDLESS));
        assert_eq!(Limits::default().held(), Limits::default());
    }
}
