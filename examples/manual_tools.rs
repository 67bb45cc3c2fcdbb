//! Manual mode: the caller runs the model's calls and decides what runs, when and where: after asking the user,
//! through a queue, on another machine.
//!
//!     cargo run --example manual_tools

use std::error::Error;

use examples::{Arguments, Model, Terminal, stand_in};
use open_agent::{Client, ContentBlock, ToolError, json, tool};

/// In manual mode the caller limits the rounds, because a model may request tools forever.
const ROUNDS: usize = 10;
const QUESTION: &str = "What is 84 / 2 and what is 7 / 0?";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("manual_tools.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in::answer).await?;
    let divide = tool("divide", "Divide a by b").param("a", "number").param("b", "number").build(
        |args| async move {
            let (a, b) = (args["a"].as_f64(), args["b"].as_f64());
            match (a, b) {
                (Some(_), Some(0.0)) => Err(ToolError::new("a number cannot be divided by zero")),
                (Some(a), Some(b)) => Ok(json!(a / b)),
                _ => Err(ToolError::new("a and b are numbers")),
            }
        },
    );
    // Manual mode is the default: tools are offered, but nothing runs automatically.
    let options = model
        .options()
        .system_prompt("You are a calculator. Use the tools for every step.")
        .tool(divide)
        .build()?;

    let mut client = Client::new(options)?;
    terminal.prompt(QUESTION);
    client.send(QUESTION).await?;
    for _ in 0..ROUNDS {
        // The calls of an answer come after its text. All must be answered before the turn continues.
        let mut calls = Vec::new();
        while let Some(block) = client.receive().await? {
            match block {
                ContentBlock::Text(text) => terminal.say(&text.text),
                ContentBlock::ToolUse(call) => calls.push(call),
                // A call that was cut off is not in the history; ask for it again if it matters.
                other => terminal.block(&other),
            }
        }
        if calls.is_empty() {
            break;
        }
        for call in calls {
            let Some(tool) = client.get_tool(&call.name) else {
                client.add_tool_error(&call.id, "there is no such tool")?;
                continue;
            };
            // `execute` checks the arguments against the tool's parameters. The result may also come from
            // anywhere else.
            match tool.execute(call.input.clone()).await {
                Ok(result) => {
                    terminal.note(&format!("  {} {} gives {result}", call.name, call.input));
                    client.add_tool_result(&call.id, result)?;
                }
                Err(error) => {
                    terminal.note(&format!("  {} {} fails: {error}", call.name, call.input));
                    client.add_tool_error(&call.id, error.to_string())?;
                }
            }
        }
        client.continue_turn().await?;
    }

    terminal.gap();
    let roles: Vec<_> = client.history().iter().map(|message| message.role.as_str()).collect();
    terminal.note(&format!("history: {}", roles.join(", ")));
    Ok(())
}
