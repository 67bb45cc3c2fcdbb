use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The time window in which calls are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// A limit on the tool calls that start in any 60 seconds. Clones share the limit.
///
/// A call beyond the limit waits until the limit allows it; calls start in the order in which they were made.
/// Only calls that run are counted, once each regardless of retries.
///
/// ```
/// use oa_executor::{CallRate, ExecutorOptions};
///
/// // Two agents that share a paid API.
/// let rate = CallRate::per_minute(30);
/// let options = [(); 2].map(|()| ExecutorOptions::new().rate(rate.clone()));
/// # assert_eq!(options[0].rate.as_ref().unwrap().calls(), 30);
/// ```
#[derive(Clone)]
pub struct CallRate(Arc<Inner>);

struct Inner {
    calls: u32,
    window: Mutex<Window>,
}

impl CallRate {
    /// Creates a limit of `calls` calls in any 60 seconds.
    #[must_use]
    pub fn per_minute(calls: u32) -> Self {
        let window = Window { most: calls.max(1) as usize, begins: VecDeque::new() };
        Self(Arc::new(Inner { calls, window: Mutex::new(window) }))
    }

    /// Returns the number of calls that may start in any 60 seconds.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.0.calls
    }

    /// Reserves the next free start time.
    pub(crate) fn reserve(&self, now: Instant) -> Slot {
        Slot { begin: self.window().reserve(now), rate: self.clone(), is_used: false }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.0.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CallRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRate").field("calls", &self.0.calls).finish_non_exhaustive()
    }
}

/// A reserved start time, released again if dropped unused.
pub(crate) struct Slot {
    begin: Instant,
    rate: CallRate,
    is_used: bool,
}

impl Slot {
    pub(crate) fn begin(&self) -> Instant {
        self.begin
    }

    /// Marks the reservation as used.
    pub(crate) fn use_up(mut self) {
        self.is_used = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_used {
            self.rate.window().release(self.begin);
        }
    }
}

/// The reserved start times, with at most `most` in any 60 seconds.
#[derive(Debug)]
struct Window {
    most: usize,
    /// Ascending. Expired times are removed, so it holds at most `most` plus the waiting calls.
    begins: VecDeque<Instant>,
}

impl Window {
    fn reserve(&mut self, now: Instant) -> Instant {
        while self.begins.front().is_some_and(|begin| *begin + MINUTE <= now) {
            self.begins.pop_front();
        }
        // Of any `most + 1` begins in a row, the last must be a minute after the first. With `most` 2 and
        // begins at 0 s, 10 s and 60 s, the next one is due at 10 s + 60 s.
        let earliest = match self.begins.len().checked_sub(self.most) {
            Some(before) => self.begins[before] + MINUTE,
            None => now,
        };
        // Never before an earlier reservation: first come, first served.
        let last = self.begins.back().copied().unwrap_or(now);
        let begin = earliest.max(last).max(now);
        self.begins.push_back(begin);
        begin
    }

    fn release(&mut self, begin: Instant) {
        // Equal times are interchangeable. Later reservations keep their times: their calls sleep already.
        if let Some(at) = self.begins.iter().rposition(|other| *other == begin) {
            self.begins.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_minute_has_more_begins_than_allowed(
            most in 1_usize..5,
            steps in prop::collection::vec((0_u64..50, any::<bool>()), 0..60),
        ) {
            let mut now = Instant::now();
            let mut window = Window { most, begins: VecDeque::new() };
            let mut kept: Vec<Instant> = Vec::new();
            for (pause, is_released) in steps {
                now += Duration::from_secs(pause);
                let begin = window.reserve(now);
                prop_assert!(begin >= now);
                prop_assert!(kept.last().is_none_or(|last| *last <= begin), "first come, first served");
                if is_released {
                    window.release(begin);
                    continue;
                }
                // It waits only as long as it must.
                let crowded = |at: Instant| {
                    kept.iter().filter(|begin| **begin + MINUTE > at).count() >= most
                };
                prop_assert!(!crowded(begin));
                let is_last = kept.last().is_some_and(|last| *last == begin);
                prop_assert!(begin == now || is_last || crowded(begin - Duration::from_nanos(1)));
                kept.push(begin);
                let waiting = kept.iter().filter(|begin| **begin > now).count();
                prop_assert!(window.begins.len() <= most + waiting);
            }
        }
    }
}
