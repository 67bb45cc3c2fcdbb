//! Turns with plans, steering, external calls, shortening, answer hooks and stop conditions: driven by steps, they
//! equal those of a client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use oa_client::{AgentEvent, AgentOptions, Client};
use oa_context::{ContextPolicy, Overflow};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_tools::tool;
use oa_turn::{DriveError, Turn, drive};
use oa_types::{FinishReason, Message, Outcome};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use suite::talk::cases;

use crate::context::is_summary;
use crate::steps::{CALLS, Ended, block_on, by_kind, call, line, requests, tools};

/// One generated turn.
#[derive(Clone, Debug)]
struct Opening {
    /// The calls of each answer, by their fate; the one after the last of `CALLS` is of an external tool.
    rounds: Vec<Vec<usize>>,
    /// The plans of requests, by their number.
    plans: Vec<u8>,
    /// The size of the context, and whether dropped messages are summarized.
    context: Option<(usize, bool)>,
    /// The number of requests that the server refuses as too long, and whether it says so in the stream.
    refused: (usize, bool),
    /// The number of answers that a hook refuses.
    retries: u32,
    /// The number of messages that are steered before each part of the turn.
    steered: Vec<usize>,
    /// The number of calls in an answer that ends the turn.
    stops_at: usize,
}

fn opening() -> impl Strategy<Value = Opening> {
    let context = prop::option::of((400..3_000_usize, any::<bool>()));
    let refused = (prop_oneof![2 => Just(0), 1 => 1..3_usize], any::<bool>());
    (
        vec(vec(0..=CALLS.len(), 1..4), 0..6),
        vec(0..6_u8, 1..8),
        context,
        refused,
        0..4_u32,
        vec(0..3_usize, 1..4),
        2..6_usize,
    )
        .prop_map(|(rounds, plans, context, refused, retries, steered, stops_at)| Opening {
            rounds,
            plans,
            context,
            refused,
            retries,
            steered,
            stops_at,
        })
}

fn server(opening: &Opening) -> MemoryServer {
    let mut number = 0;
    let replies = opening.rounds.iter().map(|calls| {
        // Long enough for a context to overflow.
        calls.iter().fold(Reply::new().say("I'll look. ".repeat(60)), |reply, &fate| {
            number += 1;
            let (id, name, input) = call(CALLS.get(fate).copied().unwrap_or("ask"), number);
            reply.call_with_id(id, name, input)
        })
    });
    let replies: Vec<Reply> = replies.collect();
    let (asked, refusals) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (most, in_stream) = opening.refused;
    let next = move |request: &Request| {
        if is_summary(request) {
            return Reply::text("They looked.").usage(50, 5);
        }
        // The first request has nothing to spare.
        if asked.load(Ordering::SeqCst) > 0 && refusals.fetch_add(1, Ordering::SeqCst) < most {
            let error = json!({
                "code": 400,
                "message": "request (900 tokens) exceeds the available context size (800 tokens)",
                "type": "exceed_context_size_error",
            });
            return match in_stream {
                true => Reply::new().without_usage().event(json!({ "error": error })),
                false => Reply::json(400, json!({ "error": error })),
            };
        }
        let reply = replies.get(asked.fetch_add(1, Ordering::SeqCst)).cloned();
        reply.unwrap_or_else(|| Reply::text("Done."))
    };
    MemoryServer::new(Script::new().strict().otherwise(Reply::by(next)))
}

fn options(
    opening: &Opening,
    server: &MemoryServer,
    ran: &Arc<Mutex<Vec<String>>>,
) -> AgentOptions {
    let retries = opening.retries;
    let hooks = Hooks::new()
        .add_user_prompt_submit(|event| async move {
            // Of those that are steered some are blocked, and some changed.
            match event.prompt.bytes().last() {
                Some(b'1') => Some(HookDecision::block("not this")),
                Some(b'2') => Some(HookDecision::modify_prompt("Please.", "politeness")),
                _ => None,
            }
        })
        .add_pre_tool_use(|event| async move {
            (event.tool_name == "blocked").then(|| HookDecision::block("not now"))
        })
        .add_answer(move |event| async move {
            (event.retries < retries).then(|| HookDecision::retry("Not like this."))
        });
    let plans = opening.plans.clone();
    let stops_at = opening.stops_at;
    let ask = tool("ask", "Asks a person").param("n", "integer").external();
    let mut options = AgentOptions::builder()
        .model("any")
        .transport(server.clone())
        .tools(tools(ran))
        .tool(ask)
        .hooks(hooks)
        .auto_execute_tools(true)
        .max_tool_iterations(4)
        .before_step(move |step| {
            let plan = plans[step.number() as usize % plans.len()];
            async move {
                match plan {
                    0 => drop(step.only_tools(["add", "ask"])),
                    1 => drop(step.instructions("Hurry.").model("other")),
                    2 if step.number() > 2 => drop(step.end("enough")),
                    3 => drop(step.temperature(0.5).max_tokens(50).extra_body([("seed", 7)])),
                    _ => {}
                }
            }
        })
        .stop_when(move |step| step.last_calls().len() >= stops_at);
    if let Some((size, summarize)) = opening.context {
        let overflow = if summarize { Overflow::Summarize } else { Overflow::DropOldest };
        options = options.context(ContextPolicy::new(size).with_overflow(overflow));
    }
    options.build().expect("these options are valid")
}

