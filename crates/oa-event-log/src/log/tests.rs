use oa_types::{FinishReason, TextBlock, ThinkingBlock, ToolUseBlock};
use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn text(text: &str) -> ConversationEvent {
    ConversationEvent::Agent(AgentEvent::Block(TextBlock::new(text).into()))
}

fn event() -> impl Strategy<Value = ConversationEvent> {
    prop_oneof![
        6 => "[a-zé]{0,4}".prop_map(|piece| text(&piece)),
        2 => "[a-z]{0,4}".prop_map(|piece| {
            ConversationEvent::Agent(AgentEvent::Block(ThinkingBlock::new(piece).into()))
        }),
        1 => Just(ConversationEvent::Agent(AgentEvent::AnswerStart)),
        1 => Just(ConversationEvent::Agent(AgentEvent::TurnEnd(FinishReason::Stop))),
    ]
}

/// Reads everything from a place on; `None` in place of what was dropped.
fn read_all(log: &EventLog, mut from: u64) -> Vec<Option<(EventId, ConversationEvent)>> {
    let mut all = Vec::new();
    loop {
        match log.read(from) {
            Next::Event(id, event) => {
                from = id.number + 1;
                all.push(Some((id, event)));
            }
            Next::Gap(next) => {
                from = next;
                all.push(None);
            }
            Next::Nothing => return all,
        }
    }
}

/// Joins pieces of the same text, as a front end does.
fn joined(events: impl IntoIterator<Item = ConversationEvent>) -> Vec<ConversationEvent> {
    let mut all: Vec<ConversationEvent> = Vec::new();
    for event in events {
        if let Some(ConversationEvent::Agent(last)) = all.last_mut()
            && let ConversationEvent::Agent(more) = &event
            && is_same_text(last, more)
        {
            let more = text_of(more).unwrap_or_default().to_owned();
            text_mut(last).expect("it is text").push_str(&more);
        } else {
            all.push(event);
        }
    }
    all
}

proptest! {
    /// Whoever reads from any place gets exactly what was written from there on.
    #[test]
    fn events_are_read_exactly_once(
        events in prop::collection::vec(event(), 0..60), from in 0_usize..300, times in prop_oneof![Just(1_usize), Just(50)],
    ) {
        let mut log = EventLog::new(usize::MAX, usize::MAX);
        // Long texts as well, of which a reader is far behind.
        let events: Vec<_> = events.into_iter().flat_map(|event| vec![event; times]).collect();
        for event in &events {
            log.push(7, event.clone());
        }
        let from = from.min(events.len());
        let read = read_all(&log, from as u64 + 1);
        let read: Option<Vec<_>> = read.into_iter().collect();
        let read = read.expect("nothing was dropped");
        prop_assert_eq!(
            joined(read.iter().map(|(_, event)| event.clone())),
            joined(events[from..].iter().cloned())
        );
        // Ids only grow, and the last names the last event.
        prop_assert!(read.windows(2).all(|pair| pair[0].0 < pair[1].0));
        if from < events.len() {
            prop_assert_eq!(read.last().expect("there is one").0.number, events.len() as u64);
        }
    }

    /// A reader that keeps up gets each event as it was written.
    #[test]
    fn near_readers_get_each_event(events in prop::collection::vec(event(), 0..60)) {
        let mut log = EventLog::new(1 << 20, 1_000);
        for event in events {
            let id = log.push(7, event.clone());
            prop_assert_eq!(log.read(id.number), Next::Event(id, event));
        }
    }

    /// However much is written, the log is bounded, and says what is missing.
    #[test]
    fn log_is_bounded(events in prop::collection::vec(event(), 1..200), most in 300_usize..3_000) {
        let mut log = EventLog::new(most, 8);
        for event in &events {
            log.push(7, event.clone());
            prop_assert!(log.entries.len() <= 8);
            prop_assert!(log.bytes <= most || log.entries.len() == 1);
            prop_assert_eq!(log.bytes, log.entries.iter().map(|entry| entry.bytes).sum::<usize>());
        }
        let read = read_all(&log, 1);
        let gaps = read.iter().filter(|event| event.is_none()).count();
        prop_assert_eq!(gaps, usize::from(log.first() > 1));
        let kept = &events[usize::try_from(log.first()).expect("it is small") - 1..];
        prop_assert_eq!(
            joined(read.into_iter().flatten().map(|(_, event)| event)),
            joined(kept.iter().cloned())
        );
    }

    /// An event that was seen and is known leads to the next one; any other leads nowhere.
    #[test]
    fn only_known_events_are_resumed(
        runs in prop::collection::vec(prop::collection::vec(event(), 1..6), 1..5),
        run in 0_u64..8, number in 0_u64..30,
    ) {
        let mut log = EventLog::new(1 << 20, 1_000);
        let mut known = Vec::new();
        for (run, events) in (2..).zip(runs) {
            known.extend(events.into_iter().map(|event| log.push(run, event)));
        }
        let seen = EventId { run, number };
        let next = known.contains(&seen).then_some(number + 1);
        prop_assert_eq!(log.after(seen), next);
    }
}

