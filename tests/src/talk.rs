//! Shared parts of the conversation tests: clients, tools, and blocks and messages rendered as lines.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use oa_chat::RetryConfig;
use oa_client::{AgentOptions, AgentOptionsBuilder, Client, Error, Result};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::{FnTool, ToolError, tool};
use oa_types::{ContentBlock, Message, MessageRole, ToolUseBlock};
use proptest::test_runner::{Config as ProptestConfig, RngSeed};
use serde_json::json;

/// A server that plays these replies and rejects what a strict server would.
pub fn strict<const N: usize>(replies: [Reply; N]) -> MemoryServer {
    MemoryServer::new(Script::from(replies).strict())
}

/// Options without retries, which are tested elsewhere; calls are answered by hand.
pub fn manual(server: &MemoryServer) -> AgentOptionsBuilder {
    AgentOptions::builder().model("any").transport(server.clone()).retry(RetryConfig::none())
}

/// The same, whose tools run by themselves.
pub fn auto(server: &MemoryServer) -> AgentOptionsBuilder {
    manual(server).auto_execute_tools(true)
}

/// A client with these options.
///
/// # Panics
///
/// If they do not fit together.
pub fn client(options: AgentOptionsBuilder) -> Client {
    Client::new(options.build().expect("these options can work")).expect("there is a model")
}

/// An answer with these words, one piece each, that stalls before its end.
pub fn stalling(words: &[&str]) -> Reply {
    let piece = |word: &str| {
        let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": word } }] });
        format!("data: {chunk}\n\n")
    };
    let said: String = words.iter().map(|word| piece(word)).collect();
    Reply::sse(format!("{said}{}", piece("never said"))).stall_after(said.len())
}

/// A rejection of a request in two forms: as a response with this status, and inside an answer with status 200
/// after its first chunk. Each has its words beside it.
pub fn rejections((status, words): (u16, &str)) -> [(&str, Reply); 2] {
    let error = json!({ "error": { "message": words, "code": status } });
    let inside = Reply::new().event(error).without_finish();
    [(words, Reply::error(status, words)), (words, inside)]
}

/// Adds two numbers.
#[must_use]
pub fn adder() -> FnTool {
    tool("add", "Add two numbers").param("a", "number").param("b", "number").build(
        |args| async move {
            let number = |name: &str| args[name].as_f64().unwrap_or(0.0);
            Ok(json!(number("a") + number("b")))
        },
    )
}

/// Returns its argument `say`.
#[must_use]
pub fn echo() -> FnTool {
    tool("echo", "Says it again")
        .param("say", "string")
        .optional("say")
        .build(|args| async move { Ok(args["say"].clone()) })
}

/// Takes this long.
#[must_use]
pub fn slow(name: &str, time: Duration) -> FnTool {
    tool(name, "Takes a while").build(move |_| async move {
        tokio::time::sleep(time).await;
        Ok(json!("slept"))
    })
}

/// Fails.
#[must_use]
pub fn failing(name: &str) -> FnTool {
    tool(name, "Fails").build(|_| async { Err(ToolError::new("the disk is full")) })
}

/// Never finishes. Its guard counts live runs, and records whether each had been signaled when it was dropped.
#[must_use]
pub fn hanging(name: &str, alive: &Alive) -> FnTool {
    let alive = alive.clone();
    tool(name, "Hangs").build_with_context(move |_, context| {
        let guard = alive.enter(move || context.is_cancelled());
        async move {
            let _guard = guard;
            std::future::pending::<()>().await;
            Ok(json!(null))
        }
    })
}

/// Counts live runs, and records their state when dropped.
#[derive(Clone, Debug, Default)]
pub struct Alive {
    now: Arc<AtomicUsize>,
    ever: Arc<AtomicUsize>,
    told: Arc<AtomicUsize>,
}

impl Alive {
    /// Counts one more, until its guard is dropped.
    pub fn enter(&self, was_told: impl Fn() -> bool + Send + 'static) -> Guard {
        self.now.fetch_add(1, Ordering::SeqCst);
        self.ever.fetch_add(1, Ordering::SeqCst);
        Guard { alive: self.clone(), was_told: Box::new(was_told) }
    }

    /// Returns the number of guards alive now.
    #[must_use]
    pub fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    /// Returns the number of guards ever created.
    #[must_use]
    pub fn ever(&self) -> usize {
        self.ever.load(Ordering::SeqCst)
    }

    /// Returns the number of guards dropped after they were told.
    #[must_use]
    pub fn told(&self) -> usize {
        self.told.load(Ordering::SeqCst)
    }
}

/// Counts as alive until dropped.
pub struct Guard {
    alive: Alive,
    was_told: Box<dyn Fn() -> bool + Send>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("alive", &self.alive).finish_non_exhaustive()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.alive.now.fetch_sub(1, Ordering::SeqCst);
        self.alive.told.fetch_add(usize::from((self.was_told)()), Ordering::SeqCst);
    }
}

