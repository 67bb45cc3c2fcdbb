//! Turns for the tests of encoders: one that has everything, and any that can happen.

use std::sync::Arc;

use oa_event_log::{ConversationEvent, EventId, RunEvent, RunState, WaitingCall, WaitingKind};
use oa_events::{AgentEvent, NestedEvent, ToolUseDelta};
use oa_types::{
    AssistantMessage, ContentBlock, FinishReason, TextBlock, ThinkingBlock, ToolResultBlock,
    ToolUseBlock, ToolUseError, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversation::View;
use crate::encoder::Encoder;

const RUN: u64 = 7;

/// One answer of the model.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Text, or thinking if true.
    texts: Vec<(bool, String)>,
    calls: Vec<Fate>,
}

/// The fate of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// A sub-agent does it.
    Agent,
    Done,
    Failed,
    Malformed,
    /// It has no delta: it was recognized in the text.
    Unannounced,
    WaitsForApproval,
    WaitsForResult,
}

/// The end of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Ended,
    FailedAfter(usize),
    InterruptedAfter(usize),
}

pub(crate) fn turn() -> impl Strategy<Value = Vec<ConversationEvent>> {
    let fate = prop_oneof![
        1 => Just(Fate::Agent),
        3 => Just(Fate::Done),
        1 => Just(Fate::Failed),
        1 => Just(Fate::Malformed),
        1 => Just(Fate::Unannounced),
        1 => Just(Fate::WaitsForApproval),
        1 => Just(Fate::WaitsForResult),
    ];
    let texts = prop::collection::vec((any::<bool>(), "[a-z \n]{0,6}"), 0..5);
    let answer = (texts, prop::collection::vec(fate, 0..4))
        .prop_map(|(texts, calls)| Answer { texts, calls });
    let end = prop_oneof![
        2 => Just(End::Ended),
        1 => (0_usize..60).prop_map(End::FailedAfter),
        1 => (0_usize..60).prop_map(End::InterruptedAfter),
    ];
    (prop::collection::vec(answer, 1..4), end).prop_map(|(answers, end)| events(&answers, end))
}

/// Returns a turn with text, thinking, calls of each kind, and questions.
pub(crate) fn everything() -> Vec<ConversationEvent> {
    let text = |text: &str| (false, text.to_owned());
    let first = Answer {
        texts: vec![(true, "Hm.".to_owned()), text("data: [DONE]\n\n"), text("Let me see.")],
        calls: vec![Fate::Done, Fate::Failed, Fate::Malformed, Fate::Agent],
    };
    let second = Answer {
        texts: vec![text("Now this.")],
        calls: vec![Fate::WaitsForApproval, Fate::WaitsForResult],
    };
    events(&[first, second], End::Ended)
}

fn block(block: impl Into<ContentBlock>) -> AgentEvent {
    AgentEvent::Block(block.into())
}

fn events(answers: &[Answer], end: End) -> Vec<ConversationEvent> {
    let mut events = Vec::new();
    let mut waiting = Vec::new();
    let mut calls = 0;
    for answer in answers {
        waiting.clear();
        push_answer(answer, &mut calls, &mut events, &mut waiting);
        if !waiting.is_empty() {
            break;
        }
    }
    let run = |state| RunEvent { run: RUN, state, ..RunEvent::default() };
    let mut last = run(RunState::Ended);
    match end {
        End::Ended => {
            let waits = !waiting.is_empty();
            let reason = if waits { FinishReason::ApprovalPending } else { FinishReason::Stop };
            last.finish_reason = Some(reason);
            last.waiting = waiting;
        }
        End::FailedAfter(count) => {
            events.truncate(count);
            last.state = RunState::Failed;
            last.error = Some("model exploded".to_owned());
        }
        End::InterruptedAfter(count) => {
            events.truncate(count);
            last.finish_reason = Some(FinishReason::Interrupted);
        }
    }
    let events = events.into_iter().map(ConversationEvent::Agent);
    let started = ConversationEvent::Run(run(RunState::Started));
    [started].into_iter().chain(events).chain([ConversationEvent::Run(last)]).collect()
}