#[test]
fn last_dropped_event_can_be_resumed() {
    let mut log = EventLog::new(1 << 20, 1_000);
    let seen = log.push(1, text("a"));
    log.push(2, text("b"));
    log.drop_before(2);
    assert_eq!(log.after(seen), Some(2));
    assert_eq!(log.read(1), Next::Gap(2));
}

#[test]
fn long_texts_are_read_in_pieces() {
    let mut log = EventLog::new(1 << 30, 1_000);
    for _ in 0..10 {
        log.push(1, text(&"x".repeat(LONGEST_TEXT / 3)));
    }
    let pieces: Vec<_> = read_all(&log, 1).into_iter().flatten().collect();
    assert_eq!(pieces.len(), 10, "a reader that is near gets each");
    let longest = pieces.iter().map(|(_, event)| match event {
        ConversationEvent::Agent(event) => text_of(event).map_or(0, str::len),
        _ => 0,
    });
    assert!(longest.max() <= Some(LONGEST_TEXT));
}

#[test]
fn far_readers_get_merged_pieces() {
    let mut log = EventLog::new(1 << 20, 1_000);
    for _ in 0..100 {
        log.push(1, text("ab"));
    }
    let id = EventId { run: 1, number: 100 };
    assert_eq!(log.read(11), Next::Event(id, text(&"ab".repeat(90))));
    assert_eq!(log.read(99), Next::Event(EventId { run: 1, number: 99 }, text("ab")));
}

/// They add nothing to a text, but each has a number.
#[test]
fn empty_pieces_are_bounded() {
    let mut log = EventLog::new(1 << 16, 100);
    for _ in 0..200_000 {
        log.push(1, text(""));
    }
    assert!(log.bytes <= 1 << 19, "{} bytes in {} entries", log.bytes, log.entries.len());
    assert_eq!(log.after(EventId { run: 1, number: 200_000 }), Some(200_001));
}

#[test]
fn event_ids_round_trip() {
    let id = EventId { run: 1_700_000_000_000, number: 345 };
    assert_eq!(id.to_string().parse(), Ok(id));
    for wrong in ["", "1", "1-", "-1", "a-1", "1-1-1", "1--1"] {
        assert_eq!(wrong.parse::<EventId>(), Err(()), "{wrong}");
    }
}

/// A list takes many times the length of its text, and the log is as large as its memory.
#[test]
fn events_count_as_they_are_held() {
    let mut log = EventLog::new(1 << 20, 1_000);
    let call = |number: usize| {
        let input = Value::Array(vec![Value::from(0); 10_000]);
        ToolUseBlock::new(number.to_string(), "f", input)
    };
    for number in 0..100 {
        log.push(7, ConversationEvent::Agent(AgentEvent::Block(call(number).into())));
    }
    let held = log.entries.len() * 10_000 * size_of::<Value>();
    assert!((1 << 18..=1 << 20).contains(&held), "{held} bytes in {} entries", log.entries.len());
}
