//! Talking to an agent while it works: a message enters between two steps, from another task.
//!
//!     cargo run --example steering

use std::error::Error;
use std::time::Duration;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{AgentEvent, Client, json, tool};
use tokio::time::sleep;

const PROMPT: &str = "Paint the house.";
const CHANGE: &str = "Take blue instead of red.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("steering.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let paint = tool("paint", "Paints a wall").param("color", "string").build(|args| async move {
        sleep(Duration::from_millis(200)).await;
        Ok(json!(format!("one wall is {}", args["color"].as_str().unwrap_or_default())))
    });
    let options = model
        .options()
        .system_prompt("You paint four walls, one call each.")
        .tool(paint)
        .auto_execute_tools(true)
        .build()?;
    let mut client = Client::new(options)?;

    // The handle can be cloned and sent anywhere: to the task that reads the keyboard, to a web server.
    let handle = client.steer_handle();
    terminal.prompt(PROMPT);
    client.send(PROMPT).await?;
    let mut walls = 0;
    while let Some(event) = client.next_event().await? {
        match event {
            AgentEvent::Block(block) => {
                terminal.block(&block);
                if matches!(block, open_agent::ContentBlock::ToolResult(_)) {
                    walls += 1;
                    if walls == 1 {
                        handle.steer(CHANGE)?;
                    }
                }
            }
            // A message never comes between a call and its result.
            AgentEvent::Steered(message) => terminal.prompt(&message.text()),
            AgentEvent::TurnEnd(reason) => terminal.note(&format!("  finish reason: {reason}")),
            _ => {}
        }
    }
    Ok(())
}

/// The stand-in without a model: one wall per prompt, in the color that was asked for last.
fn stand_in(chat: &Chat<'_>) -> Reply {
    let color = if chat.prompt() == CHANGE { "blue" } else { "red" };
    match chat.calls().count() {
        0 => Reply::new().call("paint", json!({ "color": color })),
        _ => Reply::text(format!("The last wall is {color}.")),
    }
}
