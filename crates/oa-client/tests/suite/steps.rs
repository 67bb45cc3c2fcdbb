//! The steps of an agent, performed one at a time: a turn driven by them is the turn that a client runs.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_client::{AgentEvent, AgentOptions, AgentSteps, Client};
use oa_hooks::{HookDecision, Hooks, Permission, ToolRule};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_tools::{Cancel, FnTool, ToolError, tool};
use oa_turn::{
    ApprovalOutcome, ApprovalStep, AskOutcome, AskStep, DecideOutcome, DecideStep, Decision,
    DriveError, Perform, PromptOutcome, PromptStep, ReviewOutcome, ReviewStep, RunOutcome, RunStep,
    Step, Turn, TurnSnapshot, drive,
};
use oa_types::{ContentBlock, FinishReason, Message, ToolUseBlock};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use suite::talk::cases;

/// One call of each fate.
pub(crate) const CALLS: [&str; 8] =
    ["add", "fail", "denied", "hooked", "blocked", "changed", "unknown", "invalid"];

pub(crate) fn tools(ran: &Arc<Mutex<Vec<String>>>) -> Vec<FnTool> {
    let build = |name: &str| {
        let ran = Arc::clone(ran);
        tool(name, "A tool").param("n", "integer").build(move |args| {
            ran.lock().expect("no test panics").push(args.to_string());
            let fails = args["n"] == 13;
            async move { if fails { Err(ToolError::new("unlucky")) } else { Ok(args) } }
        })
    };
    ["add", "fail", "denied", "hooked", "blocked", "changed", "invalid"].map(build).into()
}

pub(crate) fn call(name: &str, number: usize) -> (String, String, Value) {
    let input = match name {
        "fail" => json!({ "n": 13 }),
        "invalid" => json!({ "n": "many" }),
        _ => json!({ "n": number }),
    };
    (format!("call_{number}"), name.to_owned(), input)
}

/// A model that makes these calls, one answer after another, and then says that it is done.
fn server(rounds: &[Vec<usize>]) -> MemoryServer {
    let mut number = 0;
    let replies = rounds.iter().map(|calls| {
        calls.iter().fold(Reply::new().say("I'll look."), |reply, &fate| {
            number += 1;
            let (id, name, input) = call(CALLS[fate], number);
            reply.call_with_id(id, name, input)
        })
    });
    let replies: Vec<Reply> = replies.collect();
    // A limit may end the turn before all of them are asked for.
    let next = move |request: &Request| {
        let answers = request.messages().iter().filter(|message| message["role"] == "assistant");
        replies.get(answers.count()).cloned().unwrap_or_else(|| Reply::text("Done."))
    };
    MemoryServer::new(Script::new().strict().otherwise(Reply::by(next)))
}

fn options(server: &MemoryServer, ran: &Arc<Mutex<Vec<String>>>) -> AgentOptions {
    let hooks = Hooks::new()
        .add_user_prompt_submit(|event| async move {
            Some(HookDecision::modify_prompt(format!("{} Please.", event.prompt), "politeness"))
        })
        .add_pre_tool_use(|event| async move {
            match &*event.tool_name {
                "hooked" => Some(HookDecision::modify_input(json!({ "n": 7 }), "seven")),
                "blocked" => Some(HookDecision::block("not now")),
                // A rule denies it.
                "changed" => Some(HookDecision::modify_input(json!({ "n": 8 }), "eight")),
                _ => None,
            }
        })
        .add_post_tool_use(|event| async move {
            let seen = json!({ "seen": event.tool_result, "input": event.tool_input });
            let is_changed = ["hooked", "changed"].contains(&&*event.tool_name);
            is_changed.then(|| HookDecision::modify_result(seen, "seen"))
        });
    AgentOptions::builder()
        .model("any")
        .transport(server.clone())
        .tools(tools(ran))
        .hooks(hooks)
        .tool_rule(ToolRule::deny("denied"))
        .tool_rule(ToolRule::deny("changed").when(|input| input["n"] == 8))
        .auto_execute_tools(true)
        .max_tool_iterations(3)
        .build()
        .expect("these options are valid")
}

/// Sorts events by their kind: those of one kind have the same order whoever drives, while a client shows blocks
/// between the events of tools.
pub(crate) fn by_kind(mut events: Vec<String>) -> Vec<String> {
    events.sort_by_key(|event| match event {
        event if event.starts_with("tool") => 0,
        event if event.starts_with("CallDenied") => 1,
        _ => 2,
    });
    events
}

