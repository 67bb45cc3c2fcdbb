//! The code under test: `query` and `Client`.

use std::hint::black_box;

use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client, query};
use oa_tools::{FnTool, tool};
use oa_types::ContentBlock;
use serde_json::Value;

use crate::answers::{PAGE, WORD, page};

/// Returns options for a path of the server, such as `/0/2000`.
pub(crate) fn options(port: usize, path: &str) -> AgentOptions {
    build(builder(port, path))
}

/// Returns options with which the client runs the calls of that many rounds.
pub(crate) fn options_with_tool(port: usize, path: &str) -> AgentOptions {
    build(builder(port, path).tool(reader()).auto_execute_tools(true).max_tool_iterations(1_000))
}

/// Sends a prompt with `query` and reports the pieces as they arrive.
pub(crate) async fn ask(options: &AgentOptions, mut on_pieces: impl FnMut(usize)) {
    let mut answer = query("Tell me a story.", options).await.expect("the server answers");
    while let Some(block) = answer.next().await {
        match block.expect("the answer is whole") {
            ContentBlock::Text(block) => {
                black_box(block.text);
                on_pieces(1);
            }
            ContentBlock::ToolUse(call) => on_pieces(words(&call.input)),
            other => panic!("nobody sent {other:?}"),
        }
    }
}

/// Does the same with a new client, and its events.
pub(crate) async fn ask_client(options: &AgentOptions, mut on_pieces: impl FnMut(usize)) {
    let mut client = client(options);
    client.send("Tell me a story.").await.expect("the server answers");
    while let Some(event) = client.next_event().await.expect("the answer is whole") {
        match event {
            AgentEvent::Block(ContentBlock::Text(block)) => {
                black_box(block.text);
                on_pieces(1);
            }
            AgentEvent::ToolUseDelta(delta) => {
                on_pieces(usize::from(delta.arguments == WORD));
                black_box(delta);
            }
            other => {
                black_box(other);
            }
        }
    }
}

/// Runs a conversation with a tool; returns after how many rounds its text came.
pub(crate) async fn converse(options: &AgentOptions) -> usize {
    let mut client = client(options);
    client.send("Read the book.").await.expect("the server answers");
    let (mut results, mut texts) = (0, 0);
    while let Some(block) = client.receive().await.expect("nothing fails here") {
        match black_box(block) {
            ContentBlock::Text(_) => texts += 1,
            ContentBlock::ToolResult(_) => results += 1,
            _ => {}
        }
    }
    assert_eq!(texts, 1, "the last answer is one piece of text");
    results
}

/// Returns how many words a complete call carries.
fn words(input: &Value) -> usize {
    input["text"].as_str().map_or(0, |text| text.len() / WORD.len())
}

fn builder(port: usize, path: &str) -> AgentOptionsBuilder {
    AgentOptions::builder().model("tiny").base_url(format!("http://127.0.0.1:{port}{path}"))
}

fn build(builder: AgentOptionsBuilder) -> AgentOptions {
    builder.build().expect("the options are valid")
}

fn reader() -> FnTool {
    tool("read", "Read a page").param(PAGE, "integer").build(|arguments| async move {
        assert!(arguments[PAGE].is_u64(), "the page is a number");
        Ok(Value::from(page()))
    })
}

fn client(options: &AgentOptions) -> Client {
    Client::new(options.clone()).expect("the options are valid")
}
