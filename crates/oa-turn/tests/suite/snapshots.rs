//! Turns that move to another process and back.

use insta::assert_snapshot;
use oa_turn::{
    Action, Answer, Call, CallState, Decision, ErrorKind, Options, ShortenOutcome, StepOutcome,
    Turn, TurnSnapshot,
};
use oa_types::{Cost, FinishReason, Message, Outcome};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::events::{Event, blocks, decision, event, options, outcome, reviewed, stopped};
use crate::laws::{check_pairing, check_request};
use crate::rules::manual;
use crate::{answer, call, content, image, malformed, perform, text};

/// The same turn, through JSON.
pub(crate) fn carried(turn: &Turn) -> Turn {
    restored(&json(turn)).expect("a snapshot is a turn")
}

pub(crate) fn json(turn: &Turn) -> String {
    serde_json::to_string(&turn.snapshot()).expect("a snapshot is JSON")
}

pub(crate) fn restored(json: &str) -> Result<Turn, Box<dyn std::error::Error>> {
    Ok(Turn::restore(serde_json::from_str(json)?)?)
}

/// Lets something happen; returns all that the turn says to it.
fn happen(turn: &mut Turn, event: &Event, number: usize) -> String {
    let id = |turn: &Turn, place: usize| {
        turn.calls().get(place).map_or_else(|| "none".to_owned(), |call| call.block.id.clone())
    };
    match event {
        Event::Abandon(pieces) => format!("{:?}", turn.abandon(blocks(pieces, number))),
        Event::AcceptPrompt(words) => format!("{:?}", turn.accept_prompt(words.map(str::to_owned))),
        Event::AddResult(place, is_error) => {
            let id = id(turn, *place);
            format!("{:?}", turn.add_result(&id, json!(number), outcome(*is_error)))
        }
        Event::Answer(pieces) => {
            let mut answer = Answer::new(blocks(pieces, number));
            answer.cost = Cost::new(1.0).expect("this is an amount");
            // As a server may say it, though it is a reason of the caller's.
            answer.finish_reason = FinishReason::from_server("interrupted");
            format!("{:?}", turn.answer(answer))
        }
        Event::Approve(place, choice) => {
            let id = id(turn, *place);
            format!("{:?}", turn.approve(&id, decision(*choice)))
        }
        Event::BeginAnswer => format!("{:?}", turn.begin_answer()),
        Event::CheckStop(choice) => {
            format!("{:?}", turn.take(StepOutcome::CheckStop(stopped(*choice))))
        }
        Event::Continue => format!("{:?}", turn.continue_turn()),
        Event::ContinueWhenAnswered => format!("{:?}", turn.continue_when_answered()),
        Event::Correct => format!("{:?}", turn.correct(Message::user("No."))),
        Event::Decide(call, choice) => format!("{:?}", turn.decide(*call, decision(*choice))),
        Event::Fail(pieces) => format!("{:?}", turn.fail_with(blocks(pieces, number))),
        Event::HandOver(call) => format!("{:?}", turn.await_result(*call)),
        Event::FinishCall(call, is_error) => {
            let images = vec![image(); call % 2];
            let outcome = outcome(*is_error);
            format!("{:?}", turn.finish_call_with_images(*call, json!("same"), images, outcome))
        }
        Event::Interrupt(pieces) => format!("{:?}", turn.interrupt(blocks(pieces, number))),
        Event::Next => format!("{:?}", turn.next_action()),
        Event::Prompt(prompt) => format!("{:?}", turn.prompt(Message::user(*prompt))),
        Event::Resume => {
            let messages = turn.history().to_vec();
            format!("{:?}", turn.resume(messages))
        }
        Event::Review(call, change) => {
            if let Some(CallState::Answered { content, .. }) =
                turn.calls().get(*call).map(|call| call.state.clone())
            {
                turn.review(*call, if *change { json!(number) } else { content });
            }
            String::new()
        }
        Event::Stop => format!("{:?}", turn.stop(FinishReason::MaxRunTime, Vec::new())),
        Event::Plan(choice) => {
            turn.plan(crate::events::plan(*choice));
            String::new()
        }
        Event::RefuseSteered => {
            turn.refuse_steered();
            String::new()
        }
        Event::ReviewAnswer(choice) => {
            format!("{:?}", turn.take(StepOutcome::ReviewAnswer(reviewed(*choice))))
        }
        Event::RetryShorter => {
            format!("{:?}", turn.retry_shorter(oa_turn::OverflowSizes::default()))
        }
        Event::Shorten(choice) => crate::shorten::shorten(turn, *choice),
        Event::Steer(words) => format!("{:?}", turn.steer(Message::user(*words))),
        Event::Submit(prompt) => format!("{:?}", turn.submit(Message::user(*prompt))),
    }
}