/// Returns an event as text if client and steps report it alike.
pub(crate) fn line(event: &AgentEvent) -> Option<String> {
    Some(match event {
        AgentEvent::AnswerEnd(message) => format!("end {:?}", message.content),
        AgentEvent::Block(block) => format!("{block:?}"),
        AgentEvent::Tool(event) => format!("{} {:?}", event.event_type(), event.call_id()),
        // Only a client compares the usage of several requests.
        AgentEvent::PromptCut(_) | AgentEvent::TurnEnd(_) => return None,
        other => format!("{other:?}"),
    })
}

/// The traces of a turn.
#[derive(Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) history: Value,
    pub(crate) reason: Option<FinishReason>,
    pub(crate) requests: Vec<Value>,
    pub(crate) ran: Vec<String>,
    pub(crate) events: Vec<String>,
}

pub(crate) fn requests(server: &MemoryServer) -> Vec<Value> {
    server.requests().iter().map(Request::json).cloned().collect()
}

async fn by_client(rounds: &[Vec<usize>]) -> Ended {
    let (server, ran) = (server(rounds), Arc::default());
    let mut client = Client::new(options(&server, &ran)).expect("it is a client");
    client.send("Go.").await.expect("the prompt is allowed");
    let mut events = Vec::new();
    while let Some(event) = client.next_event().await.expect("nothing fails") {
        events.extend(line(&event));
    }
    let history = json!(client.history());
    let reason = client.finish_reason().cloned();
    let ran = ran.lock().expect("no test panics").clone();
    let events = by_kind(events);
    Ended { history, reason, requests: requests(&server), ran, events }
}

async fn by_steps(rounds: &[Vec<usize>]) -> Ended {
    let (server, ran) = (server(rounds), Arc::default());
    let options = options(&server, &ran);
    let events = Arc::<Mutex<Vec<String>>>::default();
    let told = Arc::clone(&events);
    let steps = options.steps().on_event(move |event| {
        told.lock().expect("no test panics").extend(line(&event));
    });
    let mut turn = Turn::new(options.turn_options());
    turn.prompt(Message::user("Go.")).expect("it is a prompt");
    let reason = drive(&mut turn, &steps).await.expect("nothing fails");
    let ran = ran.lock().expect("no test panics").clone();
    let events = by_kind(events.lock().expect("no test panics").clone());
    let (history, requests) = (json!(turn.history()), requests(&server));
    Ended { history, reason: Some(reason), requests, ran, events }
}

/// Performs steps, records their outcomes as JSON text, and crashes when its strength is used up.
struct Journal<'a> {
    steps: &'a AgentSteps,
    entries: &'a RefCell<Vec<String>>,
    place: Cell<usize>,
    strength: Cell<usize>,
}

#[derive(Debug)]
struct Crash;

impl Journal<'_> {
    async fn entry<T: Serialize + DeserializeOwned, E>(
        &self,
        perform: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Crash> {
        let place = self.place.replace(self.place.get() + 1);
        let recorded = self.entries.borrow().get(place).cloned();
        if let Some(entry) = recorded {
            return Ok(serde_json::from_str(&entry).expect("it was written as one"));
        }
        let Some(left) = self.strength.get().checked_sub(1) else { return Err(Crash) };
        self.strength.set(left);
        let Ok(outcome) = perform.await else { return Err(Crash) };
        let entry = serde_json::to_string(&outcome).expect("outcomes are JSON");
        self.entries.borrow_mut().push(entry.clone());
        Ok(serde_json::from_str(&entry).expect("it was just written"))
    }
}

impl Perform for Journal<'_> {
    type Error = Crash;

    async fn submit_prompt(&self, step: PromptStep) -> Result<PromptOutcome, Crash> {
        self.entry(self.steps.submit_prompt(step)).await
    }

    async fn ask(&self, step: AskStep) -> Result<AskOutcome, Crash> {
        self.entry(self.steps.ask(step)).await
    }

    async fn decide(&self, step: DecideStep) -> Result<DecideOutcome, Crash> {
        self.entry(self.steps.decide(step)).await
    }

    async fn approve(&self, step: ApprovalStep) -> Result<ApprovalOutcome, Crash> {
        let StepOf { id, input } = StepOf::first(&step);
        let outcome = ApprovalOutcome::Decided { id, decision: Decision::Run(input) };
        self.entry(async { Ok::<_, Crash>(outcome) }).await
    }

    async fn run(&self, step: RunStep) -> Result<RunOutcome, Crash> {
        self.entry(self.steps.run(step)).await
    }

    async fn review(&self, step: ReviewStep) -> Result<ReviewOutcome, Crash> {
        self.entry(self.steps.review(step)).await
    }

    fn prepare(&self, call: &ToolUseBlock) -> (Value, oa_turn::Fit) {
        self.steps.prepare(call)
    }
}

