//! Invariants of the whole client, for any behavior of server, tools, hooks and caller: it stays usable, every
//! request passes the strictest server, and each call has exactly one result.

mod opened;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use oa_hooks::HookError;
use oa_testkit::{MemoryServer, Reply, Script};
use open_agent::{
    AgentOptions, AgentOptionsBuilder, Client, ContentBlock, HookDecision, Hooks, Message,
    MessageRole, ToolError, json, tool,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use suite::talk::{adder, cases, client, failing, interrupt_after, poll_times, slow, talk, told};

const TEN: Duration = Duration::from_millis(10);

/// A model's answer, and the way it is transmitted.
#[derive(Clone, Debug)]
struct Answer {
    pieces: Vec<Piece>,
    manner: Manner,
    delays: bool,
}

#[derive(Clone, Copy, Debug)]
enum Piece {
    Call(usize),
    Error,
    Malformed,
    Nameless,
    Text,
    Think,
    Unreadable,
}

#[derive(Clone, Copy, Debug)]
enum Manner {
    Closed(usize),
    CutByLength,
    Garbage,
    HangUp,
    Reset(usize),
    Silence,
    Stalled(usize),
    Status(u16),
    Unfinished,
    Whole,
}

const TOOLS: [&str; 10] =
    ["add", "fails", "hangs", "large", "nowhere", "panics", "slow", "add", "ask", "helper"];

fn answer() -> impl Strategy<Value = Answer> {
    let piece = prop_oneof![
        9 => (0..TOOLS.len()).prop_map(Piece::Call),
        1 => Just(Piece::Error),
        1 => Just(Piece::Malformed),
        1 => Just(Piece::Nameless),
        4 => Just(Piece::Text),
        1 => Just(Piece::Think),
        1 => Just(Piece::Unreadable),
    ];
    let bytes = || 0..1500_usize;
    let manner = prop_oneof![
        1 => bytes().prop_map(Manner::Closed),
        1 => Just(Manner::CutByLength),
        1 => Just(Manner::Garbage),
        1 => Just(Manner::HangUp),
        1 => bytes().prop_map(Manner::Reset),
        1 => Just(Manner::Silence),
        1 => bytes().prop_map(Manner::Stalled),
        1 => prop::sample::select(vec![400, 429, 500, 503]).prop_map(Manner::Status),
        1 => Just(Manner::Unfinished),
        30 => Just(Manner::Whole),
    ];
    (vec(piece, 0..6), manner, any::<bool>()).prop_map(|(pieces, manner, delays)| Answer {
        pieces,
        manner,
        delays,
    })
}

fn reply(answer: &Answer) -> Reply {
    let reply = answer.pieces.iter().fold(Reply::new(), |reply, piece| match piece {
        Piece::Call(place) if TOOLS[*place] == "helper" => {
            reply.call("helper", json!({"prompt": "Help."}))
        }
        Piece::Call(place) => reply.call(TOOLS[*place], json!({"a": 1, "b": 2})),
        Piece::Error => reply.event(json!({"error": {"message": "out of memory"}})),
        Piece::Malformed => reply.call("add", r#"{"a": 1, "#),
        Piece::Nameless => reply.call("", json!({})),
        Piece::Text => reply.say("one two three "),
        Piece::Think => reply.think("hm hm "),
        Piece::Unreadable => reply.event(json!("what is this")),
    });
    let reply = if answer.delays { reply.delay(TEN).delay_head(TEN) } else { reply };
    match answer.manner {
        Manner::Closed(bytes) => reply.close_after(bytes),
        Manner::CutByLength => reply.finish("length"),
        Manner::Garbage => Reply::body(200, "text/html", "<p>Hello</p>"),
        Manner::HangUp => Reply::hang_up(),
        Manner::Reset(bytes) => reply.reset_after(bytes),
        Manner::Silence => Reply::silence(),
        Manner::Stalled(bytes) => reply.stall_after(bytes),
        Manner::Status(status) => Reply::error(status, "no"),
        Manner::Unfinished => reply.without_finish().without_done(),
        Manner::Whole => reply,
    }
}

/// The behavior of a hook in one call.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Block,
    Change,
    Fail,
    Hang,
    Panic,
    Pass,
    Wait,
}

fn mood() -> impl Strategy<Value = Mood> {
    let rare = vec![Mood::Block, Mood::Change, Mood::Fail, Mood::Hang, Mood::Panic, Mood::Wait];
    prop_oneof![12 => Just(Mood::Pass), 3 => prop::sample::select(rare)]
}

/// A sequence of hook behaviors that ends calmly.
#[derive(Clone)]
struct Moods {
    moods: Arc<Vec<Mood>>,
    next: Arc<AtomicUsize>,
    calm: Arc<AtomicBool>,
}

impl Moods {
    /// Returns a hook's decision: `None` to pass, `Some(true)` to block, `Some(false)` to change.
    fn decide(&self) -> impl Future<Output = Result<Option<bool>, HookError>> + Send + use<> {
        let next = self.next.fetch_add(1, Ordering::SeqCst);
        let calm = self.calm.load(Ordering::SeqCst) || self.moods.is_empty();
        let mood = if calm { Mood::Pass } else { self.moods[next % self.moods.len()] };
        async move {
            match mood {
                Mood::Block => return Ok(Some(true)),
                Mood::Change => return Ok(Some(false)),
                Mood::Fail => return Err(HookError::new("no")),
                Mood::Hang => std::future::pending::<()>().await,
                Mood::Panic => std::panic::resume_unwind(Box::new("a bug in a hook")),
                Mood::Wait => tokio::time::sleep(TEN).await,
                Mood::Pass => {}
            }
            Ok(None)
        }
    }

    fn hooks(&self) -> Hooks {
        self.hooks_after(Hooks::new())
    }

    fn hooks_after(&self, first: Hooks) -> Hooks {
        let (prompt, pre, post) = (self.clone(), self.clone(), self.clone());
        let limit = Duration::from_secs(5);
        first
            .try_add_user_prompt_submit(move |_| {
                let decide = prompt.decide();
                async move {
                    Ok(decide.await?.map(|block| match block {
                        true => HookDecision::block("no"),
                        false => HookDecision::modify_prompt("Rather this.", ""),
                    }))
                }
            })
            .with_timeout(limit)
            .try_add_pre_tool_use(move |_| {
                let decide = pre.decide();
                async move {
                    Ok(decide.await?.map(|block| match block {
                        true => HookDecision::block("no"),
                        false => HookDecision::modify_input(json!({"a": 0, "b": 0}), ""),
                    }))
                }
            })
            .with_timeout(limit)
            .try_add_post_tool_use(move |_| {
                let decide = post.decide();
                async move {
                    Ok(decide.await?.map(|_| HookDecision::modify_result(json!("masked"), "")))
                }
            })
            .with_timeout(limit)
    }
}

/// An action of the caller. Futures with a number are dropped after that many polls.
#[derive(Clone, Copy, Debug)]
enum Act {
    AddResult(usize, bool),
    Clear,
    Continue(Option<usize>),
    Events(usize),
    Interrupt,
    InterruptAfter(u8),
    Pop,
    Read,
    Receive(Option<usize>),
    Send(&'static str, Option<usize>),
    SetSystem(bool),
    Steer,
    Truncate(usize),
    Wait,
}

fn act() -> impl Strategy<Value = Act> {
    let polls = || proptest::option::weighted(0.3, 0..6_usize);
    let prompt = prop::sample::select(vec!["Go.", "Go on.", "Go again.", "", "", " \n"]);
    prop_oneof![
        9 => (0..4_usize, any::<bool>()).prop_map(|(call, error)| Act::AddResult(call, error)),
        1 => Just(Act::Clear),
        4 => polls().prop_map(Act::Continue),
        1 => (1..8_usize).prop_map(Act::Events),
        1 => Just(Act::Interrupt),
        2 => any::<u8>().prop_map(Act::InterruptAfter),
        1 => Just(Act::Pop),
        12 => Just(Act::Read),
        5 => polls().prop_map(Act::Receive),
        14 => (prompt, polls()).prop_map(|(prompt, polls)| Act::Send(prompt, polls)),
        1 => any::<bool>().prop_map(Act::SetSystem),
        3 => Just(Act::Steer),
        1 => (0..9_usize).prop_map(Act::Truncate),
        1 => Just(Act::Wait),
    ]
}

/// Awaits a future, or drops it after a number of polls.
async fn maybe<F: Future>(future: F, polls: Option<usize>) -> Option<F::Output> {
    match polls {
        Some(polls) => poll_times(future, polls),
        None => Some(future.await),
    }
}

/// The ids of calls without a result.
fn open(history: &[Message]) -> Vec<String> {
    let ids = |message: &Message, results: bool| -> Vec<String> {
        let id = |block: &ContentBlock| match block {
            ContentBlock::ToolUse(call) if !results => Some(call.id.clone()),
            ContentBlock::ToolResult(result) if results => Some(result.tool_use_id.clone()),
            _ => None,
        };
        message.content.iter().filter_map(id).collect()
    };
    let answered: Vec<String> = history.iter().flat_map(|message| ids(message, true)).collect();
    let calls = history.iter().flat_map(|message| ids(message, false));
    calls.filter(|id| !answered.contains(id)).collect()
}

/// Checks what must hold at all times: results directly follow their calls, in call order, at most one each;
/// only the last answer's calls may be open.
fn check(history: &[Message]) {
    let mut expected: Vec<String> = Vec::new();
    for (place, message) in history.iter().enumerate() {
        assert!(!message.content.is_empty(), "{:?}", told(history));
        if message.role == MessageRole::Tool {
            let [ContentBlock::ToolResult(result)] = &message.content[..] else {
                panic!("one block per call: {message:?}")
            };
            let found = expected.iter().position(|id| *id == result.tool_use_id);
            let found = found.unwrap_or_else(|| panic!("at {place}: {:?}", told(history)));
            expected.drain(..=found);
            continue;
        }
        expected.clear();
        for block in &message.content {
            if let ContentBlock::ToolUse(call) = block {
                expected.push(call.id.clone());
            }
        }
    }
    let last = history.iter().rposition(|message| message.role != MessageRole::Tool);
    let earlier = &history[..last.unwrap_or(0)];
    assert!(open(earlier).is_empty(), "{:?}", told(history));
}

async fn perform(client: &mut Client, act: Act, steered: &mut Vec<String>) {
    match act {
        Act::AddResult(place, is_error) => {
            let ids = open(client.history());
            let id = ids.get(place).map_or("unknown", String::as_str);
            let manual = !client.options().auto_execute_tools();
            let known = ids.len() > place;
            let is_pending = client.pending_calls().iter().any(|call| call.id == id);
            let added = match is_error {
                true => client.add_tool_error(id, "broken"),
                false => client.add_tool_result(id, json!("fine")),
            };
            assert!(added.is_err() || manual && known || is_pending);
        }
        Act::Clear => client.clear_history(),
        Act::Continue(polls) => drop(maybe(client.continue_turn(), polls).await),
        Act::Events(events) => {
            for _ in 0..events {
                let _ = client.next_event().await;
            }
        }
        Act::Interrupt => client.interrupt(),
        Act::InterruptAfter(time) => interrupt_after(client, TEN * u32::from(time % 16)),
        Act::Pop => drop(client.history_mut().pop()),
        Act::Read => {
            while let Ok(Some(_)) = client.receive().await {
                check(client.history());
            }
            assert_eq!(client.receive().await.expect("the turn is over"), None);
            if client.options().auto_execute_tools() {
                let mut open = open(client.history()).into_iter();
                let pending = client.pending_calls();
                let is_pending = |id| pending.iter().any(|call| call.id == id);
                assert!(open.all(is_pending), "{:?}", told(client.history()));
            }
        }
        Act::Receive(polls) => drop(maybe(client.receive(), polls).await),
        Act::Send(prompt, polls) => {
            let before = client.history().len();
            let refused = matches!(maybe(client.send(prompt), polls).await, Some(Err(_)));
            if refused && prompt.trim().is_empty() && !prompt.is_empty() {
                assert_eq!(client.history().len(), before);
            }
        }
        Act::SetSystem(some) => {
            client.set_system_prompt(if some { "Be brief." } else { "" }).expect("a prompt");
        }
        Act::Steer => {
            let words = format!("And this, which is number {}.", steered.len());
            if client.steer_handle().steer(&*words).is_ok() {
                steered.push(words);
            }
        }
        Act::Truncate(length) => client.history_mut().truncate(length),
        Act::Wait => tokio::time::sleep(TEN * 5).await,
    }
    check(client.history());
}

#[derive(Clone, Debug)]
struct Limits {
    auto: bool,
    rounds: u32,
    calls: Option<u32>,
    guard: Option<u32>,
    time: Option<u64>,
    last: bool,
    final_text: bool,
}

fn limits() -> impl Strategy<Value = Limits> {
    let calls = proptest::option::weighted(0.2, 1..6_u32);
    let guard = proptest::option::weighted(0.5, 1..4_u32);
    let time = proptest::option::weighted(0.2, 1..20_u64);
    (any::<bool>(), 1..4_u32, calls, guard, time, any::<bool>(), 0..8_u8).prop_map(
        |(auto, rounds, calls, guard, time, last, final_text)| {
            let final_text = final_text == 0;
            Limits { auto, rounds, calls, guard, time, last, final_text }
        },
    )
}

fn options(limits: &Limits) -> AgentOptionsBuilder {
    let panicking = tool("panics", "Panics").build(|args| async move {
        if args.is_object() {
            std::panic::resume_unwind(Box::new("a bug in a tool"));
        }
        Ok(Value::Null)
    });
    let hanging = tool("hangs", "Hangs").timeout(Duration::from_secs(5));
    let large = tool("large", "Returns much");
    let mut options = AgentOptions::builder()
        .model("any")
        .tool(adder())
        .tool(failing("fails"))
        .tool(hanging.build(|_| async { std::future::pending().await }))
        .tool(large.build(|_| async { Ok::<_, ToolError>(json!("x".repeat(20_000))) }))
        .tool(panicking)
        .tool(slow("slow", TEN * 3))
        .auto_execute_tools(limits.auto);
    if let Some(seconds) = limits.time {
        options = options.max_run_time(seconds);
    }
    if limits.auto {
        options = options
            .max_tool_iterations(limits.rounds)
            .repeat_guard(limits.guard)
            .last_answer_without_tools(limits.last)
            .final_text_only(limits.final_text);
        if let Some(calls) = limits.calls {
            options = options.max_tool_calls(calls);
        }
    }
    options
}

/// Runs one generated conversation and checks the law. Returns the steered messages.
fn check_law(
    limits: &Limits,
    answers: Vec<Answer>,
    moods: Vec<Mood>,
    acts: &[Act],
    open_run: impl FnOnce(AgentOptionsBuilder, &Moods) -> AgentOptionsBuilder,
) -> Vec<String> {
    let mut steered = Vec::new();
    let calm = Arc::new(AtomicBool::new(false));
    let moods = Moods { moods: Arc::new(moods), next: Arc::default(), calm: Arc::clone(&calm) };
    let still = Arc::clone(&calm);
    let model = Reply::by(move |request| match answers.get(request.number() - 1) {
        Some(answer) if !still.load(Ordering::SeqCst) => reply(answer),
        _ => Reply::text("Fine."),
    });
    let server = MemoryServer::new(Script::new().strict().otherwise(model));
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let options = open_run(options(limits).transport(server.clone()), &moods);
        let mut client = client(options);
        for &act in acts {
            perform(&mut client, act, &mut steered).await;
        }
        // In any case the client is usable: it answers a final prompt.
        calm.store(true, Ordering::SeqCst);
        client.interrupt();
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(talk(&mut client, "Fine?").await, ["Fine."]);
        check(client.history());
        assert!(open(client.history()).is_empty(), "{:?}", told(client.history()));
    });
    server.verify();
    steered
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn clients_survive_any_behavior(
        limits in limits(),
        answers in vec(answer(), 4..16),
        moods in vec(mood(), 0..12),
        acts in vec(act(), 3..30),
    ) {
        check_law(&limits, answers, moods, &acts, |options, moods| options.hooks(moods.hooks()));
    }
}
