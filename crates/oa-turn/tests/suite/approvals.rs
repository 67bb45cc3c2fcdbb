//! Calls that wait for permission, in this program and in a later one.

use std::cell::RefCell;
use std::convert::Infallible;

use oa_turn::{
    Action, Answer, ApprovalOutcome, ApprovalStep, AskOutcome, AskStep, CallResult, CallState,
    DecideOutcome, DecideStep, Decision, ErrorKind, Fit, Options, Perform, RunOutcome, RunStep,
    StepCall, Turn, drive,
};
use oa_types::{
    ContentBlock, FinishReason, Message, MessageRole, Outcome, ToolResultBlock, ToolUseBlock,
};
use serde_json::{Value, json};

use crate::{answer, block_on, call, perform, text};

/// A turn with three calls: the first may run, the second waits, the third is refused.
fn waiting() -> Turn {
    let mut turn = Turn::new(Options::auto());
    turn.submit(Message::user("Go.")).expect("it is a prompt");
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![call("a", "add"), call("b", "add"), call("c", "add")]);
    let mut decisions = [
        Decision::Run(json!({ "a": 1 })),
        Decision::Wait(json!({ "a": "by a hook" })),
        Decision::Refuse(json!({ "error": "no" })),
    ]
    .into_iter();
    loop {
        match turn.next_action().expect("something is in progress") {
            Action::Decide { call } => turn.decide(call, decisions.next().expect("three calls")),
            Action::Show { .. } => {}
            Action::End { reason } => {
                assert_eq!(reason, FinishReason::ApprovalPending);
                return turn;
            }
            action => panic!("{action:?}"),
        }
    }
}

/// A waiting call is denied while the other is still being decided: the turn does not end to wait for it.
#[test]
fn early_denials_are_answered_in_the_turn() {
    let mut turn = Turn::new(Options::auto());
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![call("a", "add"), call("b", "add")]);
    let decide = |turn: &mut Turn, decision| loop {
        match turn.next_action() {
            Some(Action::Decide { call }) => return turn.decide(call, decision),
            action => assert!(matches!(action, Some(Action::Show { .. })), "{action:?}"),
        }
    };
    decide(&mut turn, Decision::Wait(json!({})));
    turn.approve("a", Decision::Refuse(json!("no"))).unwrap();
    decide(&mut turn, Decision::Refuse(json!("no")));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(roles(&turn)[2..], [MessageRole::Tool, MessageRole::Tool]);
}

fn roles(turn: &Turn) -> Vec<MessageRole> {
    turn.history().iter().map(|message| message.role).collect()
}

#[test]
fn no_call_runs_before_approval() {
    use MessageRole::{Assistant, Tool, User};
    let mut turn = waiting();
    assert!(turn.waits_for_approval() && !turn.is_busy());
    assert_eq!(roles(&turn), [User, Assistant], "nothing is answered yet");
    let error = turn.continue_turn().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OpenCalls);
    assert!(error.to_string().ends_with(": b"), "{error}");
    for (id, kind) in [("a", ErrorKind::AlreadyAnswered), ("x", ErrorKind::UnknownCall)] {
        assert_eq!(turn.approve(id, Decision::Run(json!({}))).unwrap_err().kind(), kind);
    }

    let input = turn.calls()[1].input.clone();
    turn.approve("b", Decision::Run(input)).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(turn.next_action(), Some(Action::Run { calls: vec![0, 1] }));
    assert_eq!(turn.calls()[1].input, json!({ "a": "by a hook" }), "as it was decided");
    for call in [0, 1] {
        assert!(turn.finish_call(call, json!("ok"), Outcome::Ok));
    }
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(roles(&turn), [User, Assistant, Tool, Tool, Tool]);
}

#[test]
fn waiting_calls_end_by_denial_or_new_prompt() {
    let mut turn = waiting();
    turn.approve("b", Decision::Refuse(json!({ "error": "denied" }))).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    let CallState::Answered { outcome, .. } = &turn.calls()[1].state else { panic!() };
    assert_eq!(*outcome, Outcome::Blocked);

    let mut turn = waiting();
    turn.submit(Message::user("Never mind.")).unwrap();
    assert!(!turn.waits_for_approval());
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(turn.history().len(), 6);
}