/// The first call that waits for approval.
struct StepOf {
    id: String,
    input: Value,
}

impl StepOf {
    fn first(step: &ApprovalStep) -> Self {
        let call = &step.calls[0].call;
        Self { id: call.block.id.clone(), input: call.input.clone() }
    }
}

/// Drives a turn by a journal that crashes after every step, each time from the beginning.
async fn by_journal(rounds: &[Vec<usize>]) -> Ended {
    let (server, ran) = (server(rounds), Arc::default());
    let options = options(&server, &ran);
    let (steps, entries) = (options.steps(), RefCell::default());
    loop {
        let (place, strength) = (Cell::new(0), Cell::new(1));
        let journal = Journal { steps: &steps, entries: &entries, place, strength };
        let mut turn = Turn::new(options.turn_options());
        turn.prompt(Message::user("Go.")).expect("it is a prompt");
        match drive(&mut turn, &journal).await {
            Ok(reason) => {
                let ran = ran.lock().expect("no test panics").clone();
                let (history, requests) = (json!(turn.history()), requests(&server));
                let events = Vec::new();
                return Ended { history, reason: Some(reason), requests, ran, events };
            }
            Err(DriveError::Perform(Crash)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(future)
}

proptest! {
    #![proptest_config(cases(64))]

    /// The same requests, tools, events and history, whoever drives the turn.
    #[test]
    fn steps_and_client_agree(rounds in vec(vec(0..CALLS.len(), 1..4), 0..5)) {
        let (client, steps) = block_on(async { (by_client(&rounds).await, by_steps(&rounds).await) });
        prop_assert_eq!(&client, &steps);
    }

    /// Every step is performed once, however often the process that drives the turn ends.
    #[test]
    fn a_journal_performs_each_step_once(rounds in vec(vec(0..CALLS.len(), 1..4), 0..4)) {
        let (steps, journal) = block_on(async { (by_steps(&rounds).await, by_journal(&rounds).await) });
        prop_assert_eq!(steps.history, journal.history);
        prop_assert_eq!(steps.requests, journal.requests);
        prop_assert_eq!(steps.ran, journal.ran);
        prop_assert_eq!(steps.reason, journal.reason);
    }
}

fn plain(server: &MemoryServer) -> oa_client::AgentOptionsBuilder {
    AgentOptions::builder().model("any").transport(server.clone()).auto_execute_tools(true)
}

#[tokio::test(start_paused = true)]
async fn interrupts_keep_received_text() {
    let server = MemoryServer::new([Reply::text("One two three four.").stall_after(400)]);
    let options = plain(&server).build().unwrap();
    let cancel = Cancel::new();
    let steps = options.steps().with_cancel(cancel.clone());
    let mut turn = Turn::new(options.turn_options());
    turn.submit(Message::user("Count.")).unwrap();
    let interrupt = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    };
    let (reason, ()) = tokio::join!(drive(&mut turn, &steps), interrupt);
    assert_eq!(reason.unwrap(), FinishReason::Interrupted);
    let last = turn.history().last().unwrap();
    assert!(last.interrupted && "One two three four.".starts_with(&last.text()), "{last:?}");
    assert!(!last.text().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_tools_and_hooks() {
    for stuck in ["prompt", "decision", "tool", "result"] {
        let hang = move |name: &'static str| async move {
            if name == stuck {
                std::future::pending::<()>().await;
            }
        };
        let hooks = Hooks::new()
            .add_user_prompt_submit(move |_| async move {
                hang("prompt").await;
                None
            })
            .add_pre_tool_use(move |_| async move {
                hang("decision").await;
                None
            })
            .add_post_tool_use(move |_| async move {
                hang("result").await;
                None
            });
        let wait = Reply::new().call("wait", json!({}));
        let server = MemoryServer::new(Script::new().otherwise(wait));
        let wait = tool("wait", "Wait").build(move |_| async move {
            hang("tool").await;
            Ok(json!("waited"))
        });
        let options = plain(&server).tool(wait).hooks(hooks).build().unwrap();
        let cancel = Cancel::new();
        let steps = options.steps().with_cancel(cancel.clone());
        let mut turn = Turn::new(options.turn_options());
        turn.prompt(Message::user("Wait.")).unwrap();
        let interrupt = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        };
        let (reason, ()) = tokio::join!(drive(&mut turn, &steps), interrupt);
        assert_eq!(reason.unwrap(), FinishReason::Interrupted, "{stuck}");
        let is_open = turn.calls().iter().any(oa_turn::Call::is_open);
        assert!(!is_open && !turn.is_busy(), "{stuck}");
    }
}

#[tokio::test]
async fn permission_can_be_asked_within_the_turn() {
    let asked = |server: &MemoryServer| {
        let ask = |_| async { Permission::Later };
        let add = tool("add", "Add").param("n", "integer").build(|args| async { Ok(args) });
        plain(server).tool(add).can_use_tool(ask).build().unwrap()
    };
    let server = MemoryServer::new([Reply::new().call("add", json!({ "n": 1 }))]);
    let options = asked(&server);
    let mut turn = Turn::new(options.turn_options());
    turn.submit(Message::user("Go.")).unwrap();
    let steps = options.steps();
    let reason = drive(&mut turn, &steps).await.unwrap();
    assert_eq!(reason, FinishReason::ApprovalPending, "by default the turn ends");

    let server =
        MemoryServer::new([Reply::new().call("add", json!({ "n": 1 })), Reply::text("Done.")]);
    let options = asked(&server);
    let (steps, entries) = (options.steps().ask_within_turn(), RefCell::default());
    let (place, strength) = (Cell::new(0), Cell::new(usize::MAX));
    let journal = Journal { steps: &steps, entries: &entries, place, strength };
    let mut turn = Turn::new(options.turn_options());
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(drive(&mut turn, &journal).await.unwrap(), FinishReason::Stop);
    assert_eq!(turn.rounds(), 1);
    assert_eq!(turn.history().last().unwrap().text(), "Done.");
}

/// A call that was running when its process ended runs again only if its tool may run twice.
#[tokio::test]
async fn lost_calls_run_again_only_if_they_may() {
    for reruns in [false, true] {
        let ran = Arc::<Mutex<Vec<String>>>::default();
        let server =
            MemoryServer::new([Reply::new().call("add", json!({ "n": 1 })), Reply::text("Done.")]);
        let options = plain(&server).tools(tools(&ran)).build().unwrap();
        let mut turn = Turn::new(options.turn_options());
        turn.submit(Message::user("Go.")).unwrap();
        let steps = options.steps();
        let snapshot = loop {
            match turn.next_step().unwrap() {
                Step::Ask(step) => {
                    let outcome = steps.ask(step).await.unwrap();
                    turn.take(oa_turn::StepOutcome::Ask(outcome)).unwrap();
                    turn.prepare_calls(|_, input| Ok(input));
                }
                Step::Decide(step) => {
                    let outcome = steps.decide(step).await.unwrap();
                    turn.take(oa_turn::StepOutcome::Decide(outcome)).unwrap();
                }
                // The process ends here.
                Step::Run(_) => break serde_json::to_string(&turn.snapshot()).unwrap(),
                Step::Show { .. } => {}
                step => panic!("{step:?}"),
            }
        };
        let snapshot: TurnSnapshot = serde_json::from_str(&snapshot).unwrap();
        let mut turn = Turn::restore(snapshot).unwrap();
        let steps = if reruns { steps.rerun_lost_calls() } else { steps };
        assert_eq!(drive(&mut turn, &steps).await.unwrap(), FinishReason::Stop);
        let ContentBlock::ToolResult(result) = &turn.history()[2].content[0] else {
            panic!("{:?}", turn.history());
        };
        assert_eq!(ran.lock().unwrap().len(), usize::from(reruns));
        assert_eq!(result.is_error, !reruns);
        assert_eq!(result.content.to_string().contains("may have taken effect"), !reruns);
    }
}

/// A failure is data: its kind and status survive a journal.
#[tokio::test]
async fn failures_are_outcomes() {
    let server = MemoryServer::new([Reply::error(401, "no such key")]);
    let options = plain(&server).build().unwrap();
    let mut turn = Turn::new(options.turn_options());
    turn.submit(Message::user("Go.")).unwrap();
    let error = drive(&mut turn, &options.steps()).await.unwrap_err();
    let DriveError::Failed(record) = error else { panic!("{error:?}") };
    assert_eq!((&*record.kind, record.status), ("api", Some(401)));
    assert!(turn.history().is_empty() && !turn.is_busy(), "the prompt was taken back");

    let error = drive(&mut turn, &AgentOptions::default().steps()).await.unwrap_err();
    assert!(matches!(error, DriveError::Idle), "{error:?}");
}
