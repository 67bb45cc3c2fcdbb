use std::time::Duration;

/// The number of attempts without a new event.
const ATTEMPTS: u32 = 3;
/// The wait before each attempt, unless the server sets another.
const RETRY: Duration = Duration::from_millis(500);
/// The shortest wait that a server may ask for. On a stream of notifications it is `RETRY`.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest wait that a server may ask for.
const LONGEST: Duration = Duration::from_secs(30);

/// The rules by which a broken event stream is resumed after its last event.
///
/// ```
/// use std::time::Duration;
///
/// use oa_mcp_data::Resumption;
///
/// let mut resumption = Resumption::new(true);
/// assert_eq!(resumption.pause("e1", None), Some(Duration::from_millis(500)));
/// ```
#[derive(Clone, Debug)]
pub struct Resumption {
    is_call: bool,
    attempts: u32,
    /// The last event before the previous attempt.
    seen: String,
}

impl Resumption {
    /// Creates the rules of one stream: that of a call, or one of notifications.
    #[must_use]
    pub fn new(is_call: bool) -> Self {
        Self { is_call, attempts: 0, seen: String::new() }
    }

    /// Records that the server has ended a stream in order, after it had said when to come back. Since version
    /// 2025-11-25, servers let clients poll in this way for a long call, so its attempts count anew; its timeouts end
    /// it.
    pub fn polled(&mut self) {
        if self.is_call {
            self.attempts = 0;
        }
    }

    /// Returns the wait before the next attempt; `None` after three without a new event. `last` is the id of the last
    /// event, `asked` the wait that the server asks for.
    pub fn pause(&mut self, last: &str, asked: Option<Duration>) -> Option<Duration> {
        if last != self.seen {
            // There was progress, so the count begins again. A call has timeouts, and a server may send notifications
            // in this way for as long as it likes, so their wait is never short.
            (self.attempts, self.seen) = (0, last.to_owned());
        }
        if self.attempts == ATTEMPTS {
            return None;
        }
        self.attempts += 1;
        let shortest = if self.is_call { SHORTEST } else { RETRY };
        Some(asked.unwrap_or(RETRY).clamp(shortest, LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resumptions_are_never_immediate() {
        for (asked, of_call, of_news) in
            [(None, 500, 500), (Some(0), 50, 500), (Some(99_999), 30_000, 30_000)]
        {
            let asked = asked.map(Duration::from_millis);
            let pause = |is_call| Resumption::new(is_call).pause("e1", asked);
            assert_eq!(pause(true), Some(Duration::from_millis(of_call)));
            assert_eq!(pause(false), Some(Duration::from_millis(of_news)));
        }
    }

    #[test]
    fn polls_of_a_call_are_no_failures() {
        let attempts = |is_call| {
            let mut resumption = Resumption::new(is_call);
            let mut poll = || {
                resumption.polled();
                resumption.pause("e1", None)
            };
            (0..99).take_while(|_| poll().is_some()).count()
        };
        assert_eq!((attempts(true), attempts(false)), (99, 3));
    }

    #[test]
    fn a_new_event_restarts_the_count() {
        let mut resumption = Resumption::new(true);
        let mut attempts =
            |last: &str| (0..9).take_while(|_| resumption.pause(last, None).is_some()).count();
        assert_eq!((attempts("e1"), attempts("e1"), attempts("e2")), (3, 0, 3));
    }
}