#[test]
fn resumed_calls_are_decided_again() {
    let messages = waiting().history().to_vec();
    let mut turn = Turn::new(Options::auto());
    turn.resume(messages.clone()).unwrap();
    assert!(turn.waits_for_approval());
    assert!(turn.calls().iter().all(oa_turn::Call::is_waiting), "no decision was saved");
    assert_eq!(**turn.history(), messages[..]);
    for id in ["a", "b", "c"] {
        turn.approve(id, Decision::Run(json!({ "a": id }))).unwrap();
    }
    turn.continue_turn().unwrap();
    let Some(Action::Decide { call: 0 }) = turn.next_action() else { panic!("hooks are asked") };
    assert!(turn.calls()[0].is_approved);
    turn.decide(0, Decision::Run(turn.calls()[0].input.clone()));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![text("Done.")]);
    assert_eq!(perform(&mut turn), Action::End { reason: FinishReason::Unspecified });

    let mut manual = Turn::new(Options::default());
    manual.resume(messages.clone()).unwrap();
    manual.decide_resumed(|call| call.block.id == "b");
    assert_eq!(manual.next_action(), Some(Action::Decide { call: 1 }));
    manual.decide(1, Decision::Run(json!({ "changed": true })));
    let Some(Action::Show { block: ContentBlock::ToolUse(shown) }) = manual.next_action() else {
        panic!("the caller gets the call once more");
    };
    assert_eq!((shown.id.as_str(), shown.input), ("b", json!({ "changed": true })));
    assert_eq!(manual.next_action(), Some(Action::End { reason: FinishReason::ToolCalls }));

    manual.resume(messages).unwrap();
    assert!(!manual.waits_for_approval());
    for id in ["a", "b", "c"] {
        manual.add_result(id, json!("ok"), Outcome::Ok).unwrap();
    }
    manual.continue_turn().unwrap();
    assert_eq!(perform(&mut manual), Action::Request { tools: true });
}

/// Only calls without a result wait after a resume; a history without open calls is taken as it is.
#[test]
fn resume_keeps_earlier_results() {
    let mut first = Turn::new(Options::default());
    first.submit(Message::user("Go.")).unwrap();
    perform(&mut first);
    answer(&mut first, vec![call("a", "add"), call("b", "add")]);
    perform(&mut first);
    first.add_result("b", json!("two"), Outcome::Failed).unwrap();

    let mut turn = Turn::new(Options::auto());
    turn.resume(first.history().to_vec()).unwrap();
    assert!(turn.calls()[0].is_waiting() && !turn.calls()[1].is_open());
    turn.approve("a", Decision::Run(json!({}))).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    let ids: Vec<_> = turn.calls().iter().map(|call| &*call.block.id).collect();
    assert_eq!(ids, ["a", "b"]);

    let whole = turn.history().to_vec();
    let mut turn = Turn::new(Options::auto());
    turn.resume(whole.clone()).unwrap();
    assert!(!turn.waits_for_approval() && !turn.calls().iter().any(oa_turn::Call::is_open));
    assert_eq!(**turn.history(), whole[..]);
    turn.resume(Vec::new()).unwrap();
    assert!(turn.history().is_empty());
}

/// The results of the third and the first call came before the second was approved; all are reviewed now.
#[test]
fn earlier_results_are_reviewed_not_shown() {
    let mut first = Turn::new(Options::default());
    first.submit(Message::user("Go.")).unwrap();
    perform(&mut first);
    answer(&mut first, vec![call("a", "add"), call("b", "add"), call("c", "add")]);
    perform(&mut first);
    for id in ["c", "a"] {
        first.add_result(id, json!("known"), Outcome::Ok).unwrap();
    }

    let mut turn = Turn::new(Options::auto());
    turn.resume(first.history().to_vec()).unwrap();
    turn.approve("b", Decision::Refuse(json!("no"))).unwrap();
    turn.continue_turn().unwrap();
    let (mut shown, mut reviewed) = (Vec::new(), Vec::new());
    loop {
        match turn.next_action().unwrap() {
            Action::Show { block: ContentBlock::ToolResult(result) } => {
                shown.push(result.tool_use_id);
            }
            Action::Show { .. } => {}
            Action::Review { call } => {
                reviewed.push(call);
                turn.review(call, json!("reviewed"));
            }
            action => break assert_eq!(action, Action::Request { tools: true }),
        }
    }
    assert_eq!(shown, ["b"]);
    assert_eq!(reviewed, [0, 2, 1]);
}

