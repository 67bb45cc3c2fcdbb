//! The whole path, from bytes to blocks to the turn: whatever a server sends, nothing panics, history is
//! valid, and a strict server takes the next request.
//!
//! The first byte chooses the options, the second how the bodies are cut. The rest are the bodies, with
//! a line of `~` between them.

#![no_main]

use std::collections::HashSet;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use oa_aggregate::ThinkTags;
use oa_chat::{RetryConfig, ToolMode};
use oa_client::{AgentOptions, Client, ErrorKind};
use oa_testkit::{Cut, MemoryServer, Reply, Request, Script, Strict};
use oa_tools::{ToolError, tool};
use oa_types::{ContentBlock, Message, MessageRole};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime can be made")
});

fn options(flags: u8, server: &MemoryServer) -> AgentOptions {
    let echo = tool("echo", "Say it again").param("say", "string").optional("say");
    let mut options = AgentOptions::builder()
        .model("any")
        .transport(server.clone())
        .retry(RetryConfig::none())
        .tool(echo.build(|args| async move { Ok(args["say"].clone()) }))
        .tool(tool("fail", "Fail").build(|_| async { Err(ToolError::new("it does not work")) }))
        .lenient_tool_json(flags & 2 != 0);
    if flags & 1 != 0 {
        options = options.auto_execute_tools(true).max_tool_iterations(2);
        options = options.last_answer_without_tools(flags & 4 != 0);
    }
    if flags & 8 != 0 {
        let mut limits = oa_chat::Limits::default();
        limits.answer.text_bytes = 40;
        limits.answer.calls = 2;
        limits.answer.argument_bytes = 24;
        limits.events.event_bytes = 400;
        options = options.limits(limits);
    }
    if flags & 16 != 0 {
        options = options.think_tags(ThinkTags::Split);
    }
    options = match flags >> 5 {
        1 => options.tool_mode(ToolMode::TaggedJson),
        2 => options.tool_mode(ToolMode::React),
        3 => options.tool_mode(ToolMode::Markers),
        4 => options.recognize_calls(true),
        6 => options.tool_mode(ToolMode::Constrained),
        5 if flags & 1 != 0 => options.tool_mode(ToolMode::MarkersInline),
        _ => options,
    };
    options.build().expect("these options can work")
}

/// Each call has one result, right behind it, and a result has its call.
fn check(history: &[Message], open: &HashSet<String>) {
    let mut wanted = HashSet::new();
    for message in history {
        if message.role != MessageRole::Tool {
            assert!(wanted.is_empty(), "{wanted:?} before {message:?}");
        }
        for block in &message.content {
            match block {
                ContentBlock::ToolUse(call) => {
                    assert!(wanted.insert(call.id.clone()), "two calls are {:?}", call.id);
                }
                ContentBlock::ToolResult(result) => {
                    assert!(wanted.remove(&result.tool_use_id), "no call is {result:?}");
                }
                _ => {}
            }
        }
    }
    assert_eq!(&wanted, open);
}

/// A strict server takes each request, but for what servers send themselves and get back: members that
/// only they know, ids that are long or given anew in each answer.
fn check_taken(request: &Request) {
    let Err(violations) = Strict::new().allow_repeated_ids().check_bytes(request.body()) else {
        return;
    };
    for violation in violations.iter() {
        let is_id = violation.path().ends_with("id");
        let violation = violation.to_string();
        let is_own = violation.ends_with("is not known to every server")
            || is_id && violation.ends_with("1 to 64");
        assert!(is_own, "{violation}");
    }
}

async fn converse(flags: u8, bodies: &[u8], cut: Cut) {
    let bodies = bodies.split(|&byte| byte == b'~');
    let replies: Vec<Reply> =
        bodies.map(|body| Reply::sse(body.to_vec()).cut(cut.clone())).collect();
    let play = move |request: &Request| {
        replies.get(request.number() - 1).cloned().unwrap_or_else(|| Reply::text("Done."))
    };
    let server = MemoryServer::new(Script::new().otherwise(Reply::by(play)));
    let mut client = Client::new(options(flags, &server)).expect("there is a model");
    for prompt in ["One.", "Two.", "Three."] {
        let mut open = HashSet::new();
        let mut sent = client.send(prompt).await;
        for _ in 0..4 {
            if let Err(error) = &sent {
                assert_ne!(error.kind(), ErrorKind::InvalidInput, "{error}");
                break;
            }
            loop {
                match client.receive().await {
                    Ok(Some(ContentBlock::ToolUse(call))) => drop(open.insert(call.id)),
                    Ok(Some(ContentBlock::ToolResult(result))) => {
                        open.remove(&result.tool_use_id);
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => {
                        open.clear();
                        break;
                    }
                }
            }
            check(client.history(), &open);
            if open.is_empty() {
                break;
            }
            for id in open.drain() {
                client.add_tool_result(&id, json!("done")).expect("the call is open");
            }
            check(client.history(), &open);
            sent = client.continue_turn().await;
        }
    }
    server.requests().iter().for_each(check_taken);
}

fuzz_target!(|data: &[u8]| {
    let [flags, pieces, bodies @ ..] = data else { return };
    let cut = match pieces {
        0..128 => Cut::Whole,
        bytes => Cut::Every(usize::from(bytes - 127)),
    };
    RUNTIME.block_on(converse(*flags, bodies, cut));
});
