//! The JSON of turns, and of the inputs and outputs of their drivers.

use std::fmt::Debug;

use insta::assert_snapshot;
use oa_turn::{
    Action, Answer, ApprovalOutcome, AskOutcome, BudgetLeft, Call, CallResult, CallState, CutBy,
    DecideOutcome, Decision, Fit, Mode, Options, PromptOutcome, ReviewAnswerOutcome, ReviewOutcome,
    RunOutcome, Spent, SteerAfterEnd, Step, StepOutcome, Turn,
};
use oa_types::{AssistantMessage, Cost, ErrorRecord, FinishReason, Message, Outcome, Usage};
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
        Action::Submit { prompt: Message::user("Hi"), steered: false },
        Action::Plan { step: 1 },
        Action::ReviewAnswer,
        Action::CheckStop { step: 1 },
    ];
    assert_snapshot!(lines(&actions), @r#"
    {"type":"decide","call":0}
    {"type":"end","reason":"max_tool_calls"}
    {"type":"request","tools":true}
    {"type":"review","call":1}
    {"type":"run","calls":[0,2]}
    {"type":"show","block":{"type":"text","text":"Hi"}}
    {"type":"submit","prompt":{"role":"user","content":[{"type":"text","text":"Hi"}]}}
    {"type":"plan","step":1}
    {"type":"review_answer"}
    {"type":"check_stop","step":1}
    "#);
}