/// A shared log of events, in order. Clones write to the same log.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Adds a line.
    pub fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.into());
    }

    /// The lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A block on one line.
#[must_use]
pub fn line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Thinking(thinking) => format!("({})", thinking.thinking),
        ContentBlock::ToolUse(ToolUseBlock { id, name, input, .. }) => {
            format!("[{id} {name} {input}]")
        }
        ContentBlock::ToolUseError(error) => {
            format!("{}?{}", error.id.as_deref().unwrap_or("-"), error.error)
        }
        ContentBlock::ToolResult(result) => {
            let sign = if result.is_error { "!" } else { "=" };
            format!("{}{sign}{}", result.tool_use_id, result.content)
        }
        other => format!("{other:?}"),
    }
}

/// A conversation, one message per line.
#[must_use]
pub fn told(history: &[Message]) -> Vec<String> {
    let told = |message: &Message| {
        let blocks: Vec<String> = message.content.iter().map(line).collect();
        let mark = if message.interrupted { " (interrupted)" } else { "" };
        format!("{}: {}{mark}", message.role.as_str(), blocks.join(" "))
    };
    history.iter().map(told).collect()
}

/// Reads to the end or an error: blocks as lines, pieces of text joined.
pub async fn read_on(client: &mut Client) -> (Vec<String>, Option<Error>) {
    let (mut seen, mut in_text) = (Vec::<String>::new(), false);
    loop {
        match client.receive().await {
            Ok(Some(block)) => {
                let is_text = matches!(block, ContentBlock::Text(_));
                match seen.last_mut().filter(|_| is_text && in_text) {
                    Some(last) => *last += &line(&block),
                    None => seen.push(line(&block)),
                }
                in_text = is_text;
            }
            Ok(None) => return (seen, None),
            Err(error) => return (seen, Some(error)),
        }
    }
}

/// Reads to the end, without errors.
pub async fn read(client: &mut Client) -> Vec<String> {
    let (seen, error) = read_on(client).await;
    assert!(error.is_none(), "after {seen:?}: {error:?}");
    seen
}

/// Sends a prompt and reads to the end, without errors.
pub async fn talk(client: &mut Client, prompt: &str) -> Vec<String> {
    client.send(prompt).await.expect("the prompt is taken");
    read(client).await
}

/// Interrupts after a while.
pub fn interrupt_after(client: &Client, time: Duration) {
    let handle = client.interrupt_handle();
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        handle.interrupt();
    });
}

/// The next item of a stream.
pub async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}

/// A deterministic random number generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    #[must_use]
    /// Starts at a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below this one.
    pub fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((number ^ (number >> 31)) % end as u64).expect("it is below a usize")
    }
}

/// Polls a future up to a number of times, or until it is ready, and drops it.
pub fn poll_times<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..times {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
    }
    None
}

/// Returns a configuration that runs this number of cases, the same ones each time.
#[must_use]
pub fn cases(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig::with_cases(cases);
    config.rng_seed = RngSeed::Fixed(1);
    config
}

/// Lists the models of the options' own server.
pub async fn models(options: &AgentOptions) -> Result<Vec<String>> {
    let endpoint = options.endpoint().expect("a server of its own");
    endpoint.list_models(options.chat_options().timeouts).await
}

/// Checks that each call has at most one result, in call order and before the next message, and that only calls
/// at the end are open; returns the ids of those.
#[must_use]
#[track_caller]
pub fn open_calls(history: &[Message]) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    // Results of later calls may come first.
    let mut passed = 0;
    for message in history {
        assert!(!message.content.is_empty(), "a message says nothing: {history:?}");
        if message.role != MessageRole::Tool {
            assert!(open.is_empty(), "{open:?} have no result: {history:?}");
            passed = 0;
        }
        for block in &message.content {
            match block {
                ContentBlock::ToolUse(call) => open.push(&call.id),
                ContentBlock::ToolResult(result) => {
                    let place = open.iter().skip(passed).position(|id| *id == result.tool_use_id);
                    let place = place.unwrap_or_else(|| panic!("{result:?} in {history:?}"));
                    passed += place;
                    open.remove(passed);
                }
                _ => {}
            }
        }
    }
    open.into_iter().map(str::to_owned).collect()
}

/// One letter per message: `u`ser, `a`ssistant, assistant with `c`alls, `t`ool.
#[must_use]
pub fn letters(history: &[Message]) -> String {
    let letter = |message: &Message| {
        let is_call = |block: &ContentBlock| matches!(block, ContentBlock::ToolUse(_));
        match message.role {
            MessageRole::Tool => 't',
            MessageRole::User => 'u',
            MessageRole::Assistant if message.content.iter().any(is_call) => 'c',
            _ => 'a',
        }
    };
    history.iter().map(letter).collect()
}