/// Everything that can be seen of a turn.
fn seen(turn: &Turn) -> String {
    let keys: Vec<_> = (0..turn.calls().len()).map(|call| turn.call_key(call)).collect();
    let counts = (turn.turns(), turn.rounds(), turn.is_busy(), turn.waits_for_approval());
    let again = turn.is_retry(&Message::user("Go."));
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{keys:?}\n{counts:?} {again}\n{:?}",
        turn.history(),
        turn.checkpoint(),
        turn.revisions(),
        turn.calls(),
        turn.pending_action()
    )
}

/// Changes one value somewhere in a snapshot, but for its version.
fn damage(value: &mut Value, mut place: usize, by: &Value) {
    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(values) => values.iter().map(count).sum(),
            Value::Object(members) => members.values().map(count).sum(),
            _ => 0,
        }
    }
    fn find<'a>(value: &'a mut Value, place: &mut usize) -> Option<&'a mut Value> {
        if *place == 0 {
            return Some(value);
        }
        *place -= 1;
        match value {
            Value::Array(values) => values.iter_mut().find_map(|value| find(value, place)),
            Value::Object(members) => members.values_mut().find_map(|value| find(value, place)),
            _ => None,
        }
    }
    let turn = &mut value["turn"];
    place %= count(turn);
    let found = find(turn, &mut place).expect("there are so many");
    match (found, by) {
        (Value::Array(values), Value::Null) => drop(values.pop()),
        (Value::Array(values), Value::Bool(_)) if !values.is_empty() => {
            values.push(values[0].clone());
        }
        (found, by) => *found = by.clone(),
    }
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_u8).prop_map(Value::from),
        prop::sample::select(vec![u64::MAX, u64::MAX / 2, u64::from(u32::MAX)])
            .prop_map(Value::from),
        prop::sample::select(vec![
            json!([]),
            json!({}),
            json!("done"),
            json!("results"),
            json!("approval")
        ]),
        prop::sample::select(vec![
            json!({ "type": "idle", "rest": "approval" }),
            json!({ "type": "requesting", "sent": true, "prompt": 0 }),
            json!({ "type": "calling", "started": true, "continues": true, "reason": "stop" }),
            json!({ "type": "answered", "content": 1, "outcome": "ok", "reviewed": false }),
            json!({ "type": "undecided" }),
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn restored_turns_behave_identically(
        options in options(),
        events in vec(event(), 0..60),
    ) {
        let mut turn = Turn::new(options).with_key_seed("seed");
        turn.set_external_tools(["ask".to_owned()]);
        let mut other = carried(&turn);
        for (number, event) in events.iter().enumerate() {
            prop_assert_eq!(happen(&mut turn, event, number), happen(&mut other, event, number));
            other = carried(&other);
            prop_assert_eq!(seen(&turn), seen(&other));
            prop_assert_eq!(json(&turn), json(&other));
        }
    }

    #[test]
    fn damaged_snapshots_never_break_history(
        options in options(),
        events in vec(event(), 0..40),
        damages in vec((any::<usize>(), anything()), 1..4),
        later in vec(event(), 0..40),
    ) {
        let mut turn = Turn::new(options);
        for (number, event) in events.iter().enumerate() {
            happen(&mut turn, event, number);
        }
        let mut json = serde_json::to_value(turn.snapshot()).unwrap();
        for (place, by) in damages {
            damage(&mut json, place, &by);
        }
        if let Ok(mut turn) = restored(&json.to_string()) {
            check_pairing(&turn)?;
            for (number, event) in later.iter().enumerate() {
                happen(&mut turn, event, 100 + number);
                seen(&turn);
                check_pairing(&turn)?;
                if matches!(turn.pending_action(), Some(Action::Request { .. })) {
                    check_request(&turn)?;
                }
            }
        }
    }
}

/// A turn in the middle of everything: a call runs, another result waits to be looked at.
fn busy() -> Turn {
    let mut options = Options::auto();
    options.max_cost = Some(Cost::new(0.5).expect("it makes sense"));
    let mut turn = Turn::new(options).with_key_seed("session-7");
    turn.submit(Message::user("Go.")).expect("it makes sense");
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    let mut first = Answer::new(vec![text("I look."), call("1", "a")]);
    (first.tokens, first.cost) = (7, Cost::new(0.25).expect("it makes sense"));
    turn.answer(first);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![call("2", "a"), malformed("3", Some("b")), call("4", "c")]);
    while let Some(action) = turn.next_action() {
        match action {
            Action::Decide { call } => turn.decide(call, Decision::Run(json!({ "a": 1 }))),
            Action::Run { .. } => assert!(turn.finish_call(0, json!("ok"), Outcome::Ok)),
            _ => {}
        }
    }
    turn
}