/// Results of an earlier conversation were shown there, also if the turn then waits for others.
#[test]
fn earlier_results_are_not_shown_while_waiting() {
    let result = ToolResultBlock::new("a", json!("known"));
    let asked = Message::assistant(vec![call("a", "add"), call("b", "add"), call("c", "ask_user")]);
    let mut turn = Turn::new(Options::auto());
    turn.set_external_tools(["ask_user".to_owned()]);
    turn.resume(vec![Message::user("Go."), asked, Message::tool(result)]).unwrap();
    for id in ["b", "c"] {
        turn.approve(id, Decision::Run(json!({}))).unwrap();
    }
    turn.continue_turn().unwrap();
    let mut shown = Vec::new();
    let end = loop {
        match turn.next_action().unwrap() {
            Action::Decide { call } => turn.allow(call),
            Action::Run { calls } => {
                assert_eq!(calls, [1, 2]);
                assert!(turn.await_result(2) && turn.finish_call(1, json!("new"), Outcome::Ok));
            }
            Action::Review { call } => turn.review(call, crate::content(&turn, call)),
            Action::Show { block: ContentBlock::ToolResult(result) } => {
                shown.push(result.tool_use_id);
            }
            Action::Show { .. } => {}
            action => break action,
        }
    };
    assert_eq!(end, Action::End { reason: FinishReason::WaitsForResults });
    assert_eq!(shown, ["b"]);
}

/// Calls are shown again once they are decided, unless the caller has answered them by then.
#[test]
fn calls_answered_before_a_decision_stay_hidden() {
    let mut turn = Turn::new(Options::default());
    let asked = Message::assistant(vec![call("a", "add"), call("b", "add")]);
    turn.resume(vec![Message::user("Go."), asked]).unwrap();
    turn.decide_resumed(|_| true);
    assert_eq!(turn.next_action(), Some(Action::Decide { call: 0 }));
    turn.add_result("a", json!("early"), Outcome::Ok).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Decide { call: 1 }));
    turn.allow(1);
    assert_eq!(turn.next_action(), Some(Action::Show { block: call("b", "add") }));
    assert_eq!(perform(&mut turn), Action::End { reason: FinishReason::ToolCalls });
}

/// The completed input concerns the call alone; history keeps the model's own.
#[test]
fn completed_input_stays_out_of_history() {
    let mut turn = waiting();
    let completed = json!({ "a": 1, "path": "/" });
    for place in 0..3 {
        turn.set_input(place, completed.clone(), Fit::Fits);
    }
    turn.set_input(3, completed.clone(), Fit::Fits);
    let inputs: Vec<_> = turn.calls().iter().map(|call| &call.input).collect();
    let own = json!({ "a": 1 });
    assert_eq!(inputs, [&completed, &completed, &own], "the third was refused before");
    assert_eq!(turn.calls()[2].fit, Fit::Unchecked);
    assert!(turn.calls().iter().all(|call| call.block.input == own));
    assert!(!serde_json::to_string(&**turn.history()).unwrap().contains("path"));
}

/// Inputs are prepared once, before the caller is shown a call, and a call that is allowed runs with them.
#[test]
fn call_inputs_are_prepared_once() {
    let mut turn = Turn::new(Options::auto());
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![call("a", "add"), call("b", "unknown")]);
    let completed = json!({ "a": 1, "path": "/" });
    turn.prepare_calls(|name, input| {
        assert_eq!(input, json!({ "a": 1 }));
        if name == "add" { Ok(completed.clone()) } else { Err("no such tool".to_owned()) }
    });
    turn.prepare_calls(|_, _| panic!("all calls are prepared"));
    let mut shown = Vec::new();
    for place in 0..2 {
        // Only the call that was handed out is decided.
        turn.allow(place);
        loop {
            match turn.next_action().unwrap() {
                Action::Decide { call } => break turn.allow(call),
                Action::Show { block } => shown.push(block),
                action => panic!("{action:?}"),
            }
        }
    }
    let inputs = shown.iter().filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(&call.input),
        _ => None,
    });
    let own = json!({ "a": 1 });
    assert_eq!(inputs.collect::<Vec<_>>(), [&completed, &own]);
    assert_eq!(turn.calls()[0].input, completed);
    assert_eq!(turn.calls()[1].input, own);
    assert_eq!(turn.calls()[1].fit, Fit::Unfit("no such tool".to_owned()));
    assert_eq!(turn.next_action(), Some(Action::Run { calls: vec![0, 1] }));
    assert!(turn.calls().iter().all(|call| call.state == CallState::Allowed));
}

