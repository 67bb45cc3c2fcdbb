use std::time::Duration;

/// The sizes and times that a worker allows.
///
/// A session is one value of the engine for each turn, and an invocation may hold 32 MiB in all. The defaults stay well
/// below that: beyond it, the engine pauses a session, and nothing can be asked of it any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest conversation that takes another prompt, in bytes of JSON. Beyond it, a prompt is refused with 413, and a
    /// turn in progress ends before its next request. 8 MiB by default.
    pub session_bytes: usize,
    /// The largest result of a call, in bytes of JSON. A larger one is replaced by an error that the model reads. 1 MiB
    /// by default.
    pub result_bytes: usize,
    /// The most that the results of one round may take together, in bytes of JSON. Calls share it evenly. 4 MiB by default.
    pub round_bytes: usize,
    /// The largest answer of the model, in bytes of JSON. A larger one fails the turn. 4 MiB by default.
    pub answer_bytes: usize,
    /// The longest wait for an approval or for an external result. After it, the call is answered with an error that the
    /// model reads. 24 hours by default.
    pub longest_wait: Duration,
    /// The longest that a request or a call may take. The engine cuts off a worker that says nothing for longer, and begins
    /// the step anew. 1 hour by default.
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
    /// The most that a session may hold, whatever the limits say: half of what the engine takes.
    const CEILING: usize = 16 << 20;

    /// Returns the limits with sizes that the engine can hold together.
    #[must_use]
    pub(crate) fn held(mut self) -> Self {
        self.session_bytes = self.session_bytes.min(Self::CEILING);
        self.round_bytes = self.round_bytes.min(Self::CEILING / 4);
        self.answer_bytes = self.answer_bytes.min(Self::CEILING / 4);
        self.result_bytes = self.result_bytes.min(self.round_bytes);
        self
    }

    /// Returns true if a conversation of this size may take a prompt of that size.
    #[must_use]
    pub fn admits(&self, session_bytes: usize, prompt_bytes: usize) -> bool {
        session_bytes.saturating_add(prompt_bytes) <= self.session_bytes
    }

    /// Returns the largest result of each of this many calls of one round.
    #[must_use]
    pub fn share(&self, calls: usize) -> usize {
        self.result_bytes.min(self.round_bytes / calls.max(1))
    }
}
