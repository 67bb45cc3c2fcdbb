#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use oa_types::Backoff;

/// The rules of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) concurrency: usize,
    /// Prompts held beyond those in progress.
    pub(crate) window: usize,
    pub(crate) in_order: bool,
    pub(crate) retry_budget: u32,
    pub(crate) max_retries: u32,
    pub(crate) backoff: Backoff,
}

/// The outcome of one attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AttemptOutcome {
    /// The server answered, or rejected the prompt permanently. Either way it is up.
    Answered,
    /// The log had the outcome; no request was sent.
    Logged,
    /// The same prompt may succeed later, at the earliest after this time.
    MayPass(Option<Duration>),
}

/// The course of a batch as a state machine: which prompt is next, which is retried, and which outcome is due.
///
/// Each prompt has an index and goes this way: taken (in progress), perhaps several times waiting and in progress
/// again, then ended, settled, and yielded. An index is yielded exactly once. The clock is the caller's: times are
/// durations since the batch began.
///
/// Two things keep a server that is down from using up the budget of retries: the delay of each prompt doubles with its
/// retries, and after [`STREAK`] failures in a row, attempts of any prompt begin at intervals that double with each
/// further failure, until one succeeds.
#[derive(Debug)]
pub(crate) struct Scheduler {
    rules: Rules,
    /// Retries so far, of all prompts.
    retried: u32,
    /// The index of the next prompt.
    next: u64,
    has_more: bool,
    /// Prompts in progress, with their retries so far.
    running: HashMap<u64, u32>,
    /// Prompts that wait for a retry, earliest first: when they are due, their index, and their retries so far.
    waiting: BinaryHeap<Reverse<(Duration, u64, u32)>>,
    /// Prompts whose outcome is known and not yet settled.
    ended: usize,
    /// Settled prompts to yield, lowest index first.
    settled: BinaryHeap<Reverse<u64>>,
    /// The number of prompts that were yielded.
    yielded: u64,
    /// Consecutive failures that may be temporary.
    streak: u32,
    /// No attempt begins before this time.
    paused_until: Duration,
}

/// The number of failures in a row after which attempts begin at intervals.
pub(crate) const STREAK: u32 = 3;

/// The longest delay that a server may ask for.
const MOST: Duration = Duration::from_secs(600);

