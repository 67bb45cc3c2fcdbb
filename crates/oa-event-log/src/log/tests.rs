use oa_events::{NestedEvent, ToolUseDelta};
use oa_types::{FinishReason, TextBlock, ThinkingBlock, ToolUseBlock};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::event::{CallAnswer, RunEvent};

fn text(text: &str) -> ConversationEvent {
    ConversationEvent::Agent(AgentEvent::Block(TextBlock::new(text).into()))
}

fn thinking(thinking: &str) -> AgentEvent {
    AgentEvent::Block(ThinkingBlock::new(thinking).into())
}

/// A fragment of a call's arguments, or its start.
fn delta(call: usize, id: Option<&str>, name: Option<&str>, arguments: &str) -> AgentEvent {
    let mut delta = ToolUseDelta::default();
    (delta.call, delta.arguments) = (call, arguments.to_owned());
    (delta.id, delta.name) = (id.map(str::to_owned), name.map(str::to_owned));
    AgentEvent::ToolUseDelta(delta)
}

fn nested(call: &str, agent: &str, event: AgentEvent) -> AgentEvent {
    AgentEvent::Nested(Box::new(NestedEvent::new(call, agent, event)))
}

fn event() -> impl Strategy<Value = ConversationEvent> {
    let agent_event = prop_oneof![
        6 => "[a-zé]{0,4}".prop_map(|piece| AgentEvent::Block(TextBlock::new(piece).into())),
        2 => "[a-z]{0,4}".prop_map(|piece| thinking(&piece)),
        4 => (0..2_usize, 0..8_u8, "[a-z]{0,4}").prop_map(|(call, start, piece)| {
            delta(call, (start & 6 == 6).then_some("c"), (start & 5 == 5).then_some("f"), &piece)
        }),
        1 => Just(AgentEvent::AnswerStart),
        1 => Just(AgentEvent::TurnEnd(FinishReason::Stop)),
    ];
    (agent_event, 0..12_u8).prop_map(|(event, place)| {
        ConversationEvent::Agent(match place {
            0 => nested("c1", "a", event),
            1 => nested("c1", "b", event),
            2 => nested("c2", "a", event),
            3 => nested("c1", "a", nested("c1", "a", event)),
            _ => event,
        })
    })
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
            prop_assert_eq!(log.last(), Some(id));
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
    assert_eq!(log.read(68), Next::Event(id, text(&"ab".repeat(33))));
    assert_eq!(log.read(69), Next::Event(EventId { run: 1, number: 69 }, text("ab")));
}

/// A reader that is far behind gets long texts in several events.
#[test]
fn merged_pieces_are_bounded() {
    let mut log = EventLog::new(1 << 30, 1_000);
    let piece = "x".repeat(LONGEST_TEXT / 64);
    for _ in 0..128 {
        log.push(1, text(&piece));
    }
    let halves =
        [64, 128].map(|number| Some((EventId { run: 1, number }, text(&piece.repeat(64)))));
    assert_eq!(read_all(&log, 1), halves);
}

/// Answers, thinking, arguments, and all of these from sub-agents.
#[test]
fn pieces_of_every_text_are_merged() {
    let texts: [fn(&str) -> AgentEvent; 4] = [
        thinking,
        |text| delta(1, None, None, text),
        |text| nested("c1", "a", thinking(text)),
        |text| nested("c1", "a", nested("c2", "b", delta(0, None, None, text))),
    ];
    for (case, event) in texts.into_iter().enumerate() {
        let event = |text: &str| ConversationEvent::Agent(event(text));
        let mut log = EventLog::new(1 << 20, 1_000);
        for _ in 0..100 {
            log.push(1, event("ab"));
        }
        let all = Next::Event(EventId { run: 1, number: 100 }, event(&"ab".repeat(100)));
        assert_eq!(log.read(1), all, "text {case}");
    }
}

/// The newest are kept, as many as the limits allow and not many fewer.
#[test]
fn limits_count_what_is_held() {
    let long = || "x".repeat(4_000);
    let answered =
        |call_id: &str, answer| ConversationEvent::Answered { call_id: call_id.to_owned(), answer };
    let error = RunEvent { error: Some(long()), ..RunEvent::default() };
    let large = [
        ConversationEvent::Agent(AgentEvent::AnswerRetry(long())),
        answered(&long(), CallAnswer::Approved { input: None }),
        answered("c1", CallAnswer::Approved { input: Some(long().into()) }),
        answered("c1", CallAnswer::Denied { reason: Some(long()) }),
        answered("c1", CallAnswer::Result { content: long().into(), is_error: true }),
        ConversationEvent::Prompt { text: long(), images: Vec::new() },
        ConversationEvent::Prompt { text: String::new(), images: vec![long()] },
        ConversationEvent::Run(error),
    ];
    for event in large {
        let mut log = EventLog::new(100_000, 1_000);
        for _ in 0..100 {
            log.push(1, event.clone());
        }
        assert!((20..=25).contains(&log.entries.len()), "{} of {event:?}", log.entries.len());
    }
    let mut log = EventLog::new(1 << 20, 10);
    for _ in 0..100 {
        log.push(1, ConversationEvent::Agent(AgentEvent::AnswerStart));
    }
    assert_eq!((log.first(), log.next()), (91, 101));
}

/// A piece takes its text and two numbers, whatever its length.
#[test]
fn limits_count_each_piece() {
    for length in [0, 1, 100] {
        let most = 1 << 20;
        let mut log = EventLog::new(most, 1_000_000);
        for _ in 0..200_000 {
            log.push(1, text(&"x".repeat(length)));
        }
        let kept = usize::try_from(log.next() - log.first()).expect("it is small");
        // An entry is dropped as a whole.
        let longest = LONGEST_TEXT * (length + 8);
        let held = kept * (length + 8);
        assert!(held <= most && held + longest + most / 4 > most, "{length}: {held} bytes");
    }
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
