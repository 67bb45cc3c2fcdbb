use std::sync::Arc;

use oa_client::{AgentOptions, Client};
use oa_event_log::{EventId, RunEvent, RunState, WaitingCall, WaitingKind};
use oa_sse::Parser;
use oa_testkit::MemoryServer;
use oa_types::{FinishReason, ToolUseBlock, Usage};
use proptest::prelude::*;
use serde_json::Value;
use tokio::sync::watch;

use super::*;
use crate::conversation::{Begin, Conversation, From, Viewer};
use crate::limits::{Permit, ServeLimits};
use crate::seat::Seat;
use crate::tests::sample_turn::{everything, turn};

#[test]
fn every_event_is_encoded() {
    let prompt = ConversationEvent::Prompt {
        text: "Look:\ndata: [DONE]".to_owned(),
        images: vec!["data:image/png;base64,AAAA".to_owned()],
    };
    let answered = |answer| ConversationEvent::Answered { call_id: "call_1".to_owned(), answer };
    let mut usage = Usage::default();
    (usage.prompt_tokens, usage.completion_tokens) = (Some(11), Some(7));
    let call = ToolUseBlock::new("call_1", "add", json!({"a": 1}));
    let mut waiting = WaitingCall::new(call, WaitingKind::Result);
    waiting.prompt = Some("Adds two numbers".to_owned());
    let run = |state| RunEvent { run: 7, state, ..RunEvent::default() };
    let mut ended = run(RunState::Ended);
    (ended.finish_reason, ended.usage) = (Some(FinishReason::WaitsForResults), Some(usage));
    ended.waiting = vec![waiting];
    let mut failed = run(RunState::Failed);
    (failed.error, failed.status) = (Some("model exploded".to_owned()), Some(503));
    let mut events = vec![prompt];
    events.extend(everything());
    events.extend([
        answered(CallAnswer::Approved { input: None }),
        answered(CallAnswer::Approved { input: Some(json!({"a": 2})) }),
        answered(CallAnswer::Denied { reason: None }),
        answered(CallAnswer::Denied { reason: Some("not now".to_owned()) }),
        answered(CallAnswer::Result { content: json!("teal"), is_error: false }),
        answered(CallAnswer::Result { content: json!({"no": "color"}), is_error: true }),
        ConversationEvent::Run(ended),
        ConversationEvent::Run(failed),
    ]);
    let mut out = Vec::new();
    for (number, event) in (1..).zip(events) {
        EventFrames.write(View::Event(EventId { run: 7, number }, event), &mut out);
    }
    EventFrames.write(View::Gap, &mut out);
    insta::assert_snapshot!(String::from_utf8(out).expect("frames are text"));
}

/// A conversation as a front end knows it: the events so far, with pieces of one text joined.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    events: Vec<(String, Value)>,
    last: Option<EventId>,
}

impl Known {
    fn add(&mut self, kind: &str, data: Value) {
        if let Some((last, known)) = self.events.last_mut()
            && last == kind
            && kind == "agent"
            && join(known, &data)
        {
            return;
        }
        self.events.push((kind.to_owned(), data));
    }
}

/// Appends a piece of the same text; false if it is another.
fn join(known: &mut Value, more: &Value) -> bool {
    if known["type"] != more["type"] {
        return false;
    }
    let (data, piece) = (&mut known["data"], &more["data"]);
    let field = match more["type"].as_str() {
        Some("nested") => {
            return data["call_id"] == piece["call_id"]
                && join(&mut data["event"], &piece["event"]);
        }
        Some("block") if data["type"] == piece["type"] && piece["type"] == "text" => "text",
        Some("block") if data["type"] == piece["type"] && piece["type"] == "thinking" => "thinking",
        Some("tool_use_delta")
            if data["call"] == piece["call"] && data["id"].is_null() && piece["id"].is_null() =>
        {
            "arguments"
        }
        _ => return false,
    };
    let joined = format!(
        "{}{}",
        data[field].as_str().unwrap_or_default(),
        piece[field].as_str().unwrap_or_default()
    );
    data[field] = joined.into();
    true
}

/// A front end, which follows the protocol: it goes on from the last event it has seen, and loads the conversation again
/// when events are missing.
#[derive(Default)]
struct FrontEnd {
    known: Known,
    viewer: Option<Viewer>,
    gaps: usize,
}

