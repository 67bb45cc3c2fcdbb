use oa_types::{FinishReason, TextBlock};
use proptest::prelude::*;

use super::*;

fn nested(call: &str, event: AgentEvent) -> NestedEvent {
    NestedEvent::new(call, "helper", event)
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::Block(TextBlock::new(text).into())
}

fn tool_event(event: Value) -> AgentEvent {
    AgentEvent::Tool(serde_json::from_value(event).unwrap_or_else(|error| panic!("{error}")))
}

fn call_start(id: &str) -> Value {
    json!({"type": "tool_call_start", "call_id": id, "tool_name": "search", "input": {}})
}

fn call_complete(id: &str) -> Value {
    json!({
        "type": "tool_call_complete", "call_id": id, "tool_name": "search", "input": {}, "outcome": "ok", "result": 1,
        "truncated": false, "duration_us": 5, "attempts": 1, "cached": false, "dropped_events": 0,
    })
}

#[test]
fn agents_are_shown_by_steps() {
    let mut agents = SubAgents::default();
    let events = [
        AgentEvent::AnswerStart,
        text("Let me "),
        text("see."),
        tool_event(call_start("s1")),
        AgentEvent::Nested(Box::new(nested("s1", text("deeper")))),
        AgentEvent::Nested(Box::new(nested("s1", AgentEvent::TurnEnd(FinishReason::Stop)))),
        tool_event(call_complete("s1")),
        AgentEvent::AnswerStart,
        text("Done."),
        AgentEvent::TurnEnd(FinishReason::Stop),
    ];
    let steps = events
        .map(|event| json!(agents.follow(&nested("c1", event)).map(SubAgent::for_front_ends)));
    let shown: Vec<_> = steps.iter().filter(|step| !step.is_null()).collect();
    assert_eq!(shown.len(), 6, "pieces of text are no steps");
    let deeper = json!({
        "toolCallId": "s1", "parentToolCallId": "c1", "agent": "helper", "isDone": true,
        "parts": [{"type": "text", "text": "deeper"}],
    });
    assert_eq!(*shown[2], deeper);
    let last = json!({
        "toolCallId": "c1", "agent": "helper", "isDone": true,
        "parts": [
            {"type": "text", "text": "Let me see."},
            {"type": "call", "toolCallId": "s1", "toolName": "search", "state": "done", "input": {}, "result": 1},
            {"type": "text", "text": "Done."},
        ],
    });
    assert_eq!(**shown.last().expect("there are some"), last);
    let kept = agents.kept(&[]);
    let stored = serde_json::to_value(&kept).expect("it is JSON");
    assert_eq!(serde_json::from_value::<Vec<SubAgent>>(stored).expect("it is read again"), kept);
    assert_eq!(agents.kept(&kept), kept, "each is kept once");
}

/// The answers of an agent are parts of their own, also without a call between them.
#[test]
fn refused_answers_are_not_kept() {
    let mut agents = SubAgents::default();
    let refused = || AgentEvent::AnswerRetry("cite a source".to_owned());
    let events = [
        AgentEvent::AnswerStart,
        text("I may not."),
        AgentEvent::AnswerStart,
        text("The key is "),
        text("1234."),
        refused(),
        AgentEvent::AnswerStart,
        refused(), // one without text
        AgentEvent::AnswerStart,
        text("It is secret."),
    ];
    for event in events {
        let is_refusal = matches!(event, AgentEvent::AnswerRetry(_));
        let step = agents.follow(&nested("c1", event));
        assert!(step.is_some() || !is_refusal, "front ends are told");
    }
    let kept = serde_json::to_value(agents.kept(&[])).expect("it is JSON");
    let parts =
        json!([{"type": "text", "text": "I may not."}, {"type": "text", "text": "It is secret."}]);
    assert_eq!(kept[0]["parts"], parts);
}

/// An agent with many results is larger than all that may be stored.
#[test]
fn large_sub_agents_are_kept_in_part() {
    let mut agents = SubAgents::default();
    agents.follow(&nested("c0", text("Small.")));
    for number in 0..40 {
        let id = format!("s{number}");
        agents.follow(&nested("c1", tool_event(call_start(&id))));
        let mut complete = call_complete(&id);
        complete["result"] = "x".repeat(1_500).into();
        agents.follow(&nested("c1", tool_event(complete)));
    }
    agents.follow(&nested("c1", text("Done.")));
    let kept = serde_json::to_value(agents.kept(&[])).expect("it is JSON");
    let last = kept.as_array().expect("a list").last().expect("it is not empty");
    let parts = last["parts"].as_array().expect("a list");
    assert_eq!((&last["call_id"], parts.len()), (&json!("c1"), 41));
    assert!(parts[0]["result"].is_null() && parts[0]["state"] == "done");
    assert_eq!(
        (&parts[39]["result"], &parts[40]["text"]),
        (&"x".repeat(1_500).into(), &json!("Done."))
    );
}

