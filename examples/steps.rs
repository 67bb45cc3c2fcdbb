//! A turn planned step by step: first the model must search, then it answers with one more instruction, and a condition
//! stops the turn.
//!
//!     cargo run --example steps

use std::error::Error;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{AgentEvent, Client, ToolChoice, json, stop_when, tool};

const QUESTION: &str = "How long is the Danube?";
const REPORT: &str = "Keep looking for rivers, and report each.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("steps.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let search = tool("search", "Searches an encyclopedia")
        .param("query", "string")
        .build(|_| async { Ok(json!("The Danube is 2,850 km long.")) });
    let report = tool("report", "Reports a river").build(|_| async { Ok(json!("reported")) });

    let options = model
        .options()
        .system_prompt("You answer questions about rivers.")
        .tools([search, report])
        .auto_execute_tools(true)
        // Runs before each request. Later requests are sent as usual, with one more instruction. You can also set
        // another model here: `step.model("qwen3:4b")`.
        .before_step(|step| async move {
            match step.number() {
                1 => step.only_tools(["search"]).tool_choice(ToolChoice::Required),
                _ => step.instructions("Answer in one sentence."),
            }
        })
        // Checked after the calls of each step; any one ends the turn. A custom condition is a closure over the step.
        .stop_when(stop_when::has_call("report"))
        .stop_when(|step| step.usage().total().is_some_and(|tokens| tokens > 10_000))
        .build()?;
    let mut client = Client::new(options)?;

    for prompt in [QUESTION, REPORT] {
        terminal.prompt(prompt);
        client.send(prompt).await?;
        while let Some(event) = client.next_event().await? {
            match event {
                AgentEvent::Block(block) => terminal.block(&block),
                AgentEvent::TurnEnd(reason) => {
                    terminal.note(&format!("  the turn ended: {reason}"))
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The stand-in without a model. It does what the request asks for.
fn stand_in(chat: &Chat<'_>) -> Reply {
    match chat.prompt() {
        REPORT if chat.calls().next().is_some() => {
            Reply::text("Another river.").call("report", json!({}))
        }
        REPORT => Reply::text("I look.").call("search", json!({ "query": "rivers" })),
        _ if chat.calls().next().is_some() => Reply::text("It is 2,850 km long."),
        _ => Reply::new().call("search", json!({ "query": "Danube" })),
    }
}
