//! The JSON of everything that passes the seam.

use std::fmt::Debug;

use insta::assert_snapshot;
use oa_turn::{Action, Answer, Call, CallState, Decision, Fit, Mode, Options, Turn};
use oa_types::{AssistantMessage, Cost, FinishReason, Message, Outcome, Usage};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{answer, call, malformed, perform, text};

/// Each value in its own line, as JSON, which is read as the same.
fn lines<T: Debug + DeserializeOwned + PartialEq + Serialize>(values: &[T]) -> String {
    let line = |value: &T| {
        let json = serde_json::to_string(value).expect("it is JSON");
        assert_eq!(serde_json::from_str::<T>(&json).expect("it is read"), *value);
        json
    };
    values.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn actions() {
    let actions = [
        Action::Decide { call: 0 },
        Action::End { reason: FinishReason::MaxToolCalls },
        Action::Request { tools: true },
        Action::Review { call: 1 },
        Action::Run { calls: vec![0, 2] },
        Action::Show { block: text("Hi") },
        Action::Submit { prompt: Message::user("Hi") },
    ];
    assert_snapshot!(lines(&actions), @r#"
    {"type":"decide","call":0}
    {"type":"end","reason":"max_tool_calls"}
    {"type":"request","tools":true}
    {"type":"review","call":1}
    {"type":"run","calls":[0,2]}
    {"type":"show","block":{"type":"text","text":"Hi"}}
    {"type":"submit","prompt":{"role":"user","content":[{"type":"text","text":"Hi"}]}}
    "#);
}

#[test]
fn decisions() {
    let decisions = [
        Decision::Ask(json!({ "a": 1 })),
        Decision::Refuse(json!({ "error": "no" })),
        Decision::Run(json!({ "a": 1 })),
        Decision::Wait(json!({ "a": 1 })),
    ];
    assert_snapshot!(lines(&decisions), @r#"
    {"type":"ask","value":{"a":1}}
    {"type":"refuse","value":{"error":"no"}}
    {"type":"run","value":{"a":1}}
    {"type":"wait","value":{"a":1}}
    "#);
}

#[test]
fn answers() {
    let mut whole = Answer::new(vec![text("Hi"), call("1", "add")]);
    whole.finish_reason = FinishReason::ToolCalls;
    whole.extra.insert("reasoning_details".to_owned(), json!([1]));
    (whole.tokens, whole.cost) = (30, Cost::new(0.1).unwrap());
    assert_snapshot!(lines(&[Answer::new(vec![text("Hi")]), whole]), @r#"
    {"blocks":[{"type":"text","text":"Hi"}],"finish_reason":"unspecified","tokens":0,"cost":0.0}
    {"blocks":[{"type":"text","text":"Hi"},{"type":"tool_use","id":"1","name":"add","input":{"a":1}}],"finish_reason":"tool_calls","extra":{"reasoning_details":[1]},"tokens":30,"cost":0.1}
    "#);
    let read: Answer = serde_json::from_str(r#"{"blocks":[]}"#).unwrap();
    assert_eq!(read, Answer::new(Vec::new()));
}

#[test]
fn an_answer_of_a_message() {
    let mut message = AssistantMessage::new(vec![text("Hi")]);
    let mut usage = Usage::default();
    (usage.prompt_tokens, usage.completion_tokens) = (Some(2), Some(3));
    usage.cost = Some(Cost::new(0.5).unwrap());
    message.usage = Some(usage);
    message.finish_reason = FinishReason::Length;
    message.extra.insert("x".to_owned(), json!(1));
    assert_snapshot!(lines(&[Answer::from(&message)]), @r#"{"blocks":[{"type":"text","text":"Hi"}],"finish_reason":"length","extra":{"x":1},"tokens":5,"cost":0.5}"#);
}

/// Calls in all states, each as it came about.
fn calls() -> Vec<Call> {
    let mut turn = Turn::new(Options::auto());
    turn.submit(Message::user("Go.")).expect("it is a prompt");
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    let ids = ["run", "refuse", "ask", "wait", "rest"];
    let mut blocks: Vec<_> = ids.iter().map(|id| call(id, "add")).collect();
    blocks.push(malformed("broken", Some("add")));
    answer(&mut turn, blocks);
    turn.set_input(0, json!({ "a": 1, "b": 2 }), Fit::Fits);
    turn.set_input(1, json!({}), Fit::Unfit("a is missing".to_owned()));
    let mut decisions = vec![
        Decision::Wait(json!({})),
        Decision::Ask(json!({ "a": 1 })),
        Decision::Refuse(json!("no")),
        Decision::Run(json!({ "a": 1, "b": 2 })),
    ];
    while let Some(decision) = decisions.pop() {
        let call = loop {
            match turn.next_action().expect("calls are undecided") {
                Action::Decide { call } => break call,
                action => assert!(matches!(action, Action::Show { .. })),
            }
        };
        turn.decide(call, decision);
    }
    let mut calls = turn.calls().to_vec();
    let state = CallState::Answered { content: json!(3), outcome: Outcome::Ok, reviewed: true };
    (calls[0].is_approved, calls[0].state) = (true, state);
    calls.push(calls[4].clone());
    calls[6].state = CallState::Allowed;
    calls
}

#[test]
fn calls_in_all_states() {
    assert_snapshot!(lines(&calls()), @r#"
    {"block":{"id":"run","name":"add","input":{"a":1}},"input":{"a":1,"b":2},"fit":{"type":"fits"},"state":{"type":"answered","content":3,"outcome":"ok","reviewed":true},"is_approved":true}
    {"block":{"id":"refuse","name":"add","input":{"a":1}},"input":{},"fit":{"type":"unfit","reason":"a is missing"},"state":{"type":"refused","content":"no","outcome":"blocked"}}
    {"block":{"id":"ask","name":"add","input":{"a":1}},"input":{"a":1},"state":{"type":"asked"}}
    {"block":{"id":"wait","name":"add","input":{"a":1}},"input":{},"state":{"type":"waiting","decided":true}}
    {"block":{"id":"rest","name":"add","input":{"a":1}},"input":{"a":1},"state":{"type":"undecided"}}
    {"block":{"id":"broken","name":"add","input":{}},"input":{},"state":{"type":"refused","content":{"error":"the arguments are not valid JSON","tool":"add","arguments":"{\"a\":"},"outcome":"malformed"}}
    {"block":{"id":"rest","name":"add","input":{"a":1}},"input":{"a":1},"state":{"type":"allowed"}}
    "#);
}

#[test]
fn verdicts_on_an_input() {
    let verdicts = [Fit::Fits, Fit::Unchecked, Fit::Unfit("a is missing".to_owned())];
    assert_snapshot!(lines(&verdicts), @r#"
    {"type":"fits"}
    {"type":"unchecked"}
    {"type":"unfit","reason":"a is missing"}
    "#);
}

#[test]
fn options_and_modes() {
    assert_snapshot!(lines(&[Mode::Auto, Mode::Manual]), @r#"
    "auto"
    "manual"
    "#);
    assert_snapshot!(lines(&[Options::auto()]), @r#"{"mode":"auto","max_rounds":5,"max_turns":null,"max_calls":null,"max_tokens":null,"max_cost":null,"repeat_guard":3,"last_answer_without_tools":false,"final_text_only":false,"inline_results":false}"#);
    assert_eq!(serde_json::from_str::<Options>("{}").unwrap(), Options::default());
}