impl Scheduler {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            retried: 0,
            next: 0,
            has_more: true,
            running: HashMap::new(),
            waiting: BinaryHeap::new(),
            ended: 0,
            settled: BinaryHeap::new(),
            yielded: 0,
            streak: 0,
            paused_until: Duration::ZERO,
        }
    }

    /// Returns true if a further prompt is wanted now. Prompts that are due again go first: see
    /// [`take_retry`](Self::take_retry).
    pub(crate) fn wants_prompt(&self, now: Duration) -> bool {
        self.has_room() && self.may_grow() && now >= self.pause_end()
    }

    /// Takes a further prompt, which is now in progress, and returns its index. Call it only if one
    /// [is wanted](Self::wants_prompt).
    pub(crate) fn take_prompt(&mut self, now: Duration) -> u64 {
        let index = self.next;
        self.next += 1;
        self.begin(index, 0, now);
        index
    }

    /// Takes the first prompt that is due again, if there is one and room for it. It is now in progress.
    pub(crate) fn take_retry(&mut self, now: Duration) -> Option<u64> {
        let &Reverse((due, index, retries)) = self.waiting.peek()?;
        if !self.has_room() || now < self.pause_end().max(due) {
            return None;
        }
        self.waiting.pop();
        self.begin(index, retries, now);
        Some(index)
    }

    /// Records that there are no further prompts.
    pub(crate) fn end_prompts(&mut self) {
        self.has_more = false;
    }

    /// Ends an attempt of a prompt in progress. Returns true if the prompt is retried; otherwise its outcome is
    /// final, and it must be [settled](Self::settle).
    pub(crate) fn end(&mut self, index: u64, outcome: AttemptOutcome, now: Duration) -> bool {
        let Some(retries) = self.running.remove(&index) else {
            debug_assert!(false, "the prompt {index} is not in progress");
            return false;
        };
        let after = match outcome {
            AttemptOutcome::Answered => {
                (self.streak, self.paused_until) = (0, Duration::ZERO);
                None
            }
            AttemptOutcome::Logged => None,
            AttemptOutcome::MayPass(after) => {
                self.streak = self.streak.saturating_add(1);
                self.pause(now);
                Some(after.unwrap_or_default().min(MOST))
            }
        };
        let may_retry = self.has_budget() && retries < self.rules.max_retries;
        let Some(after) = after.filter(|_| may_retry) else {
            self.ended += 1;
            return false;
        };
        self.retried += 1;
        // The index is the seed, so that prompts that fail together do not come back together.
        let delay = self.rules.backoff.delay(retries, index).max(after);
        self.waiting.push(Reverse((now.saturating_add(delay), index, retries + 1)));
        true
    }

    /// Records that the outcome of a prompt can be yielded.
    pub(crate) fn settle(&mut self, index: u64) {
        debug_assert!(self.ended > 0 && index < self.next, "the prompt {index} has not ended");
        self.ended -= 1;
        self.settled.push(Reverse(index));
    }

    /// Takes the next prompt whose outcome is due.
    pub(crate) fn take_settled(&mut self) -> Option<u64> {
        let &Reverse(first) = self.settled.peek()?;
        // In order, the number of yielded prompts is the index of the next one.
        if self.rules.in_order && first != self.yielded {
            return None;
        }
        self.yielded += 1;
        self.settled.pop().map(|Reverse(first)| first)
    }

    /// Stops taking prompts and retries. Returns the prompts that waited for one, which must be settled.
    #[cfg(any(feature = "log", test))]
    pub(crate) fn give_up(&mut self) -> Vec<u64> {
        // The budget is used up, so prompts in progress are not retried either.
        (self.has_more, self.rules.retry_budget) = (false, self.retried);
        let waiting = std::mem::take(&mut self.waiting).into_sorted_vec();
        // `Reverse` sorts the latest first.
        let waited: Vec<_> = waiting.into_iter().rev().map(|Reverse((_, i, _))| i).collect();
        self.ended += waited.len();
        waited
    }

    /// Returns when the next attempt that waits only for its time can begin; always later than `now`.
    pub(crate) fn wakes_at(&self, now: Duration) -> Option<Duration> {
        if !self.has_room() {
            return None;
        }
        let retry = self.waiting.peek().map(|Reverse((due, _, _))| *due);
        let pause = self.pause_end();
        // Without a pause, prompts wait only for the source.
        let prompt = self.may_grow().then_some(pause).filter(|pause| *pause > now);
        let due = retry.map(|due| due.max(pause)).filter(|due| *due > now);
        due.into_iter().chain(prompt).min()
    }

    /// Returns true if every prompt was yielded.
    pub(crate) fn is_over(&self) -> bool {
        !self.has_more && self.held() == 0
    }

    /// Returns the number of prompts that were taken and not yielded.
    pub(crate) fn held(&self) -> usize {
        self.running.len() + self.waiting.len() + self.ended + self.settled.len()
    }

    /// Returns the number of prompts that were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.next
    }

    /// Returns the number of retries so far.
    pub(crate) fn retried(&self) -> u32 {
        self.retried
    }

    fn has_room(&self) -> bool {
        self.running.len() < self.rules.concurrency
    }

    fn may_grow(&self) -> bool {
        let most = self.rules.concurrency.saturating_add(self.rules.window);
        self.has_more && self.held() < most
    }

    fn begin(&mut self, index: u64, retries: u32, now: Duration) {
        // In a streak of failures, each attempt starts an interval: attempts are spaced even while it runs.
        self.running.insert(index, retries);
        self.pause(now);
    }

    /// After failures in a row: no further attempt begins before the interval is over.
    fn pause(&mut self, now: Duration) {
        if let Some(doublings) = self.streak.checked_sub(STREAK) {
            self.paused_until = now.saturating_add(self.rules.backoff.bound(doublings));
        }
    }

    /// Returns the time before which no attempt begins. Without a budget there is nothing to protect.
    fn pause_end(&self) -> Duration {
        if self.has_budget() { self.paused_until } else { Duration::ZERO }
    }

    fn has_budget(&self) -> bool {
        self.retried < self.rules.retry_budget
    }
}
