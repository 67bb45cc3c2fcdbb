//! Events outside the journal: numbered when published, so that readers can discard those of abandoned attempts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

use oa_events::AgentEvent;
use serde::{Deserialize, Serialize};

/// Publishes events as they happen, for example to a message queue that front ends read.
///
/// Delivery is not guaranteed: `status` and `history` are authoritative. An event whose `publish` panics is lost. A step
/// that is performed again publishes its events again, under a new attempt. An [`EventReader`] discards events of
/// abandoned attempts.
pub trait EventSink: Send + Sync {
    /// Publishes an event. It must not block. Events of one attempt must arrive in the order of their numbers.
    fn publish(&self, event: SessionEvent);
}

impl<F: Fn(SessionEvent) + Send + Sync> EventSink for F {
    fn publish(&self, event: SessionEvent) {
        self(event);
    }
}

/// An event of a turn, with its step and attempt.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionEvent {
    /// The session.
    pub session: String,
    /// The number of the turn in its session, from 1.
    pub turn: u64,
    /// The step of the turn: `ask 1`, `call search call_1`.
    pub step: String,
    /// The attempt at the step: its start time in microseconds since 1970. Events that every replay publishes alike have
    /// the start time of their turn. A later attempt voids the earlier ones. Workers on several machines need clocks
    /// that agree: the events of an attempt whose clock is behind are discarded.
    pub attempt: u64,
    /// The number of the event in its attempt, from 0.
    pub seq: u64,
    /// The event.
    pub event: AgentEvent,
}

/// The step of the events that every replay publishes alike.
pub(crate) const SHOW: &str = "show";

/// Numbers the events of one attempt.
#[derive(Debug)]
pub(crate) struct Numbered {
    session: String,
    turn: u64,
    step: String,
    attempt: u64,
    next: AtomicU64,
}

impl Numbered {
    pub(crate) fn new(session: &str, turn: u64, step: &str, attempt: u64) -> Self {
        let (session, step) = (session.to_owned(), step.to_owned());
        Self { session, turn, step, attempt, next: AtomicU64::new(0) }
    }

    pub(crate) fn number(&self, event: AgentEvent) -> SessionEvent {
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        let Self { session, turn, step, attempt, .. } = self;
        let (session, step) = (session.clone(), step.clone());
        SessionEvent { session, turn: *turn, step, attempt: *attempt, seq, event }
    }
}

/// Reads the events of one session: delivers each once, and none of an attempt after a later one has begun.
///
/// ```
/// use oa_restate::{EventReader, SessionEvent};
/// use serde_json::{from_value, json};
///
/// let event = |attempt: u64, seq: u64, text: &str| {
///     let block = json!({"type": "text", "text": text});
///     from_value::<SessionEvent>(json!({
///         "session": "s", "turn": 1, "step": "ask 1", "attempt": attempt, "seq": seq,
///         "event": {"type": "block", "data": block},
///     }))
/// };
/// let mut reader = EventReader::new();
/// assert!(!reader.read(event(1, 0, "It")?).expect("it is new").is_restart);
/// assert!(reader.read(event(1, 0, "It")?).is_none(), "it was delivered twice");
/// // The worker died, and another one repeats the request: a front end removes its output of this step.
/// assert!(reader.read(event(2, 0, "There")?).expect("it is new").is_restart);
/// assert!(reader.read(event(1, 1, " is")?).is_none(), "the attempt is void");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventReader {
    turn: u64,
    /// The current attempt of each step, and the number of its next event.
    steps: BTreeMap<String, (u64, u64)>,
    /// The latest attempt of the forgotten steps.
    forgotten: u64,
}

/// An event to show.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReadEvent {
    /// The number of its turn.
    pub turn: u64,
    /// Its step.
    pub step: String,
    /// True if all earlier events of this step are void.
    pub is_restart: bool,
    /// The event.
    pub event: AgentEvent,
}

impl EventReader {
    /// The number of steps of a turn that a reader remembers. Late events of earlier steps are dropped.
    pub const MAX_STEPS: usize = 4_096;

    /// Creates a reader that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the event to show; `None` if it was read before, or belongs to a void attempt or an earlier turn.
    pub fn read(&mut self, event: SessionEvent) -> Option<ReadEvent> {
        let SessionEvent { turn, step, attempt, seq, event, .. } = event;
        if turn < self.turn {
            return None;
        }
        if turn > self.turn {
            *self = Self { turn, ..Self::default() };
        }
        let is_known = self.steps.contains_key(&step);
        if !is_known {
            // Attempts are start times, so a step that is no newer than a forgotten one counts as forgotten
            // itself.
            if step != SHOW && attempt <= self.forgotten {
                return None;
            }
            self.forget_one();
        }
        let is_restart = match self.steps.entry(step.clone()) {
            Entry::Vacant(entry) => {
                entry.insert((attempt, seq.saturating_add(1)));
                false
            }
            Entry::Occupied(mut entry) => {
                let (known, next) = *entry.get();
                if attempt < known || attempt == known && seq < next {
                    return None;
                }
                entry.insert((attempt, seq.saturating_add(1)));
                attempt > known
            }
        };
        Some(ReadEvent { turn, step, is_restart, event })
    }