/// `{}` and the default written out are one call.
#[test]
fn repeat_guard_compares_completed_inputs() {
    let mut turn = Turn::new(Options::auto());
    turn.submit(Message::user("Go.")).unwrap();
    for round in 0..3 {
        assert_eq!(perform(&mut turn), Action::Request { tools: true });
        let input = if round == 1 { json!({}) } else { json!({ "path": "/" }) };
        let call = ToolUseBlock::new(format!("{round}"), "list", input);
        answer(&mut turn, vec![call.into()]);
        loop {
            match turn.next_action().unwrap() {
                Action::Decide { call } => {
                    turn.decide(call, Decision::Run(json!({ "path": "/" })));
                    break;
                }
                Action::Show { .. } => {}
                action => panic!("{action:?}"),
            }
        }
    }
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    let told = serde_json::to_string(&**turn.history()).unwrap();
    assert!(told.contains("arguments 3 times"), "{told}");
}

/// The result of a refused call enters history when the turn continues.
#[test]
fn checkpoint_waits_while_a_call_is_open() {
    let mut turn = Turn::new(Options::auto());
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![call("1", "a")]);
    while !matches!(turn.next_action(), Some(Action::Decide { .. })) {}
    turn.decide(0, Decision::Wait(json!({})));
    assert!(matches!(turn.next_action(), Some(Action::End { .. })));
    turn.approve("1", Decision::Refuse(json!("no"))).unwrap();
    assert_eq!(turn.history().len(), 2);
    assert_eq!(turn.checkpoint().map(|checkpoint| checkpoint.waits), Some(true));
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(turn.history().len(), 3);
}

/// Changes the input when it approves, and checks every input.
struct Checking(RefCell<Vec<Fit>>);

impl Perform for Checking {
    type Error = Infallible;

    async fn ask(&self, step: AskStep) -> Result<AskOutcome, Infallible> {
        let blocks = if step.number == 1 { vec![call("1", "a")] } else { vec![text("Done.")] };
        Ok(AskOutcome::answered(Answer::new(blocks)))
    }

    async fn decide(&self, step: DecideStep) -> Result<DecideOutcome, Infallible> {
        let oa_turn::Call { input, fit, .. } = step.call.call;
        let decision = Decision::Ask(input);
        Ok(DecideOutcome::Decided { decision, refused_input: None, fit })
    }

    async fn approve(&self, step: ApprovalStep) -> Result<ApprovalOutcome, Infallible> {
        let id = step.calls[0].call.block.id.clone();
        Ok(ApprovalOutcome::Decided { id, decision: Decision::Run(json!({ "wrong": 1 })) })
    }

    async fn run(&self, step: RunStep) -> Result<RunOutcome, Infallible> {
        let run = |call: &StepCall| {
            self.0.borrow_mut().push(call.call.fit.clone());
            CallResult::new(call.place, json!("ok"), Outcome::Ok)
        };
        Ok(RunOutcome::new(step.calls.iter().map(run).collect()))
    }

    fn prepare(&self, call: &ToolUseBlock) -> (Value, Fit) {
        let is_right = call.input.get("wrong").is_none();
        let fit = if is_right { Fit::Fits } else { Fit::Unfit("wrong".to_owned()) };
        (call.input.clone(), fit)
    }
}

#[test]
fn an_approved_change_is_checked_again() {
    let mut turn = Turn::new(Options::auto());
    turn.submit(Message::user("Go.")).unwrap();
    let checking = Checking(RefCell::default());
    assert_eq!(block_on(drive(&mut turn, &checking)).unwrap(), FinishReason::Unspecified);
    assert_eq!(checking.0.take(), [Fit::Unfit("wrong".to_owned())]);
}