/// Returns the messages that are steered before a part of a turn.
fn steered(opening: &Opening, part: usize) -> Vec<Message> {
    let count = opening.steered.get(part).copied().unwrap_or_default();
    (0..count).map(|number| Message::user(format!("And number {}", part + number))).collect()
}

/// Returns an event as text if both drivers report it. Steps report neither steered messages nor refused answers.
fn told(event: &AgentEvent) -> Option<String> {
    match event {
        AgentEvent::AnswerRetry(_)
        | AgentEvent::AnswerStart
        | AgentEvent::CacheMiss(_)
        | AgentEvent::SteerBlocked(_)
        | AgentEvent::Steered(_) => None,
        other => line(other),
    }
}

/// The most parts of a turn, each continued after calls were answered.
const PARTS: usize = 4;

async fn by_client(opening: &Opening) -> (Ended, Vec<String>) {
    let (server, ran) = (server(opening), Arc::default());
    let mut client = Client::new(options(opening, &server, &ran)).expect("it is a client");
    let (mut events, mut ends) = (Vec::new(), Vec::new());
    for part in 0..PARTS {
        for message in steered(opening, part) {
            client.steer_handle().steer_message(message).expect("few wait");
        }
        let mut ended =
            if part == 0 { client.send("Go.").await } else { client.continue_turn().await };
        while ended.is_ok() {
            match client.next_event().await {
                Ok(Some(event)) => events.extend(told(&event)),
                Ok(None) => break,
                Err(error) => ended = Err(error),
            }
        }
        // Events from before the failure can still be read.
        while let Ok(Some(event)) = client.next_event().await {
            events.extend(told(&event));
        }
        let reason = client.finish_reason().map_or_else(String::new, |reason| reason.to_string());
        ends.push(ended.map_or_else(|error| error.to_record().kind, |()| reason));
        for call in client.pending_calls() {
            client.add_tool_result(&call.id, json!("by hand")).expect("it waits");
        }
        if client.finish_reason() != Some(&FinishReason::WaitsForResults) {
            break;
        }
    }
    let history = json!(client.history());
    let reason = client.finish_reason().cloned();
    let ran = ran.lock().expect("no test panics").clone();
    (Ended { history, reason, requests: requests(&server), ran, events: by_kind(events) }, ends)
}

async fn by_steps(opening: &Opening) -> (Ended, Vec<String>) {
    let (server, ran) = (server(opening), Arc::default());
    let options = options(opening, &server, &ran);
    let events = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&events);
    let mut turn: Turn = options.turn();
    let (mut ends, mut reason) = (Vec::new(), None);
    for part in 0..PARTS {
        let log = Arc::clone(&log);
        let steps = options.steps().on_event(move |event| {
            log.lock().expect("no test panics").extend(told(&event));
        });
        for message in steered(opening, part) {
            turn.steer(message).expect("few wait");
        }
        let begun = match part {
            0 => turn.prompt(Message::user("Go.")),
            _ => turn.continue_turn(),
        };
        begun.expect("it begins");
        reason = match drive(&mut turn, &steps).await {
            Ok(reason) => {
                ends.push(reason.to_string());
                Some(reason)
            }
            Err(DriveError::Failed(error)) => {
                ends.push(error.kind);
                None
            }
            Err(error) => unreachable!("{error:?}"),
        };
        let waiting = turn.calls().iter().filter(|call| call.waits_for_result());
        let waiting: Vec<String> = waiting.map(|call| call.block.id.clone()).collect();
        for id in waiting {
            turn.add_result(&id, json!("by hand"), Outcome::Ok).expect("it waits");
        }
        if reason != Some(FinishReason::WaitsForResults) {
            break;
        }
    }
    let ran = ran.lock().expect("no test panics").clone();
    let events = by_kind(events.lock().expect("no test panics").clone());
    let history = json!(turn.history());
    (Ended { history, reason, requests: requests(&server), ran, events }, ends)
}

proptest! {
    #![proptest_config(cases(200))]

    /// The same requests, tools, events and history, whoever drives the turn: with plans, steered messages, external
    /// calls, shortened conversations, refused answers and conditions.
    #[test]
    fn steps_and_client_agree_with_all_features(opening in opening()) {
        let (client, steps) =
            block_on(async { (by_client(&opening).await, by_steps(&opening).await) });
        prop_assert_eq!(&client, &steps);
    }
}