#[test]
fn reviews_of_answers() {
    let mut options = Options::auto();
    (options.review_answers, options.max_answer_retries) = (true, 1);
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![text("Done.")]);
    let step = turn.next_step().unwrap();
    assert_snapshot!(lines(&[step]), @r#"{"type":"review_answer","answer":{"role":"assistant","content":[{"type":"text","text":"Done."}]},"retries":0,"history":[{"role":"user","content":[{"type":"text","text":"Go."}]}]}"#);
    let reason = || "no".to_owned();
    let outcomes = [
        ReviewAnswerOutcome::Block { reason: reason() },
        ReviewAnswerOutcome::Cut { by: CutBy::User },
        ReviewAnswerOutcome::Keep,
        ReviewAnswerOutcome::Retry { reason: reason() },
    ];
    assert_snapshot!(lines(&outcomes.map(StepOutcome::ReviewAnswer)), @r#"
    {"step":"review_answer","outcome":{"type":"block","reason":"no"}}
    {"step":"review_answer","outcome":{"type":"cut","by":{"type":"user"}}}
    {"step":"review_answer","outcome":{"type":"keep"}}
    {"step":"review_answer","outcome":{"type":"retry","reason":"no"}}
    "#);
    turn.keep_answer();
    let at = [turn.checkpoint().unwrap()];
    assert_snapshot!(lines(&at), @r#"{"messages":2,"steps":1,"waits":false,"revision":2}"#);
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
    assert_snapshot!(lines(&[Answer::from(&message)]), @r#"{"blocks":[{"type":"text","text":"Hi"}],"finish_reason":"length","extra":{"x":1},"tokens":5,"context_tokens":5,"cost":0.5}"#);
    assert_eq!(Spent::from(&usage), Spent::new(0, 5, Cost::new(0.5).unwrap()));
    // Thinking is not sent again. A server that reports no prompt has not reported the size of the conversation.
    for (prompt, completion, thinking, size) in [
        (Some(2), Some(3), Some(1), 4),
        (Some(2), Some(3), Some(9), 2),
        (Some(0), Some(3), None, 0),
        (None, Some(3), None, 0),
        (Some(2), None, None, 0),
    ] {
        (usage.prompt_tokens, usage.completion_tokens) = (prompt, completion);
        usage.reasoning_tokens = thinking;
        message.usage = Some(usage);
        assert_eq!(Answer::from(&message).context_tokens, size, "{usage:?}");
    }
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
    let mut other = Options::default();
    (other.max_answer_retries, other.steer_after_end) = (0, SteerAfterEnd::Keep);
    (other.plan_steps, other.check_stop, other.review_answers, other.shorten) =
        (true, true, true, true);
    assert!(lines(&[other]).ends_with(
        r#""plan_steps":true,"check_stop":true,"review_answers":true,"max_answer_retries":0,"shorten":true,"steer_after_end":"keep"}"#
    ));
}

/// Each member is read as it was written, whatever the others are.
#[test]
fn budgets_and_sizes_survive_json() {
    let cost = Some(Cost::new(0.5).unwrap());
    let left = [
        BudgetLeft::default(),
        BudgetLeft::new(Some(0), None, None),
        BudgetLeft::new(None, Some(7), None),
        BudgetLeft::new(None, None, cost),
    ];
    let mut steps = Vec::new();
    for left in left {
        let mut options = Options::auto();
        options.shorten = true;
        let mut turn = Turn::new(options);
        turn.submit(Message::user("Go.")).expect("it is a prompt");
        turn.set_outer_budget(left);
        assert_eq!(turn.left(), left);
        let step = turn.next_step().expect("a turn is in progress");
        let Step::Shorten(shorten) = &step else { panic!("{step:?}") };
        assert_eq!(shorten.left, left);
        steps.push(step);
    }
    lines(&steps);
}

/// The steps of a turn with a prompt at its gate, two calls that are asked about, and their results.
fn steps() -> Vec<Step> {
    let mut turn = Turn::new(Options::auto()).with_key_seed("session");
    turn.prompt(Message::user("Go.")).expect("it is a prompt");
    let mut steps = Vec::new();
    while let Some(step) = turn.next_step() {
        let outcome = match &step {
            Step::Approve(step) => StepOutcome::Approve(ApprovalOutcome::Decided {
                id: step.calls[0].call.block.id.clone(),
                decision: Decision::Run(json!({ "a": 2 })),
            }),
            Step::Ask(step) if step.number == 1 => {
                StepOutcome::Ask(AskOutcome::answered(Answer::new(vec![call("1", "add")])))
            }
            Step::Ask(_) => {
                StepOutcome::Ask(AskOutcome::answered(Answer::new(vec![text("It is 3.")])))
            }
            Step::Decide(_) => {
                StepOutcome::Decide(DecideOutcome::decided(Decision::Ask(json!({ "a": 1 }))))
            }
            Step::Review(_) => StepOutcome::Review(ReviewOutcome::Keep),
            Step::Run(step) => {
                StepOutcome::Run(RunOutcome::new(vec![CallResult::lost(&step.calls[0])]))
            }
            Step::SubmitPrompt(_) => StepOutcome::SubmitPrompt(PromptOutcome::Allow),
            _ => {
                steps.push(step);
                continue;
            }
        };
        turn.take(outcome).expect("nothing fails");
        steps.push(step);
    }
    steps
}

#[test]
fn steps_with_all_that_they_take() {
    assert_snapshot!(lines(&steps()), @r#"
    {"type":"submit_prompt","prompt":{"role":"user","content":[{"type":"text","text":"Go."}]},"history":[]}
    {"type":"ask","number":1,"tools":true,"history":[{"role":"user","content":[{"type":"text","text":"Go."}]}],"revisions":[1]}
    {"type":"show","block":{"type":"tool_use","id":"1","name":"add","input":{"a":1}}}
    {"type":"decide","call":{"place":0,"key":"session:1:0:08db7967077963a3","call":{"block":{"id":"1","name":"add","input":{"a":1}},"input":{"a":1},"state":{"type":"undecided"}}},"history":[{"role":"user","content":[{"type":"text","text":"Go."}]},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"add","input":{"a":1}}]}]}
    {"type":"approve","calls":[{"place":0,"key":"session:1:0:08db7967077963a3","call":{"block":{"id":"1","name":"add","input":{"a":1}},"input":{"a":1},"state":{"type":"asked"}}}]}
    {"type":"run","calls":[{"place":0,"key":"session:1:0:08db7967077963a3","call":{"block":{"id":"1","name":"add","input":{"a":1}},"input":{"a":2},"state":{"type":"allowed"},"is_approved":true}}]}
    {"type":"review","call":{"place":0,"key":"session:1:0:08db7967077963a3","call":{"block":{"id":"1","name":"add","input":{"a":1}},"input":{"a":2},"state":{"type":"answered","content":{"error":"unknown: the call was started, and its result was lost; it may have taken effect","tool":"add"},"outcome":"unknown","reviewed":false},"is_approved":true}},"history":[{"role":"user","content":[{"type":"text","text":"Go."}]},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"add","input":{"a":1}}]},{"role":"tool","content":[{"type":"tool_result","tool_use_id":"1","content":{"error":"unknown: the call was started, and its result was lost; it may have taken effect","tool":"add"},"is_error":true,"name":"add"}]}]}
    {"type":"show","block":{"type":"tool_use_error","error":"unknown: the call was started, and its result was lost; it may have taken effect","raw_data":"{\"a\":2}","id":"1","name":"add"}}
    {"type":"show","block":{"type":"tool_result","tool_use_id":"1","content":{"error":"unknown: the call was started, and its result was lost; it may have taken effect","tool":"add"},"is_error":true,"name":"add"}}
    {"type":"ask","number":2,"tools":true,"history":[{"role":"user","content":[{"type":"text","text":"Go."}]},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"add","input":{"a":1}}]},{"role":"tool","content":[{"type":"tool_result","tool_use_id":"1","content":{"error":"unknown: the call was started, and its result was lost; it may have taken effect","tool":"add"},"is_error":true,"name":"add"}]}],"revisions":[1,2,3]}
    {"type":"end","reason":"unspecified"}
    "#);
}