impl FrontEnd {
    /// Reads up to so many frames.
    fn read(
        &mut self,
        conversation: &Arc<Conversation>,
        all: &Known,
        most: usize,
    ) -> Result<(), TestCaseError> {
        if self.viewer.is_none() {
            if self.known.last.is_none() {
                // Whoever opens a conversation loads it.
                self.known = all.clone();
            }
            // The id goes over the wire, too.
            let seen = self
                .known
                .last
                .map(|id| id.to_string().parse().expect("ids are read as they are written"));
            let from = seen.map_or(From::First, From::Event);
            self.viewer = Some(conversation.view(from).expect("there is room"));
        }
        let viewer = self.viewer.as_mut().expect("it was connected");
        for _ in 0..most {
            let Some(view) = viewer.read() else { break };
            let (mut out, mut parser) = (Vec::new(), Parser::new());
            EventFrames.write(view, &mut out);
            parser.push(out.into());
            let event = parser.next_event().expect("it is valid").expect("a frame is an event");
            if event.is_named("gap") {
                self.gaps += 1;
                self.known = all.clone();
                continue;
            }
            let id: EventId = event.last_event_id().parse().expect("each event has an id");
            if Some(id) <= self.known.last {
                // Of what was loaded.
                prop_assert!(self.gaps > 0, "{id} comes twice");
                continue;
            }
            self.known
                .add(&event.event(), serde_json::from_str(&event.data()).expect("data is JSON"));
            self.known.last = Some(id);
        }
        Ok(())
    }
}

/// Notes an event as a front end should know it.
fn record(all: &mut Known, run: u64, event: ConversationEvent) {
    let id = EventId { run, number: all.last.map_or(1, |id| id.number + 1) };
    let (mut out, mut parser) = (Vec::new(), Parser::new());
    EventFrames.write(View::Event(id, event), &mut out);
    parser.push(out.into());
    let event = parser.next_event().expect("it is valid").expect("a frame is an event");
    all.add(&event.event(), serde_json::from_str(&event.data()).expect("data is JSON"));
    all.last = Some(id);
}

fn conversation(limits: &ServeLimits) -> Arc<Conversation> {
    let options = AgentOptions::builder().model("any").transport(MemoryServer::new([])).build();
    let client = Client::new(options.expect("the options are valid")).expect("they can be used");
    Arc::new(Conversation::new(Seat::new(client, None), limits))
}

proptest! {
    /// However often viewers lose their connection, and wherever they go on: in the end all of them know the same, in
    /// order, with nothing missing and nothing twice.
    #[test]
    fn reconnecting_viewers_miss_nothing(
        runs in prop::collection::vec(turn(), 1..4),
        fates in prop::collection::vec((0..4_u8, 1..6_usize), 1..80),
        kept in prop_oneof![Just(10_000_usize), 1..40_usize],
    ) {
        let limits = ServeLimits { kept_events: kept, ..ServeLimits::default() };
        let conversation = conversation(&limits);
        let steer = Client::new(AgentOptions::builder().model("any").transport(MemoryServer::new([])).build().expect("valid"))
            .expect("usable").steer_handle();
        let permits = Arc::new(watch::Sender::new(0));
        let mut front_ends: [FrontEnd; 3] = Default::default();
        let (mut all, mut fates) = (Known::default(), fates.iter().cycle());
        let count = runs.len();
        for (number, events) in (1..).zip(runs) {
            let permit = Permit::take(&permits, 1).expect("the run before has ended");
            let prompt = ConversationEvent::Prompt { text: format!("prompt {number}"), images: Vec::new() };
            let begin = Begin { steer: steer.clone(), permit, now: number * 1_000, prompt: Some(prompt.clone()), front: None };
            let run = conversation.begin(begin).expect("nothing runs");
            record(&mut all, run.id, prompt);
            record(&mut all, run.id, ConversationEvent::Run(RunEvent { run: run.id, ..RunEvent::default() }));
            for event in events {
                match event {
                    ConversationEvent::Run(event) if event.state == RunState::Started => continue,
                    ConversationEvent::Run(event) => {
                        let id = run.id;
                        run.end(event.clone(), true);
                        record(&mut all, id, ConversationEvent::Run(RunEvent { run: id, ..event }));
                        break;
                    }
                    event => {
                        run.publish(event.clone());
                        record(&mut all, run.id, event);
                    }
                }
                for front_end in &mut front_ends {
                    match fates.next().expect("they go round") {
                        (0, _) => front_end.viewer = None,
                        (1, _) => {}
                        (_, most) => front_end.read(&conversation, &all, *most)?,
                    }
                }
            }
        }
        for front_end in &mut front_ends {
            front_end.read(&conversation, &all, usize::MAX)?;
            prop_assert_eq!(&front_end.known, &all);
            prop_assert!(front_end.gaps == 0 || kept < 10_000 || count > 2, "events of two runs are kept");
        }
    }
}