/// Written by the first version, and read by all later ones.
const FIRST: &str = include_str!("snapshot_1.json");

#[test]
fn version_1_snapshots_are_read() {
    let turn = busy();
    assert_eq!(json(&turn), FIRST.trim_end());
    assert_eq!(seen(&restored(FIRST).unwrap()), seen(&turn));
    // Written before requests were counted.
    let earlier = FIRST.replace(r#""steps":2,"#, "");
    assert!(earlier.len() < FIRST.len());
    assert_eq!(seen(&restored(&earlier).unwrap()), seen(&turn));
}

#[test]
fn snapshots_keep_pending_actions() {
    let mut turn = carried(&busy());
    assert_eq!(turn.next_action(), None);
    assert_eq!(turn.pending_action(), Some(Action::Review { call: 1 }));
    turn.review(1, content(&turn, 1));
    let mut turn = carried(&turn);
    assert_eq!(turn.next_action(), Some(Action::Review { call: 0 }));
    turn.review(0, json!("ok"));
    let mut turn = carried(&turn);
    while turn.next_action().is_some() {}
    assert_eq!(turn.pending_action(), Some(Action::Run { calls: vec![2] }));
    assert!(turn.finish_call(2, json!("ok"), Outcome::Ok));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(turn.pending_action(), Some(Action::Request { tools: true }));

    let mut turn = Turn::new(Options::auto());
    turn.prompt(Message::user("Go.")).unwrap();
    assert_eq!(turn.pending_action(), None, "nothing was handed out");
    let submit = turn.next_action();
    assert_eq!(carried(&turn).pending_action(), submit);
    turn.accept_prompt(None).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![call("1", "a")]);
    while !matches!(turn.next_action(), Some(Action::Decide { .. })) {}
    assert_eq!(carried(&turn).pending_action(), Some(Action::Decide { call: 0 }));
}

