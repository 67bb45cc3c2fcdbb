//! Turns that are steered, planned step by step, and answered from outside.

use oa_turn::{
    Action, Call, CallResult, Decision, ErrorKind, Fit, Options, PromptOutcome, RunOutcome,
    ShortenOutcome, SteerAfterEnd, SteerQueue, Step, StepContext, StepOutcome, StepPlan,
    StopOutcome, Turn,
};
use oa_types::wire::Thinking;
use oa_types::{ErrorRecord, FinishReason, Message, Outcome};
use serde_json::json;

use crate::rules::{auto, end, shown};
use crate::{answer, call, perform, text, told};

fn steered(prompt: &str) -> Option<Action> {
    Some(Action::Submit { prompt: Message::user(prompt), steered: true })
}

#[test]
fn steered_messages_follow_the_results() {
    let mut turn = auto();
    turn.steer(Message::user("In French.")).unwrap();
    assert_eq!(turn.next_action(), None, "a request is on its way");
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    turn.steer(Message::user("Briefly.")).unwrap();
    assert_eq!(Some(perform(&mut turn)), steered("In French."));
    assert_eq!(turn.pending_action(), steered("In French."));
    turn.accept_prompt(Some("En français.".to_owned())).unwrap();
    assert_eq!(turn.next_action(), steered("Briefly."));
    turn.refuse_steered();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    assert_eq!(turn.steered().len(), 0);
    assert_eq!(
        told(&turn),
        [
            "user: Go.",
            r#"assistant: [1 {"a":1}] [2 {"a":1}]"#,
            r#"tool: 1="ok""#,
            r#"tool: 2="ok""#,
            "user: En français.",
        ]
    );
    assert_eq!(turn.turns(), 1, "it is no prompt");
}

#[test]
fn steered_messages_continue_an_ending_turn() {
    for after_end in [SteerAfterEnd::Continue, SteerAfterEnd::Keep] {
        let mut options = Options::auto();
        options.steer_after_end = after_end;
        let mut turn = Turn::new(options);
        turn.submit(Message::user("Go.")).unwrap();
        assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
        answer(&mut turn, vec![text("Done.")]);
        turn.steer(Message::user("And then?")).unwrap();
        if after_end == SteerAfterEnd::Keep {
            assert_eq!(turn.next_action(), Some(end(FinishReason::Unspecified)));
            assert_eq!(turn.next_action(), None);
            turn.submit(Message::user("On.")).unwrap();
        }
        assert_eq!(turn.next_action(), steered("And then?"));
        turn.accept_prompt(None).unwrap();
        assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
        answer(&mut turn, vec![text("That.")]);
        assert_eq!(turn.next_action(), Some(end(FinishReason::Unspecified)));
    }
}

/// Otherwise the next request would end with the answer, and strict servers have nothing to answer then.
#[test]
fn refused_steering_lets_the_turn_end() {
    let mut options = Options::auto();
    options.final_text_only = true;
    for words in [None, Some(" ")] {
        let mut turn = Turn::new(options);
        turn.submit(Message::user("Go.")).unwrap();
        assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
        answer(&mut turn, vec![text("Done.")]);
        turn.steer(Message::user("And then?")).unwrap();
        turn.steer(Message::user("And when?")).unwrap();
        for message in ["And then?", "And when?"] {
            assert_eq!(turn.next_action(), steered(message));
            match words {
                Some(words) => drop(turn.accept_prompt(Some(words.to_owned())).unwrap_err()),
                None => turn.refuse_steered(),
            }
        }
        let last = Some(end(FinishReason::Unspecified));
        assert_eq!(shown(&mut turn), (vec!["Done.".to_owned()], last));
    }
}

