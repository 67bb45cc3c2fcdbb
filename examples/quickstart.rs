//! A calculator agent: the model decides which tools to call, and the client runs them until there is an
//! answer.
//!
//!     cargo run --example quickstart
//!     cargo run --example quickstart -- "What is 25 + 17, times 3?"
//!
//! It looks for a model server on this machine (or the one named by `OPEN_AGENT_BASE_URL` and
//! `OPEN_AGENT_MODEL`), and starts a stand-in if there is none or if `OPEN_AGENT_STAND_IN` is set.

use std::error::Error;
use std::time::Instant;

use examples::{Arguments, Model, Terminal, stand_in};
use open_agent::{Client, ContentBlock, FinishReason, FnTool, ToolError, json, tool};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words = Arguments::read(include_str!("quickstart.rs")).words()?;
    let question = if words.is_empty() { "What is 25 + 17, times 3?" } else { &words };
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in::answer).await?;

    // In your own program: `AgentOptions::builder().model("qwen3:8b").provider(Provider::Ollama)`.
    let options = model
        .options()
        .system_prompt(
            "You are a calculator. Use the tools for every step, then answer in a sentence.",
        )
        .tool(calculation("add", "Add two numbers", |a, b| Ok(a + b)))
        .tool(calculation("subtract", "Subtract b from a", |a, b| Ok(a - b)))
        .tool(calculation("multiply", "Multiply two numbers", |a, b| Ok(a * b)))
        .tool(calculation("divide", "Divide a by b", |a, b| match b {
            0.0 => Err(ToolError::new("a number cannot be divided by zero")),
            _ => Ok(a / b),
        }))
        .auto_execute_tools(true)
        .max_tool_iterations(20)
        .build()?;

    terminal.prompt(question);
    let asked = Instant::now();
    let mut client = Client::new(options)?;
    client.send(question).await?;
    while let Some(block) = client.receive().await? {
        match block {
            ContentBlock::Text(text) => terminal.say(&text.text), // as it is generated
            call_or_result => terminal.block(&call_or_result),
        }
    }

    if client.finish_reason() == Some(&FinishReason::MaxToolIterations) {
        terminal.line("The model reached its limit of tool rounds.");
    }
    let rounds = client.turn_metadata().rounds;
    let tokens = client.turn_metadata().total_usage.total_tokens.unwrap_or_default();
    let seconds = asked.elapsed().as_secs_f32();
    terminal.gap();
    terminal.note(&format!("tool rounds: {rounds}, tokens: {tokens}, {seconds:.1} s"));
    Ok(())
}

/// A tool with two numbers. Its errors are reported to the model, and the conversation continues.
fn calculation(
    name: &str,
    description: &str,
    work: fn(f64, f64) -> Result<f64, ToolError>,
) -> FnTool {
    tool(name, description).param("a", "number").param("b", "number").build(
        move |args| async move {
            // The client has checked the arguments against the parameters.
            let number = |name: &str| args[name].as_f64().unwrap_or_default();
            let result = work(number("a"), number("b"))?;
            if !result.is_finite() {
                return Err("the result is too large".into());
            }
            Ok(json!(result))
        },
    )
}
