//! Shared parts of the conversation tests: clients, tools, and blocks and messages rendered as lines.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use oa_testkit::{MemoryServer, Reply, Script};
use open_agent::{
    AgentOptions, AgentOptionsBuilder, Client, ContentBlock, Error, FnTool, Message, RetryConfig,
    ToolError, ToolUseBlock, json, tool,
};
use proptest::test_runner::{Config as ProptestConfig, RngSeed};

/// A server that plays these replies and rejects what a strict server would.
pub(crate) fn strict<const N: usize>(replies: [Reply; N]) -> MemoryServer {
    MemoryServer::new(Script::from(replies).strict())
}

pub(crate) fn manual(server: &MemoryServer) -> AgentOptionsBuilder {
    // Retries are tested elsewhere.
    AgentOptions::builder().model("any").transport(server.clone()).retry(RetryConfig::none())
}

pub(crate) fn auto(server: &MemoryServer) -> AgentOptionsBuilder {
    manual(server).auto_execute_tools(true)
}

pub(crate) fn client(options: AgentOptionsBuilder) -> Client {
    Client::new(options.build().expect("these options can work")).expect("there is a model")
}

/// An answer with these words, one piece each, that stalls before its end.
pub(crate) fn stalling(words: &[&str]) -> Reply {
    let piece = |word: &str| {
        let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": word } }] });
        format!("data: {chunk}\n\n")
    };
    let said: String = words.iter().map(|word| piece(word)).collect();
    Reply::sse(format!("{said}{}", piece("never said"))).stall_after(said.len())
}

/// Adds two numbers.
pub(crate) fn adder() -> FnTool {
    tool("add", "Add two numbers").param("a", "number").param("b", "number").build(
        |args| async move {
            let number = |name: &str| args[name].as_f64().unwrap_or(0.0);
            Ok(json!(number("a") + number("b")))
        },
    )
}

/// Returns its argument `say`.
pub(crate) fn echo() -> FnTool {
    tool("echo", "Says it again")
        .param("say", "string")
        .optional("say")
        .build(|args| async move { Ok(args["say"].clone()) })
}

/// Takes this long.
pub(crate) fn slow(name: &str, time: Duration) -> FnTool {
    tool(name, "Takes a while").build(move |_| async move {
        tokio::time::sleep(time).await;
        Ok(json!("slept"))
    })
}

/// Fails.
pub(crate) fn failing(name: &str) -> FnTool {
    tool(name, "Fails").build(|_| async { Err(ToolError::new("the disk is full")) })
}

/// A shared log of events, in order. Clones write to the same log.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A block on one line.
pub(crate) fn line(block: &ContentBlock) -> String {
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
pub(crate) fn told(history: &[Message]) -> Vec<String> {
    let told = |message: &Message| {
        let blocks: Vec<String> = message.content.iter().map(line).collect();
        let mark = if message.interrupted { " (interrupted)" } else { "" };
        format!("{}: {}{mark}", message.role.as_str(), blocks.join(" "))
    };
    history.iter().map(told).collect()
}

/// Reads to the end or an error: blocks as lines, pieces of text joined.
pub(crate) async fn read_on(client: &mut Client) -> (Vec<String>, Option<Error>) {
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
pub(crate) async fn read(client: &mut Client) -> Vec<String> {
    let (seen, error) = read_on(client).await;
    assert!(error.is_none(), "after {seen:?}: {error:?}");
    seen
}

/// Sends a prompt and reads to the end, without errors.
pub(crate) async fn talk(client: &mut Client, prompt: &str) -> Vec<String> {
    client.send(prompt).await.expect("the prompt is taken");
    read(client).await
}

/// Interrupts after a while.
pub(crate) fn interrupt_after(client: &Client, time: Duration) {
    let handle = client.interrupt_handle();
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        handle.interrupt();
    });
}

/// Polls a future up to a number of times, or until it is ready, and drops it.
pub(crate) fn poll_times<F: Future>(future: F, times: usize) -> Option<F::Output> {
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
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig::with_cases(cases);
    config.rng_seed = RngSeed::Fixed(1);
    config
}