#[test]
fn outcomes_of_steps() {
    let error = || Box::new(ErrorRecord::new("api", "the server answered 500"));
    let stopped = CutBy::Budget { reason: FinishReason::MaxRunTime };
    let mut run = RunOutcome::new(vec![CallResult::new(1, json!(3), Outcome::Ok)]);
    run.cut = Some(CutBy::User);
    let decision = Decision::Run(json!({ "a": 1 }));
    let outcomes = [
        StepOutcome::Approve(ApprovalOutcome::Decided {
            id: "1".to_owned(),
            decision: decision.clone(),
        }),
        StepOutcome::Approve(ApprovalOutcome::Failed { error: error() }),
        StepOutcome::Approve(ApprovalOutcome::Cut { by: CutBy::User }),
        StepOutcome::Ask(AskOutcome::Answered {
            answer: Answer::new(Vec::new()),
            correction: Some("No.".to_owned()),
        }),
        StepOutcome::Ask(AskOutcome::Cut {
            by: CutBy::User,
            partial: vec![text("Half")],
            spent: Spent::default(),
        }),
        StepOutcome::Ask(AskOutcome::Failed {
            error: error(),
            has_begun: true,
            partial: Vec::new(),
            spent: Spent::new(0, 7, Cost::ZERO),
        }),
        StepOutcome::Decide(DecideOutcome::Cut { by: stopped }),
        StepOutcome::Decide(DecideOutcome::Decided {
            decision,
            refused_input: None,
            fit: Fit::Fits,
        }),
        StepOutcome::Decide(DecideOutcome::Decided {
            decision: Decision::Refuse(json!("no")),
            refused_input: Some(json!({ "a": 2 })),
            fit: Fit::Fits,
        }),
        StepOutcome::Decide(DecideOutcome::Failed { error: error() }),
        StepOutcome::Review(ReviewOutcome::Keep),
        StepOutcome::Review(ReviewOutcome::Replace { content: json!("****"), images: Vec::new() }),
        StepOutcome::Run(RunOutcome::default()),
        StepOutcome::Run(run),
        StepOutcome::SubmitPrompt(PromptOutcome::Allow),
        StepOutcome::SubmitPrompt(PromptOutcome::Block { reason: "no".to_owned() }),
        StepOutcome::SubmitPrompt(PromptOutcome::Replace { text: "Please.".to_owned() }),
    ];
    assert_snapshot!(lines(&outcomes), @r#"
    {"step":"approve","outcome":{"type":"decided","id":"1","decision":{"type":"run","value":{"a":1}}}}
    {"step":"approve","outcome":{"type":"failed","error":{"kind":"api","message":"the server answered 500"}}}
    {"step":"approve","outcome":{"type":"cut","by":{"type":"user"}}}
    {"step":"ask","outcome":{"type":"answered","answer":{"blocks":[],"finish_reason":"unspecified","tokens":0,"cost":0.0},"correction":"No."}}
    {"step":"ask","outcome":{"type":"cut","by":{"type":"user"},"partial":[{"type":"text","text":"Half"}]}}
    {"step":"ask","outcome":{"type":"failed","error":{"kind":"api","message":"the server answered 500"},"has_begun":true,"partial":[],"spent":{"calls":0,"tokens":7,"cost":0.0}}}
    {"step":"decide","outcome":{"type":"cut","by":{"type":"budget","reason":"max_run_time"}}}
    {"step":"decide","outcome":{"type":"decided","decision":{"type":"run","value":{"a":1}},"fit":{"type":"fits"}}}
    {"step":"decide","outcome":{"type":"decided","decision":{"type":"refuse","value":"no"},"refused_input":{"a":2},"fit":{"type":"fits"}}}
    {"step":"decide","outcome":{"type":"failed","error":{"kind":"api","message":"the server answered 500"}}}
    {"step":"review","outcome":{"type":"keep"}}
    {"step":"review","outcome":{"type":"replace","content":"****"}}
    {"step":"run","outcome":{"results":[]}}
    {"step":"run","outcome":{"results":[{"place":1,"content":3,"outcome":"ok"}],"cut":{"type":"user"}}}
    {"step":"submit_prompt","outcome":{"type":"allow"}}
    {"step":"submit_prompt","outcome":{"type":"block","reason":"no"}}
    {"step":"submit_prompt","outcome":{"type":"replace","text":"Please."}}
    "#);
}
