//! Many conversations with random faults, tools and interrupts, over real sockets: nothing hangs, all requests
//! and histories are valid, and nothing is left behind.
//!
//! The test is short by default; `OPEN_AGENT_SOAK=10000` sets the number of conversations.

mod model;

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oa_chat::RetryConfig;
use oa_client::{AgentOptions, Client, ErrorKind, query};
use oa_hooks::{HookDecision, Hooks};
use oa_tools::{FnTool, ToolError, tool};
use oa_types::{ContentBlock, FinishReason, MessageRole};
use serde_json::json;
use suite::Chance;
use suite::talk::open_calls;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::model::Model;

/// Longer than anything may take, on any machine.
const WATCHDOG: Duration = Duration::from_secs(60);
/// The number of concurrent conversations.
const AT_ONCE: usize = 48;

fn conversations() -> u64 {
    env::var("OPEN_AGENT_SOAK").ok().and_then(|count| count.parse().ok()).unwrap_or(300)
}

fn tools() -> [FnTool; 3] {
    let look = tool("look", "Looks at a place.")
        .param("place", "string")
        .build(|args| async move { Ok(json!({"place": args["place"], "seen": "a cat"})) });
    let wait = tool("wait", "Waits a moment.").param("ms", "integer").build(|args| async move {
        sleep(Duration::from_millis(args["ms"].as_u64().unwrap_or_default())).await;
        Ok(json!("waited"))
    });
    let fail = tool("fail", "Fails.").build(|_| async { Err(ToolError::from("it broke")) });
    [look, wait, fail]
}

fn options(model: &Model, auto: bool) -> AgentOptions {
    let hooks = Hooks::new().add_pre_tool_use(|event| async move {
        (event.tool_input["place"] == "cellar").then(|| HookDecision::block("not the cellar"))
    });
    AgentOptions::builder()
        .model("any")
        .base_url(&model.base_url)
        .tools(tools())
        .auto_execute_tools(auto)
        .hooks(hooks)
        .timeout(Duration::from_millis(300))
        .first_token_timeout(Duration::from_millis(600))
        .retry(RetryConfig::new(1).initial_delay(Duration::from_millis(2)))
        .build()
        .expect("these can work")
}

/// Counts of events.
#[derive(Clone, Default)]
struct Tally(Arc<Mutex<BTreeMap<String, u64>>>);

impl Tally {
    fn count(&self, what: impl Into<String>) {
        let mut counts = self.0.lock().expect("nobody panics with it");
        *counts.entry(what.into()).or_default() += 1;
    }

    fn of(&self, what: &str) -> u64 {
        self.0.lock().expect("nobody panics with it").get(what).copied().unwrap_or_default()
    }

    fn line(&self) -> String {
        let mut line = String::new();
        for (what, count) in &*self.0.lock().expect("nobody panics with it") {
            // Writing to a string cannot fail.
            let _ = write!(line, "{count} {what}, ");
        }
        line
    }
}

#[derive(Clone)]
struct Soak {
    manual: AgentOptions,
    auto: AgentOptions,
    tally: Tally,
}

impl Soak {
    fn new(model: &Model) -> Self {
        Self { manual: options(model, false), auto: options(model, true), tally: Tally::default() }
    }