/// Earlier versions handed external calls out when they were decided, and did not record it.
#[test]
fn earlier_external_calls_wait() {
    let mut turn = Turn::new(Options::auto());
    turn.set_external_tools(["ask".to_owned()]);
    turn.submit(Message::user("Go.")).unwrap();
    perform(&mut turn);
    answer(&mut turn, vec![call("a", "ask")]);
    assert_eq!(perform(&mut turn), Action::End { reason: FinishReason::WaitsForResults });
    let later = json(&turn);
    let earlier = later.replace(r#"{"type":"awaits_result"}"#, r#"{"type":"allowed"}"#);
    assert_ne!(earlier, later);
    assert_eq!(json(&restored(&earlier).unwrap()), later);
    turn.add_result("a", json!("blue"), Outcome::Ok).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
}

#[test]
fn unknown_versions_are_not_restored() {
    let later = r#"{"version":2,"turn":{"everything":"is otherwise"}}"#;
    let snapshot: TurnSnapshot = serde_json::from_str(later).unwrap();
    assert_eq!(serde_json::to_string(&snapshot).unwrap(), later);
    assert_eq!(format!("{snapshot:?}"), "TurnSnapshot { version: 2, .. }");
    let error = Turn::restore(snapshot).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    assert_snapshot!(error, @r#"the snapshot has format version 2, but this version of oa-turn supports only 1"#);
    for wrong in ["{}", r#"{"version":1}"#, r#"{"version":1,"turn":{}}"#, "[]"] {
        assert!(serde_json::from_str::<TurnSnapshot>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn inconsistent_snapshots_are_rejected() {
    let why = |change: &dyn Fn(&mut Value)| {
        let mut json = serde_json::to_value(busy().snapshot()).unwrap();
        change(&mut json["turn"]);
        let snapshot = serde_json::from_value(json).expect("the form is right");
        let error = Turn::restore(snapshot).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidSnapshot);
        error.to_string()
    };
    let pop = |value: &mut Value| drop(value.as_array_mut().and_then(Vec::pop));
    assert_snapshot!(why(&|turn| pop(&mut turn["conversation"]["messages"])), @r#"the snapshot is damaged: the revisions do not match the messages"#);
    assert_snapshot!(why(&|turn| turn["round"]["results_at"] = json!(usize::MAX)), @r#"the snapshot is damaged: results are missing"#);
    assert_snapshot!(why(&|turn| turn["round"]["results_at"] = json!(2)), @r#"the snapshot is damaged: the results do not match the calls"#);
    assert_snapshot!(why(&|turn| turn["round"]["handed"] = json!(9)), @r#"the snapshot is damaged: the call that was handed out is already decided"#);
    assert_snapshot!(why(&|turn| turn["round"]["reviews"] = json!([3])), @r#"the snapshot is damaged: a call is missing"#);
    assert_snapshot!(why(&|turn| turn["round"]["calls"] = json!([])), @r#"the snapshot is damaged: a call is missing"#);
    let block =
        &|turn: &mut Value, key: &str, value| turn["round"]["calls"][0]["block"][key] = value;
    assert_snapshot!(why(&|turn| block(turn, "id", json!("9"))), @r#"the snapshot is damaged: the results do not match the calls"#);
    assert_snapshot!(why(&|turn| block(turn, "name", json!("delete"))), @r#"the snapshot is damaged: the calls do not match those of the answer"#);
    assert_snapshot!(why(&|turn| block(turn, "input", json!({ "all": true }))), @r#"the snapshot is damaged: the calls do not match those of the answer"#);
    for state in ["asked", "undecided"] {
        let open = json!({ "type": state });
        assert!(
            why(&|turn| turn["round"]["calls"][2]["state"] = open.clone())
                .ends_with("a call is not decided")
        );
    }
    let waiting = json!({ "type": "waiting", "decided": true });
    assert_snapshot!(why(&|turn| turn["round"]["calls"][2]["state"] = waiting.clone()), @r#"the snapshot is damaged: a call is not decided"#);
    let handed = json!({ "type": "awaits_result" });
    assert_snapshot!(why(&|turn| turn["round"]["calls"][2]["state"] = handed.clone()), @r#"the snapshot is damaged: a call that is not external waits for a result"#);
    assert_snapshot!(why(&|turn| turn["conversation"]["messages"][1]["content"] = json!([])), @r#"the snapshot is damaged: the conversation is not valid"#);
    assert_snapshot!(why(&|turn| turn["conversation"]["messages"][2]["role"] = json!("user")), @r#"the snapshot is damaged: the conversation is not valid"#);
    let add = |value: &mut Value, item| value.as_array_mut().expect("a list").push(item);
    let result = json!({ "type": "tool_result", "tool_use_id": "2", "content": "again" });
    assert_snapshot!(why(&|turn| add(&mut turn["conversation"]["messages"][4]["content"], result.clone())), @r#"the snapshot is damaged: the conversation is not valid"#);
    assert_snapshot!(why(&|turn| {
        let conversation = &mut turn["conversation"];
        let revision = conversation["next_revision"].as_u64().expect("a number") + 1;
        conversation["next_revision"] = json!(revision);
        add(&mut conversation["revisions"], json!(revision));
        add(&mut conversation["messages"], json!(Message::user("Too early.")));
    }), @r#"the snapshot is damaged: the conversation is not valid"#);
    assert_snapshot!(why(&|turn| turn["steered"] = json!([{ "role": "tool", "content": [] }])), @r#"the snapshot is damaged: a prompt is not valid"#);
    assert_snapshot!(why(&|turn| turn["asked"]["place"] = json!(99)), @r#"the snapshot is damaged: a prompt is missing"#);
    assert_snapshot!(why(&|turn| turn["phase"] = json!({ "type": "continuing", "prompt": 1 })), @r#"the snapshot is damaged: the prompt is not the last message"#);
}

/// Shortening would move the refused answer to before the conversation.
#[test]
fn refused_answers_follow_their_prompt() {
    let mut options = Options::auto();
    (options.shorten, options.review_answers) = (true, true);
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Shorten { is_overflow: false });
    turn.take(StepOutcome::Shorten(ShortenOutcome::Keep)).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![text("Five.")]);
    assert_eq!(perform(&mut turn), Action::ReviewAnswer);
    assert!(turn.retry_answer("It is six."));
    let mut json = serde_json::to_value(turn.snapshot()).unwrap();
    assert_eq!(seen(&restored(&json.to_string()).unwrap()), seen(&turn));
    json["turn"]["shortening"]["prompt"] = json!(2);
    let error = restored(&json.to_string()).unwrap_err();
    assert_snapshot!(error, @"the snapshot is damaged: a refused answer comes before its prompt");
}

#[test]
fn a_snapshot_shares_the_history() {
    let turn = busy();
    let snapshot = turn.snapshot();
    let restored = Turn::restore(snapshot).unwrap();
    assert!(std::ptr::eq(turn.history().as_ptr(), restored.history().as_ptr()));
}

#[test]
fn call_keys_are_stable_and_unique() {
    let turn = busy();
    let keys =
        |turn: &Turn| (0..turn.calls().len()).map(|call| turn.call_key(call)).collect::<Vec<_>>();
    assert_eq!(keys(&turn), keys(&carried(&turn)));
    assert_eq!(turn.call_key(9), None);
    assert!(turn.lazy_call_key(9).is_none());
    let lazy = turn.lazy_call_key(2).unwrap();
    assert_eq!((lazy.seed(), Some(lazy.to_string())), ("session-7", turn.call_key(2)));
    let mut renamed = carried(&turn);
    renamed.set_key_seed("later");
    assert_snapshot!(renamed.call_key(2).unwrap(), @"later:0:2:3899c96831a14bbe");
    assert_eq!(keys(&renamed), keys(&carried(&renamed)));
    assert_snapshot!(turn.call_key(2).unwrap(), @r#"session-7:2:2:3899c96831a14bbe"#);
    let made = |seed: &str, answers: &[&str], input: Value| {
        let mut turn = Turn::new(Options::auto()).with_key_seed(seed);
        turn.submit(Message::user("Go.")).unwrap();
        for id in answers {
            assert_eq!(perform(&mut turn), Action::Request { tools: true });
            let call = oa_types::ToolUseBlock::new(*id, "a", input.clone());
            answer(&mut turn, vec![call.into()]);
        }
        turn.call_key(0).unwrap()
    };
    let key = made("x", &["0"], json!({ "a": 1, "b": [2.5, null] }));
    // Members in another order are the same call.
    let read: Value = serde_json::from_str(r#"{"b":[2.5,null],"a":1}"#).unwrap();
    assert_eq!(made("x", &["0"], read), key);
    for other in [
        made("y", &["0"], json!({ "a": 1, "b": [2.5, null] })),
        made("x", &["1"], json!({ "a": 1, "b": [2.5, null] })),
        made("x", &["0", "0"], json!({ "a": 1, "b": [2.5, null] })),
        made("x", &["0"], json!({ "a": 1, "b": [2.5, false] })),
        made("x", &["0"], json!({ "a": 1, "b": ["2.5", null] })),
        made("x", &["0"], json!({ "a": 1, "b": [2.5], "c": null })),
    ] {
        assert_ne!(other, key);
    }
    assert!(turn.calls().iter().any(Call::is_open));
}

/// Stored conversations and snapshots could not be read otherwise.
#[test]
fn deep_results_become_text() {
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    while turn.is_busy() {
        perform(&mut turn);
    }
    turn.add_result("1", nested(100), Outcome::Ok).unwrap();
    turn.add_result("2", nested(120), Outcome::Ok).unwrap();
    let text = json!(nested(120).to_string());
    assert_eq!((content(&turn, 0), content(&turn, 1)), (nested(100), text.clone()));
    turn.continue_turn().unwrap();
    assert_eq!(turn.next_action(), Some(Action::Review { call: 0 }));
    turn.review(0, nested(120));
    assert_eq!(content(&turn, 0), text);
    assert_eq!(carried(&turn).history(), turn.history());
}