fn push_answer(
    answer: &Answer,
    calls: &mut usize,
    events: &mut Vec<AgentEvent>,
    waiting: &mut Vec<WaitingCall>,
) {
    events.push(AgentEvent::AnswerStart);
    events.extend(answer.texts.iter().map(|(is_thinking, text)| {
        if *is_thinking { block(ThinkingBlock::new(text)) } else { block(TextBlock::new(text)) }
    }));
    let first = *calls;
    let id = |place: usize| format!("call_{}", first + place);
    for (place, fate) in answer.calls.iter().enumerate() {
        if *fate == Fate::Unannounced {
            continue;
        }
        let mut delta = ToolUseDelta::default();
        delta.call = place;
        (delta.id, delta.name) = (Some(id(place)), Some("add".to_owned()));
        events.push(AgentEvent::ToolUseDelta(delta));
        for arguments in ["{\"a\": ", "1}"] {
            let mut delta = ToolUseDelta::default();
            delta.call = place;
            delta.arguments = arguments.to_owned();
            events.push(AgentEvent::ToolUseDelta(delta));
        }
    }
    let mut message = AssistantMessage::new(Vec::new());
    let mut usage = Usage::default();
    (usage.prompt_tokens, usage.completion_tokens) = (Some(11), Some(7));
    message.usage = Some(usage);
    events.push(AgentEvent::AnswerEnd(Arc::new(message)));
    let input = json!({"a": 1});
    for (place, fate) in answer.calls.iter().enumerate() {
        if *fate == Fate::Malformed {
            let mut error = ToolUseError::new("not JSON", "{\"a\": ");
            (error.id, error.name) = (Some(id(place)), Some("add".to_owned()));
            events.push(block(error));
        } else {
            events.push(block(ToolUseBlock::new(id(place), "add", input.clone())));
        }
    }
    for (place, fate) in answer.calls.iter().enumerate() {
        let call = || ToolUseBlock::new(id(place), "add", input.clone());
        let content = match fate {
            Fate::WaitsForApproval => {
                waiting.push(WaitingCall::new(call(), WaitingKind::Approval));
                continue;
            }
            Fate::WaitsForResult => {
                waiting.push(WaitingCall::new(call(), WaitingKind::Result));
                continue;
            }
            Fate::Agent | Fate::Done | Fate::Unannounced => json!({"sum": 1, "__proto__": 2}),
            Fate::Failed | Fate::Malformed => json!({"error": "no such city", "tool": "add"}),
        };
        if *fate == Fate::Agent {
            let nested = |event| NestedEvent::new(id(place), "helper", event);
            let inner = [
                AgentEvent::AnswerStart,
                block(ThinkingBlock::new("Inside.")),
                block(TextBlock::new("Hello from inside.")),
                AgentEvent::TurnEnd(FinishReason::Stop),
            ];
            events.extend(inner.map(|event| AgentEvent::Nested(Box::new(nested(event)))));
        }
        let mut result = ToolResultBlock::new(id(place), content);
        result.is_error = matches!(fate, Fate::Failed | Fate::Malformed);
        if *fate == Fate::Failed {
            // The error of a complete call is told before its result.
            let mut error = ToolUseError::new("no such city", "");
            error.id = Some(id(place));
            events.push(block(error));
        }
        events.push(block(result));
    }
    *calls += answer.calls.len();
}

/// Encodes events, and returns the data of the frames; `[DONE]` is a string.
pub(crate) fn encode(
    encoder: &mut impl Encoder,
    events: impl IntoIterator<Item = ConversationEvent>,
) -> Vec<Value> {
    let mut out = Vec::new();
    for (number, event) in (1..).zip(events) {
        encoder.write(View::Event(EventId { run: RUN, number }, event), &mut out);
    }
    let out = String::from_utf8(out).unwrap_or_default();
    let data = |frame: &str| {
        let lines: Vec<_> = frame.lines().collect();
        let [line] = &*lines else { panic!("one line of data: {frame}") };
        let data = line.strip_prefix("data: ")?;
        Some(serde_json::from_str(data).unwrap_or_else(|_| data.into()))
    };
    out.split("\n\n").filter(|frame| !frame.is_empty()).filter_map(data).collect()
}

/// Returns the text of a turn as a client must show it.
pub(crate) fn text_of(events: &[ConversationEvent]) -> String {
    let text = |event: &ConversationEvent| match event {
        ConversationEvent::Agent(AgentEvent::Block(ContentBlock::Text(block))) => {
            Some(block.text.clone())
        }
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Returns frames as lines, for snapshots.
pub(crate) fn lines(frames: &[Value]) -> String {
    frames.iter().map(|frame| format!("{frame}\n")).collect()
}