    /// Runs the conversations with these numbers, several at once.
    async fn run(&self, numbers: Range<u64>) {
        let next = Arc::new(AtomicU64::new(numbers.start));
        let mut running = JoinSet::new();
        for _ in 0..AT_ONCE {
            let (soak, next, end) = (self.clone(), Arc::clone(&next), numbers.end);
            running.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return;
                    }
                    let conversation = timeout(WATCHDOG, soak.converse(number));
                    conversation.await.unwrap_or_else(|_| panic!("conversation {number} hangs"));
                }
            });
        }
        while let Some(ended) = running.join_next().await {
            if let Err(error) = ended {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }

    async fn converse(&self, number: u64) {
        let mut chance = Chance::new(number);
        if chance.percent(15) {
            return self.ask(number, &mut chance).await;
        }
        let auto = chance.percent(50);
        let options = if auto { &self.auto } else { &self.manual };
        let mut client = Client::new(options.clone()).expect("there is a model");
        // Dropped with the conversation, including its tasks.
        let mut interrupters = JoinSet::new();
        for prompt in 0..=chance.below(4) {
            if chance.percent(20) {
                let handle = client.interrupt_handle();
                let after = Duration::from_micros(chance.below(15_000));
                interrupters.spawn(async move {
                    sleep(after).await;
                    handle.interrupt();
                });
            }
            let prompt = format!("Prompt {prompt} of conversation {number}.");
            self.prompt(&mut client, &prompt, auto, &mut chance).await;
            if chance.percent(5) {
                // Unread output is lost with the client, and must stop.
                self.tally.count("clients dropped");
                return;
            }
        }
        interrupters.shutdown().await;
        // After all this, a client is as good as new. The model is flawless for these prompts, unless the
        // machine is too busy.
        let mut reply = client.ask("Be well.").await;
        for _ in 0..4 {
            if reply.as_ref().is_err_and(|error| error.kind() == ErrorKind::Timeout) {
                reply = client.ask("Be well.").await;
            }
        }
        assert_eq!(reply.expect("the model behaves").text, "I am well.", "conversation {number}");
        assert_eq!(client.finish_reason(), Some(&FinishReason::Stop), "conversation {number}");
        assert_eq!(open_calls(client.history()), [""; 0], "conversation {number}");
        self.tally.count("conversations to the end");
    }

    /// A question without a conversation, sometimes not read to its end.
    async fn ask(&self, number: u64, chance: &mut Chance) {
        let stops_after = if chance.percent(30) { chance.below(6) } else { u64::MAX };
        let question = format!("Question {number}.");
        let Ok(mut answer) = query(&question, &self.manual).await else {
            return self.tally.count("queries refused");
        };
        for _ in 0..stops_after {
            match answer.next().await {
                Some(Ok(_)) => {}
                Some(Err(_)) => return self.tally.count("queries broken"),
                None => return self.tally.count("queries answered"),
            }
        }
        self.tally.count("queries dropped");
    }

    /// One prompt: read to the end, interrupted, or abandoned.
    async fn prompt(&self, client: &mut Client, prompt: &str, auto: bool, chance: &mut Chance) {
        let before = client.history().len();
        let patience =
            if chance.percent(10) { Duration::from_micros(chance.below(3_000)) } else { WATCHDOG };
        match timeout(patience, client.send(prompt)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.tally.count(format!("sends failed: {:?}", error.kind()));
                assert_taken_back(client, before);
                return;
            }
            Err(_) => {
                self.tally.count("sends dropped");
                assert_taken_back(client, before);
                return;
            }
        }
        for _ in 0..4 {
            if !self.read(client, chance).await {
                return;
            }
            let open = open_calls(client.history());
            assert!(!auto || open.is_empty(), "{open:?} have no result");
            let last = client.history().last().map(|message| message.role);
            if open.is_empty() && last != Some(MessageRole::Tool) {
                return;
            }
            for id in open {
                let answered = match chance.below(10) {
                    0 => return self.tally.count("calls left open"),
                    1 => client.add_tool_error(&id, "no"),
                    _ => client.add_tool_result(&id, json!({"seen": "a dog"})),
                };
                answered.expect("the call is open");
            }
            if let Err(error) = client.continue_turn().await {
                assert_eq!(open_calls(client.history()), [""; 0]);
                return self.tally.count(format!("continuations failed: {:?}", error.kind()));
            }
        }
    }

    /// Reads a turn; returns true if it reached its end.
    async fn read(&self, client: &mut Client, chance: &mut Chance) -> bool {
        let interrupts_at = if chance.percent(15) { chance.below(8) } else { u64::MAX };
        let stops_at = if chance.percent(5) { chance.below(8) } else { u64::MAX };
        let impatient = chance.percent(15);
        for block in 0.. {
            if block == interrupts_at {
                client.interrupt();
            }
            if block == stops_at {
                self.tally.count("turns left");
                return false;
            }
            let received = loop {
                let patience = if impatient { Duration::from_millis(1) } else { WATCHDOG };
                // A dropped future loses nothing.
                if let Ok(received) = timeout(patience, client.receive()).await {
                    break received;
                }
            };
            let _ = open_calls(client.history());
            match received {
                Ok(Some(ContentBlock::ToolResult(_))) => self.tally.count("results"),
                Ok(Some(_)) => {}
                Ok(None) => {
                    let reason = client.finish_reason().expect("a turn that ends says why");
                    self.tally.count(format!("turns: {}", reason.as_str()));
                    return true;
                }
                Err(error) => {
                    self.tally.count(format!("turns failed: {:?}", error.kind()));
                    assert!(client.finish_reason().is_none());
                    assert_eq!(open_calls(client.history()), [""; 0]);
                    return false;
                }
            }
        }
        unreachable!("blocks are counted without end")
    }
}