/// Everything after the limits is left out, but the state of calls that are kept goes on.
#[test]
fn parts_and_text_have_limits() {
    let mut agents = SubAgents::default();
    assert!(agents.is_empty());
    for number in 0..MOST_PARTS + 9 {
        agents.follow(&nested("calls", tool_event(call_start(&number.to_string()))));
        agents.follow(&nested("texts", AgentEvent::AnswerStart));
        agents.follow(&nested("texts", text("é")));
        agents.follow(&nested("text", text(&"é".repeat(1_001))));
    }
    assert!(!agents.is_empty());
    let parts = |id: &str| &agents.agents[id].parts[..];
    assert_eq!((parts("calls").len(), parts("texts").len()), (MOST_PARTS, MOST_PARTS));
    let [SubPart::Text { text }] = parts("text") else { panic!("it is one text") };
    assert_eq!(text.len(), MOST_TEXT);
    for number in (0..MOST_PARTS + 9).rev() {
        let step = agents.follow(&nested("calls", tool_event(call_complete(&number.to_string()))));
        assert_eq!(step.is_some(), number < MOST_PARTS, "{number}");
    }
}

/// Calls of one answer run at the same time, and end in any order.
#[test]
fn parallel_calls_end_one_by_one() {
    let mut agents = SubAgents::default();
    for id in ["s1", "s2", "s3"] {
        agents.follow(&nested("c1", tool_event(call_start(id))));
    }
    let mut failed = call_complete("s2");
    (failed["outcome"], failed["result"]) = ("failed".into(), "no".into());
    for complete in [call_complete("s1"), failed] {
        let step = agents.follow(&nested("c1", tool_event(complete)));
        assert!(step.is_some(), "it is a step");
    }
    let shown = agents.agents["c1"].for_front_ends();
    let parts = shown["parts"].as_array().expect("a list").iter();
    let states: Vec<_> = parts.map(|part| (&part["state"], &part["result"])).collect();
    let expected = [
        (json!("done"), json!(1)),
        (json!("failed"), json!("no")),
        (json!("running"), json!(null)),
    ];
    assert_eq!(states, expected.each_ref().map(|(state, result)| (state, result)));
}

#[test]
fn answers_begin_and_end_with_a_step() {
    let mut agents = SubAgents::default();
    let end = json!({"type": "answer_end", "data": {"content": [], "finish_reason": "stop"}});
    let end = serde_json::from_value(end).expect("it is an event");
    for (event, is_step) in [(AgentEvent::AnswerStart, true), (text("Hi."), false), (end, true)] {
        assert_eq!(agents.follow(&nested("c1", event)).is_some(), is_step);
    }
}

/// Brackets and separators count, too.
#[test]
fn many_sub_agents_are_stored_within_the_limit() {
    for length in 600..800 {
        let mut agents = SubAgents::default();
        for number in 10..42 {
            agents.follow(&nested(&number.to_string(), text(&"x".repeat(length))));
        }
        let kept = agents.kept(&[]);
        let size = json_size(&kept);
        assert!(size <= MOST_STORED + 1, "{size} bytes of {} agents", kept.len());
        assert!(kept.len() == MOST_AGENTS || size + length + 100 > MOST_STORED);
    }
}

#[test]
fn long_texts_of_sub_agents_keep_their_end() {
    for piece in ["ab", "é\"\n", "\u{1}"] {
        let mut agents = SubAgents::default();
        agents.follow(&nested("c1", text(&piece.repeat(MOST_TEXT))));
        let kept = agents.kept(&[]);
        let size = json_size(&kept);
        assert!((MOST_STORED - 20..=MOST_STORED + 2).contains(&size), "{size}");
        let [SubPart::Text { text }] = &kept[0].parts[..] else { panic!("{kept:?}") };
        assert!(piece.repeat(MOST_TEXT)[..MOST_TEXT].ends_with(&**text), "{piece:?}");
    }
}

/// Ids of calls are distinct only within an agent: some servers number them from 0 in each conversation.
#[test]
fn equal_ids_at_two_depths_are_two_agents() {
    let mut agents = SubAgents::default();
    let inner = |event| AgentEvent::Nested(Box::new(nested("call_0", event)));
    let events =
        [text("outer"), inner(text("inner")), inner(AgentEvent::TurnEnd(FinishReason::Stop))];
    for event in events {
        agents.follow(&nested("call_0", event));
    }
    let kept = agents.kept(&[]);
    let ids: Vec<_> = kept.iter().map(SubAgent::id).collect();
    assert_eq!(ids, ["call_0", "call_0/call_0"]);
    assert_eq!((kept[0].is_done, kept[1].is_done), (false, true));
}