/// A failure, an interrupt and a used-up budget keep what has not entered.
#[test]
fn steered_messages_outlive_their_turn() {
    let mut turn = auto();
    turn.steer(Message::user("Hm.")).unwrap();
    turn.fail();
    assert!(turn.history().is_empty(), "the prompt was taken back");
    turn.submit(Message::user("Again.")).unwrap();
    assert_eq!(turn.next_action(), steered("Hm."));
    turn.interrupt(Vec::new());
    assert_eq!(turn.next_action(), Some(end(FinishReason::Interrupted)));
    assert_eq!(turn.steered().len(), 1);

    let mut options = Options::auto();
    options.max_tokens = Some(1);
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    turn.steer(Message::user("Hm.")).unwrap();
    let mut spent = oa_turn::Answer::new(vec![text("Done.")]);
    spent.tokens = 1;
    turn.answer(spent);
    assert_eq!(turn.next_action(), Some(end(FinishReason::Unspecified)));
    assert_eq!(turn.steered().len(), 1);
}

/// The one that is under review is not withdrawn.
#[test]
fn steered_messages_can_be_withdrawn() {
    let mut turn = auto();
    turn.steer(Message::user("One.")).unwrap();
    turn.steer(Message::user("Two.")).unwrap();
    answer(&mut turn, vec![call("1", "a")]);
    assert_eq!(Some(perform(&mut turn)), steered("One."));
    assert_eq!(turn.take_steered(), [Message::user("Two.")]);
    turn.accept_prompt(None).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    turn.steer(Message::user("Three.")).unwrap();
    turn.interrupt(Vec::new());
    assert_eq!(turn.next_action(), Some(end(FinishReason::Interrupted)));
    assert_eq!(turn.take_steered(), [Message::user("Three.")]);
    assert_eq!(turn.take_steered(), []);
    turn.submit(Message::user("On.")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
}

#[test]
fn steering_is_bounded_and_checked() {
    let mut turn = Turn::new(Options::auto());
    let blank = turn.steer(Message::user(" ")).unwrap_err();
    assert_eq!(blank.kind(), ErrorKind::InvalidPrompt);
    for _ in 0..64 {
        turn.steer(Message::user("Hm.")).unwrap();
    }
    let full = turn.steer(Message::user("Hm.")).unwrap_err();
    assert_eq!(full.to_string(), "64 messages are already waiting for the next request");
}

/// Without a gate for prompts a steered message of the failed first request would be lost with its prompt.
#[test]
fn failed_request_keeps_steered_messages() {
    let mut turn = Turn::new(Options::auto());
    turn.steer(Message::user("Hm.")).unwrap();
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(turn.next_action(), steered("Hm."));
    turn.accept_prompt(None).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    turn.fail();
    assert_eq!(told(&turn), ["user: Go.", "user: Hm."]);
    assert!(turn.is_retry(&Message::user("Go.")), "the same prompt is a retry");
    turn.retry(&Message::user("Go.")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    assert_eq!(told(&turn), ["user: Go.", "user: Hm."]);
}

fn planned() -> Turn {
    let mut options = Options::auto();
    options.plan_steps = true;
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).expect("the test is set up");
    turn
}

#[test]
fn plans_are_stored_as_they_were_made() {
    let mut turn = planned();
    turn.next_action();
    let plans = [Thinking::On, Thinking::Off, "low".into()].map(|thinking| {
        let step = StepContext::new(turn.plan_step(1)).thinking(thinking);
        step.temperature(0.2).max_tokens(90).extra_body([("top_k", 1), ("min_p", 0)]).plan()
    });
    let stored = plans.each_ref().map(|plan| serde_json::to_string(plan).unwrap());
    let rest = r#""temperature":0.2,"max_tokens":90,"extra_body":{"top_k":1,"min_p":0}}"#;
    let expected = ["true", "false", r#""low""#].map(|how| format!(r#"{{"thinking":{how},{rest}"#));
    assert_eq!(stored, expected);
    let read = stored.each_ref().map(|plan| serde_json::from_str::<StepPlan>(plan).unwrap());
    assert_eq!(read, plans);
    assert_eq!(serde_json::to_string(&StepPlan::default()).unwrap(), "{}");
}

#[test]
fn a_step_may_offer_no_tools() {
    let mut turn = planned();
    turn.next_action();
    let mut plan = StepPlan::default();
    plan.only_tools = Some(Vec::new());
    turn.plan(plan);
    perform(&mut turn);
    answer(&mut turn, vec![call("1", "a")]);
    perform(&mut turn);
    let error = r#"{"error":"there is no such tool in this step","tool":"a","available":[]}"#;
    assert_eq!(told(&turn)[2], format!("tool: 1!{error}"));
}

#[test]
fn each_request_is_planned() {
    let mut turn = planned();
    assert_eq!(turn.next_action(), Some(Action::Plan { step: 1 }));
    assert_eq!(turn.next_action(), None);
    let mut plan = StepPlan::default();
    (plan.only_tools, plan.model) = (Some(vec!["b".to_owned()]), Some("small".to_owned()));
    turn.plan(plan.clone());
    turn.plan(StepPlan::default());
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    assert_eq!(turn.step_plan(), Some(&plan));
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    let Action::Plan { step: 2 } = perform(&mut turn) else { panic!("{turn:?}") };
    assert_eq!(
        told(&turn)[2..],
        [
            r#"tool: 1!{"error":"there is no such tool in this step","tool":"a","available":["b"]}"#,
            r#"tool: 2="ok""#,
        ]
    );
    assert_eq!(turn.last_calls().len(), 2);
    turn.plan(StepPlan::default());
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    assert_eq!((turn.step_plan(), turn.steps()), (None, 2));
    answer(&mut turn, vec![text("Done.")]);
    assert_eq!(turn.next_action(), Some(end(FinishReason::Unspecified)));
    turn.submit(Message::user("On.")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Plan { step: 1 }), "each turn counts anew");
    assert!(turn.last_calls().is_empty());
}

#[test]
fn the_output_tool_is_always_offered() {
    let mut turn = planned();
    turn.begin_output(Some("answer".to_owned()));
    assert_eq!(turn.next_action(), Some(Action::Plan { step: 1 }));
    let mut plan = StepPlan::default();
    plan.only_tools = Some(vec!["search".to_owned()]);
    turn.plan(plan);
    assert!(turn.step_plan().is_some_and(|plan| plan.offers("answer") && plan.offers("search")));
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    answer(&mut turn, vec![call("1", "answer")]);
    assert_eq!(perform(&mut turn), Action::Plan { step: 2 });
    assert_eq!(told(&turn)[2], r#"tool: 1="ok""#);
}

#[test]
fn a_plan_can_end_the_turn() {
    for reason in [FinishReason::Stopped, FinishReason::Stop, FinishReason::from("enough")] {
        let mut turn = planned();
        let mut plan = StepPlan::default();
        plan.end = Some(reason.clone());
        assert_eq!(turn.next_action(), Some(Action::Plan { step: 1 }));
        turn.steer(Message::user("Hm.")).unwrap();
        turn.plan(plan);
        assert!(!turn.correct(Message::user("No.")) && turn.step_plan().is_none());
        assert_eq!(turn.next_action(), Some(end(reason)));
        assert_eq!((told(&turn), turn.steered().len()), (vec!["user: Go.".to_owned()], 1));
        turn.continue_turn().unwrap();
        assert_eq!(turn.next_action(), steered("Hm."));
        turn.refuse_steered();
        assert_eq!(turn.next_action(), Some(Action::Plan { step: 1 }));
        turn.plan(StepPlan::default());
        assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
        answer(&mut turn, vec![text("Done.")]);
        turn.steer(Message::user("Hm.")).unwrap();
        assert_eq!(turn.next_action(), steered("Hm."), "the plan is over");
    }
}

/// The condition sees the conversation as the model's calls have left it.
#[test]
fn stop_check_precedes_steering() {
    let mut options = Options::auto();
    (options.check_stop, options.shorten, options.plan_steps) = (true, true, true);
    for outcome in [StopOutcome::Continue, StopOutcome::Stop] {
        let mut turn = Turn::new(options);
        turn.submit(Message::user("Go.")).unwrap();
        assert_eq!(turn.next_action(), Some(Action::Shorten { is_overflow: false }));
        turn.take(StepOutcome::Shorten(ShortenOutcome::Keep)).unwrap();
        assert_eq!(turn.next_action(), Some(Action::Plan { step: 1 }), "no step is over");
        turn.plan(StepPlan::default());
        assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
        answer(&mut turn, vec![call("1", "a")]);
        turn.steer(Message::user("Hm.")).unwrap();
        assert_eq!(perform(&mut turn), Action::CheckStop { step: 1 });
        assert_eq!(turn.pending_action(), Some(Action::CheckStop { step: 1 }));
        assert_eq!(turn.next_action(), None);
        let check = turn.stop_check();
        assert_eq!((check.step, check.last_calls.len(), check.history.len()), (1, 1, 3));
        turn.take(StepOutcome::CheckStop(outcome.clone())).unwrap();
        if outcome == StopOutcome::Stop {
            assert_eq!(turn.next_action(), Some(end(FinishReason::Stopped)));
            assert_eq!((turn.history().len(), turn.steered().len()), (3, 1), "it waits");
            turn.continue_turn().unwrap();
        }
        // The step is not checked again.
        assert_eq!(turn.next_action(), steered("Hm."));
    }
}

/// Calls that had waited are over once they have their results; those before a prompt are of no step of its turn.
#[test]
fn stop_check_waits_for_external_results() {
    let mut options = Options::auto();
    options.check_stop = true;
    let mut turn = Turn::new(options);
    turn.set_external_tools(["ask_user".to_owned()]);
    turn.submit(Message::user("Go.")).unwrap();
    for goes_on in [true, false] {
        assert_eq!(perform(&mut turn), Action::Request { tools: true });
        answer(&mut turn, vec![call("1", "ask_user")]);
        assert_eq!(perform(&mut turn), end(FinishReason::WaitsForResults));
        if goes_on {
            turn.add_result("1", json!("Yes."), Outcome::Ok).unwrap();
            turn.continue_turn().unwrap();
            assert_eq!(perform(&mut turn), Action::CheckStop { step: 0 });
            turn.take(StepOutcome::CheckStop(StopOutcome::Continue)).unwrap();
        } else {
            turn.submit(Message::user("Never mind.")).unwrap();
            assert_eq!(perform(&mut turn), Action::Request { tools: true });
        }
    }
}

fn external() -> Turn {
    let mut turn = Turn::new(Options::auto());
    turn.set_external_tools(["ask_user".to_owned()]);
    turn.submit(Message::user("Go.")).expect("the test is set up");
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    answer(&mut turn, vec![call("1", "ask_user"), call("2", "add"), call("3", "ask_user")]);
    turn
}

#[test]
fn external_calls_end_the_turn() {
    let mut turn = external();
    let early = turn.add_result("1", json!("Yes."), Outcome::Ok).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::AlreadyAnswered, "it is not decided yet");
    assert_eq!(perform(&mut turn), end(FinishReason::WaitsForResults));
    let error = turn.continue_turn().unwrap_err();
    assert_eq!(error.to_string(), "calls have no result yet: 1, 3");
    turn.add_result("3", json!("No."), Outcome::Ok).unwrap();
    assert!(turn.add_result("3", json!("No."), Outcome::Ok).is_err());
    assert!(turn.add_result("2", json!("No."), Outcome::Ok).is_err(), "it has run");
    turn.add_result("1", json!("Yes."), Outcome::Ok).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(told(&turn)[2..], [r#"tool: 1="Yes.""#, r#"tool: 2="ok""#, r#"tool: 3="No.""#]);
}

#[test]
fn other_results_are_shown_before_waiting() {
    let mut turn = external();
    let mut results = Vec::new();
    loop {
        let (mut blocks, action) = shown(&mut turn);
        results.append(&mut blocks);
        match action.unwrap() {
            Action::Decide { call } => turn.allow(call),
            Action::Run { calls } => {
                assert_eq!(calls, [0, 1, 2]);
                assert!(turn.await_result(0) && turn.await_result(2));
                assert!(!turn.await_result(0) && !turn.await_result(1), "it runs");
                assert!(!turn.finish_call(0, json!("ok"), Outcome::Ok));
                assert!(turn.finish_call(1, json!("ok"), Outcome::Ok));
            }
            Action::Review { call } => turn.review(call, json!("ok")),
            action => {
                assert_eq!(action, end(FinishReason::WaitsForResults));
                break;
            }
        }
    }
    assert_eq!(results.last().unwrap(), r#"2="ok""#);
}

/// A result may come while the other calls still run: then the turn does not end.
#[test]
fn early_external_result_keeps_turn_going() {
    let mut turn = Turn::new(Options::auto());
    turn.set_external_tools(["ask_user".to_owned()]);
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    answer(&mut turn, vec![call("1", "ask_user"), call("2", "add")]);
    loop {
        match turn.next_action().unwrap() {
            Action::Decide { call } => turn.decide(call, Decision::Run(json!({}))),
            Action::Run { .. } => break,
            Action::Show { .. } => {}
            action => panic!("{action:?}"),
        }
    }
    turn.add_result("1", json!("Yes."), Outcome::Ok).unwrap_err();
    assert!(turn.await_result(0));
    turn.add_result("1", json!("Yes."), Outcome::Ok).unwrap();
    assert!(turn.finish_call(1, json!("ok"), Outcome::Ok));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
}

/// An external call is handed out only if the driver admits it, and never with an invalid input.
#[test]
fn external_calls_are_admitted_last() {
    let mut turn = external();
    turn.set_input(2, json!({ "question": 1 }), Fit::Unfit("question: expected a string".into()));
    while let Some(action) = turn.next_action() {
        match action {
            Action::Decide { call } => {
                turn.allow(call);
                assert!(!turn.await_result(call), "it was not handed out to run");
            }
            Action::Run { calls } => {
                assert_eq!(calls, [0, 1, 2]);
                break;
            }
            _ => {}
        }
    }
    assert!(turn.add_result("1", json!("Yes."), Outcome::Ok).is_err(), "it was not admitted");
    assert_eq!(turn.pending_action(), Some(Action::Run { calls: vec![0, 1, 2] }));
    assert!(turn.finish_call(0, json!({ "error": "permission denied" }), Outcome::Blocked));
    assert!(!turn.await_result(0) && !turn.await_result(2), "one is denied, one invalid");
    assert!(turn.finish_call(1, json!("ok"), Outcome::Ok));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    let invalid =
        r#"{"error":"invalid arguments","tool":"ask_user","reason":"question: expected a string"}"#;
    let denied = r#"{"error":"permission denied"}"#;
    assert_eq!(
        told(&turn)[2..],
        [format!("tool: 1!{denied}"), r#"tool: 2="ok""#.to_owned(), format!("tool: 3!{invalid}")]
    );
}

/// After an approval in another turn, the call is admitted before it is handed out.
#[test]
fn approved_external_calls_are_admitted() {
    let mut turn = external();
    loop {
        match turn.next_action().unwrap() {
            Action::Decide { call } => turn.decide(call, Decision::Wait(json!({}))),
            Action::End { reason } => {
                assert_eq!(reason, FinishReason::ApprovalPending);
                break;
            }
            _ => {}
        }
    }
    for id in ["1", "2", "3"] {
        turn.approve(id, Decision::Run(json!({}))).unwrap();
        assert!(turn.add_result(id, json!("Yes."), Outcome::Ok).is_err());
    }
    turn.continue_turn().unwrap();
    assert_eq!(turn.next_action(), Some(Action::Run { calls: vec![0, 1, 2] }));
    // In another process, nobody knows whether the others ran, and the external ones are admitted there.
    let json = serde_json::to_string(&turn.snapshot()).unwrap();
    let mut turn = Turn::restore(serde_json::from_str(&json).unwrap()).unwrap();
    let Some(Step::Run(step)) = turn.next_step() else { panic!("the calls are to run") };
    assert_eq!(
        step.calls.iter().map(|it| it.may_have_run).collect::<Vec<_>>(),
        [false, true, false]
    );
    let denied = CallResult::new(2, json!("no"), Outcome::Blocked);
    turn.take(StepOutcome::Run(RunOutcome::new(vec![denied]))).unwrap();
    assert_eq!(perform(&mut turn), end(FinishReason::WaitsForResults));
    let waiting: Vec<bool> = turn.calls().iter().map(Call::waits_for_result).collect();
    assert_eq!(waiting, [true, false, false]);
}

#[test]
fn resumed_external_calls_need_permission() {
    let mut turn = external();
    assert_eq!(perform(&mut turn), end(FinishReason::WaitsForResults));
    let messages = turn.history().to_vec();
    let mut later = Turn::new(Options::auto());
    later.set_external_tools(["ask_user".to_owned()]);
    later.resume(messages.clone()).unwrap();
    assert!(later.waits_for_approval(), "history does not say whether they had permission");
    assert!(later.add_result("1", json!("Yes."), Outcome::Ok).is_err());
    later.allow_external(|call| call.block.id == "1");
    assert!(later.waits_for_approval());
    later.approve("3", Decision::Run(json!({}))).unwrap();
    later.continue_turn().unwrap();
    assert_eq!(later.next_action(), Some(Action::Decide { call: 2 }), "it is decided again");
    later.resume(messages.clone()).unwrap_err();
    later.interrupt(Vec::new());
    while later.next_action().is_some() {}
    later.resume(messages).unwrap();
    later.allow_external(|_| true);
    assert!(!later.waits_for_approval());
    later.add_result("1", json!("Yes."), Outcome::Ok).unwrap();
    later.add_result("3", json!("No."), Outcome::Ok).unwrap();
    later.continue_turn().unwrap();
    assert_eq!(perform(&mut later), Action::Request { tools: true });
    assert_eq!(told(&later)[2..], [r#"tool: 1="Yes.""#, r#"tool: 2="ok""#, r#"tool: 3="No.""#]);
}

#[test]
fn a_new_prompt_answers_external_calls() {
    let mut turn = external();
    assert_eq!(perform(&mut turn), end(FinishReason::WaitsForResults));
    turn.submit(Message::user("Never mind.")).unwrap();
    let error = r#"{"error":"not run: the user moved on without it","tool":"ask_user"}"#;
    assert_eq!(told(&turn)[2], format!("tool: 1!{error}"));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
}

/// A message whose review fails ends its turn, and no other.
#[test]
fn failed_steered_messages_are_dropped() {
    let mut turn = Turn::new(Options::auto());
    turn.steer(Message::user("Boo.")).unwrap();
    turn.steer(Message::user("Also this.")).unwrap();
    turn.submit(Message::user("Go.")).unwrap();
    assert!(matches!(turn.next_action(), Some(Action::Submit { steered: true, .. })));
    let error = Box::new(ErrorRecord::new("hook", "no idea"));
    let failed = StepOutcome::SubmitPrompt(PromptOutcome::Failed { error: error.clone() });
    assert_eq!(turn.take(failed), Err(error));
    assert!(turn.history().is_empty() && !turn.is_busy());
    assert_eq!(turn.take_steered(), [Message::user("Also this.")]);
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
}

/// Decides the calls of [`external`]: the second waits for permission, and the others are allowed. Returns the next
/// action.
fn second_waits(turn: &mut Turn) -> Option<Action> {
    loop {
        match turn.next_action() {
            Some(Action::Decide { call: 1 }) => turn.decide(1, Decision::Wait(json!({}))),
            Some(Action::Decide { call }) => turn.allow(call),
            Some(Action::Show { .. }) => {}
            action => return action,
        }
    }
}

/// A call that was allowed is handed out although another one still waits, so that both can be answered at once.
#[test]
fn allowed_external_calls_go_out_at_once() {
    let mut turn = external();
    turn.set_input(2, json!({}), Fit::Unfit("no question".into()));
    assert_eq!(second_waits(&mut turn), Some(Action::Run { calls: vec![0] }));
    assert_eq!(turn.next_action(), None, "the call is neither admitted nor denied");
    assert!(!turn.finish_call(1, json!("ok"), Outcome::Ok) && !turn.await_result(2));
    assert!(turn.await_result(0) && !turn.await_result(0));
    assert_eq!(turn.next_action(), Some(end(FinishReason::ApprovalPending)));
    turn.add_result("3", json!("No."), Outcome::Ok).unwrap_err();
    turn.add_result("1", json!("Yes."), Outcome::Ok).unwrap();
    turn.approve("2", Decision::Run(json!({}))).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(turn.next_action(), Some(Action::Run { calls: vec![1, 2] }));
    assert!(!turn.await_result(2) && turn.finish_call(1, json!("ok"), Outcome::Ok));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(told(&turn)[2..4], [r#"tool: 1="Yes.""#, r#"tool: 2="ok""#]);
}

/// The mode or a rule may have changed while the other call was decided, so the driver can still deny the call.
#[test]
fn external_calls_are_admitted_before_approvals() {
    let mut turn = external();
    assert_eq!(second_waits(&mut turn), Some(Action::Run { calls: vec![0, 2] }));
    // In another process, they are handed out again.
    let json = serde_json::to_string(&turn.snapshot()).unwrap();
    let mut turn = Turn::restore(serde_json::from_str(&json).unwrap()).unwrap();
    let Some(Step::Run(step)) = turn.next_step() else { panic!("the calls are to be admitted") };
    assert_eq!(step.calls.iter().map(|call| call.place).collect::<Vec<_>>(), [0, 2]);
    assert!(step.calls.iter().all(|call| !call.may_have_run));
    let denied = CallResult::new(0, json!("no"), Outcome::Blocked);
    turn.take(StepOutcome::Run(RunOutcome::new(vec![denied]))).unwrap();
    assert_eq!(turn.next_action(), Some(end(FinishReason::ApprovalPending)));
    turn.add_result("1", json!("Yes."), Outcome::Ok).unwrap_err();
    turn.add_result("3", json!("No."), Outcome::Ok).unwrap();
    turn.approve("2", Decision::Run(json!({}))).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(turn.next_action(), Some(Action::Run { calls: vec![1] }));
    assert!(turn.finish_call(1, json!("ok"), Outcome::Ok));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(told(&turn)[2..], [r#"tool: 1!"no""#, r#"tool: 2="ok""#, r#"tool: 3="No.""#]);
}

#[test]
fn queued_messages_enter_as_a_turn_accepts_them() {
    let (queue, mut turn) = (SteerQueue::default(), auto());
    let user = |number: usize| Message::user(format!("Message {number}."));
    assert_eq!(queue.push(Message::user(" ")).unwrap_err().kind(), ErrorKind::InvalidPrompt);
    (0..64).for_each(|number| queue.push(user(number)).unwrap());
    assert_eq!(queue.push(user(64)).unwrap_err().kind(), ErrorKind::InvalidPrompt);
    (64..67).for_each(|number| turn.steer(user(number)).unwrap());
    // The turn holds 64, too; the others wait in order.
    queue.enter(&mut turn);
    assert_eq!((queue.len(), turn.steered().len()), (3, 64));
    assert_eq!(queue.take().collect::<Vec<_>>(), [user(61), user(62), user(63)]);
    assert!(queue.is_empty());
}