/// A failed send added nothing except results for open calls.
#[track_caller]
fn assert_taken_back(client: &Client, before: usize) {
    assert_eq!(open_calls(client.history()), [""; 0]);
    let added = client.history().iter().skip(before);
    let words = added.filter(|message| message.role == MessageRole::User);
    assert_eq!(words.count(), 0, "{:?}", client.history());
}

/// The memory of the whole process in megabytes, if the system reports it.
fn resident() -> String {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.map_or_else(|| "unknown".to_owned(), |pages| format!("{} MB", pages * 4 / 1024))
}

/// Checks that enough happened and that nothing is left: no task, and no connection once the options are
/// dropped. Returns the counts.
fn assert_nothing_left(runtime: &Runtime, tally: &Tally, model: Model) -> String {
    for what in
        ["conversations to the end", "turns: interrupted", "turns failed: Stream", "results"]
    {
        assert!(tally.of(what) > 0, "no {what}");
    }
    // A finished task is counted until its worker removes it.
    let tasks = || runtime.metrics().num_alive_tasks();
    let began = Instant::now();
    while tasks() > 0 && began.elapsed() < WATCHDOG {
        runtime.block_on(async { sleep(Duration::from_millis(1)).await });
    }
    assert_eq!(tasks(), 0);
    format!("  {}{} connections", tally.line(), model.assert_left())
}

#[test]
fn faults_leave_no_tasks_or_connections() {
    let count = conversations();
    let began = Instant::now();
    let model = Model::start();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let soak = Soak::new(&model);
    runtime.block_on(soak.run(0..count / 3));
    let third = resident();
    runtime.block_on(soak.run(count / 3..count));
    println!(
        "{count} conversations on two threads in {:?}; resident {third} after a third, {} at the end",
        began.elapsed(),
        resident()
    );
    let tally = soak.tally.clone();
    drop(soak);
    println!("{}", assert_nothing_left(&runtime, &tally, model));
}

#[test]
fn faults_leave_no_memory() {
    let count = conversations();
    let began = Instant::now();
    let model = Model::start();
    // All on this thread, because allocations are counted per thread.
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let tally = Tally::default();
    let mut growth = Vec::with_capacity(3);
    let all = allocation_counter::measure(|| {
        let mut soak = Soak::new(&model);
        soak.tally = tally.clone();
        for part in 0..3 {
            let numbers = count * part / 3..count * (part + 1) / 3;
            let left = allocation_counter::measure(|| runtime.block_on(soak.run(numbers)));
            growth.push((left.count_current, left.bytes_current));
        }
    });
    println!(
        "{count} conversations on one thread in {:?}: {} allocations, {} bytes at most; \
         (allocations, bytes) that each third left: {growth:?}, and all of it: {:?}; resident {}",
        began.elapsed(),
        all.count_total,
        all.bytes_max,
        (all.count_current, all.bytes_current),
        resident()
    );
    // Idle connections stay for the next third; their number at any end is random.
    for (allocations, bytes) in &growth[1..] {
        assert!(*allocations < 500 && *bytes < 512 << 10, "{growth:?}");
    }
    // Without them, what remains is the tally and the runtime's own reserves.
    assert!(all.count_current < 200 && all.bytes_current < 64 << 10, "{all:?}");
    println!("{}", assert_nothing_left(&runtime, &tally, model));
}