/// All other events of a sub-agent are.
#[test]
fn sub_agent_logs_are_not_sent() {
    let log = tool_event(json!({
        "type": "tool_log", "call_id": "s1", "tool_name": "search", "level": "info",
        "message": "the password is",
    }));
    assert!(matches!(log, AgentEvent::Tool(ToolEvent::Log(_))));
    assert_eq!(SubAgents::shown(&nested("c1", log.clone())), None);
    let deep = nested("c1", AgentEvent::Nested(Box::new(nested("c2", log))));
    assert_eq!(SubAgents::shown(&deep), None);
    let deep = nested("c1", AgentEvent::Nested(Box::new(nested("c2", text("hi")))));
    let event = json!({"type": "block", "data": {"type": "text", "text": "hi"}});
    let shown =
        json!({"toolCallId": "c2", "parentToolCallId": "c1", "agent": "helper", "event": event});
    assert_eq!(SubAgents::shown(&deep), Some(shown));
}

proptest! {
    /// Parts are cut until the rest is small enough, and no further.
    #[test]
    fn sub_agents_are_cut_to_any_size(
        parts in prop::collection::vec((any::<bool>(), "[a\"é\n]{1,40}"), 0..9), most in 0_usize..700,
    ) {
        let mut agents = SubAgents::default();
        for (number, (is_call, words)) in parts.iter().enumerate() {
            agents.follow(&nested("c1", AgentEvent::AnswerStart));
            let mut call = call_start(&number.to_string());
            call["input"] = words.as_str().into();
            agents.follow(&nested("c1", if *is_call { tool_event(call) } else { text(words) }));
        }
        let Some(whole) = agents.agents.get("c1") else { return Ok(()) };
        let cut = whole.clone().within(most);
        if json_size(whole) <= most {
            prop_assert_eq!(&cut, whole);
        } else {
            let size = json_size(&cut);
            prop_assert!(size <= most || cut.parts.is_empty(), "{} of {}: {:?}", size, most, cut);
            let is_empty = |part: &SubPart| matches!(part, SubPart::Text { text } if text.is_empty());
            prop_assert!(!cut.parts.iter().any(is_empty), "{cut:?}");
            // The last parts, of which the first may be cut.
            let kept = &whole.parts[whole.parts.len() - cut.parts.len()..];
            for (place, (part, before)) in cut.parts.iter().zip(kept).enumerate() {
                match (part, before) {
                    (SubPart::Text { text }, SubPart::Text { text: before }) => {
                        prop_assert!(before.ends_with(&**text) && (place == 0 || text == before));
                    }
                    (SubPart::Call { call_id, .. }, SubPart::Call { call_id: before, .. }) => {
                        prop_assert_eq!(call_id, before);
                    }
                    _ => prop_assert!(false, "{cut:?}"),
                }
            }
        }
    }

    /// However much sub-agents say and do, what is kept of them is bounded.
    #[test]
    fn sub_agents_are_bounded(events in prop::collection::vec((0..200_u32, 0..4_u32, "[aé]{0,9}"), 0..400)) {
        let mut agents = SubAgents::default();
        for (number, (call, what, words)) in events.into_iter().enumerate() {
            let event = match what {
                0 => text(&words.repeat(4_000)),
                1 => AgentEvent::AnswerStart,
                2 => tool_event(call_start(&number.to_string())),
                _ => tool_event(call_complete(&number.saturating_sub(1).to_string())),
            };
            agents.follow(&nested(&(call % 90).to_string(), event));
        }
        prop_assert!(agents.agents.len() <= MOST_AGENTS && agents.order.len() == agents.agents.len());
        for agent in agents.agents.values() {
            let text = agent.parts.iter().map(|part| if let SubPart::Text { text } = part { text.len() } else { 0 });
            prop_assert!(text.sum::<usize>() <= MOST_TEXT && agent.parts.len() <= MOST_PARTS);
        }
        let mut kept = Vec::new();
        for _ in 0..3 {
            kept = agents.kept(&kept);
            prop_assert!(serde_json::to_vec(&kept).expect("it is JSON").len() <= MOST_STORED + 2);
        }
        // The newest are kept.
        let last = kept.last().map(|agent| &agent.call_id);
        prop_assert_eq!(last, agents.order.last());
    }
}