    /// Makes room for a step.
    fn forget_one(&mut self) {
        if self.steps.len() < Self::MAX_STEPS {
            return;
        }
        let attempts = self.steps.iter().map(|(step, (attempt, _))| (*attempt, step));
        // The oldest of all goes on until the turn ends, so it stays.
        let oldest = attempts.filter(|(_, step)| *step != SHOW).min();
        if let Some((attempt, step)) = oldest.map(|(attempt, step)| (attempt, step.clone())) {
            self.forgotten = self.forgotten.max(attempt);
            self.steps.remove(&step);
        }
    }
}

#[cfg(test)]
mod tests {
    use oa_types::TextBlock;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const STEPS: [&str; 3] = ["ask 1", "call a", "ask 2"];

    /// One front end's view: what it shows of each step.
    fn view(events: impl IntoIterator<Item = SessionEvent>) -> BTreeMap<String, Vec<String>> {
        let mut reader = EventReader::new();
        let mut shown: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for ReadEvent { step, is_restart, event, .. } in
            events.into_iter().filter_map(|event| reader.read(event))
        {
            let lines = shown.entry(step).or_default();
            if is_restart {
                lines.clear();
            }
            lines.push(format!("{event:?}"));
        }
        shown
    }

    fn event(step: usize, attempt: u64, seq: u64) -> SessionEvent {
        let numbered = Numbered::new("s", 1, STEPS[step], attempt);
        numbered.next.store(seq, Ordering::Relaxed);
        let text = format!("{step} {attempt} {seq}");
        numbered.number(AgentEvent::Block(TextBlock::new(text).into()))
    }

    proptest! {
        /// Attempts that overlap, and events that are delivered again: the view is what the last attempt of each step
        /// told.
        #[test]
        fn only_the_last_attempt_is_shown(
            attempts in vec((0..3_usize, 1..6_u64), 1..8),
            order in vec(any::<prop::sample::Index>(), 0..120),
        ) {
            // The events of each attempt, in their order; attempts are numbered from 1 in the order in which they
            // begin.
            let mut queues: Vec<Vec<SessionEvent>> = attempts
                .iter()
                .zip(1..)
                .map(|(&(step, events), attempt)| {
                    (0..events).rev().map(|seq| event(step, attempt, seq)).collect()
                })
                .collect();
            let mut delivered: Vec<SessionEvent> = Vec::new();
            for index in order {
                // Either an event again, or the next one of some attempt.
                if index.index(4) == 0 && !delivered.is_empty() {
                    let again = delivered[index.index(delivered.len())].clone();
                    delivered.push(again);
                    continue;
                }
                let place = index.index(queues.len());
                delivered.extend(queues[place].pop());
            }
            delivered.extend(queues.into_iter().flat_map(|queue| queue.into_iter().rev()));
            let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (&(step, events), attempt) in attempts.iter().zip(1..) {
                let lines = (0..events).map(|seq| format!("{:?}", event(step, attempt, seq).event));
                expected.insert(STEPS[step].to_owned(), lines.collect());
            }
            prop_assert_eq!(view(delivered), expected);
        }
    }

    #[test]
    fn events_of_earlier_turns_are_dropped() {
        let mut reader = EventReader::new();
        let mut second = event(0, 5, 0);
        second.turn = 2;
        assert!(reader.read(second).is_some());
        assert!(reader.read(event(0, 9, 0)).is_none());
    }

    /// A killed turn leaves its number to the next one.
    #[test]
    fn a_repeated_turn_is_shown() {
        let shown =
            |began: u64, seq: u64| SessionEvent { step: SHOW.to_owned(), ..event(0, began, seq) };
        let mut reader = EventReader::new();
        for seq in 0..3 {
            assert!(reader.read(shown(5, seq)).is_some());
        }
        assert!(reader.read(shown(9, 0)).expect("it is new").is_restart);
        assert!(reader.read(shown(5, 3)).is_none());
        // The turn goes on after thousands of steps.
        for number in 0..=EventReader::MAX_STEPS as u64 {
            let step = SessionEvent { step: format!("ask {number}"), ..event(0, 10 + number, 0) };
            assert!(reader.read(step).is_some());
        }
        assert!(reader.read(shown(9, 1)).is_some());
    }

    #[test]
    fn memory_is_bounded() {
        let mut reader = EventReader::new();
        for number in 1..=EventReader::MAX_STEPS as u64 + 100 {
            let step = SessionEvent { step: format!("ask {number}"), ..event(0, number, 0) };
            assert!(reader.read(step).is_some());
        }
        assert_eq!(reader.steps.len(), EventReader::MAX_STEPS);
        let late = SessionEvent { step: "ask 7".to_owned(), ..event(0, 7, 1) };
        assert!(reader.read(late).is_none(), "its step was forgotten");
    }
}
