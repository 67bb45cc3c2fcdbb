//! Several tools in one answer run in parallel: the same question with sequential and parallel calls.
//!
//!     cargo run --example multi_tool

use std::error::Error;
use std::time::{Duration, Instant};

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{
    AgentEvent, Client, ExecutionMode, ExecutorOptions, FnTool, ToolEvent, json, tool,
};

const QUESTION: &str =
    "Plan a day in Oslo: look up the weather, the ferries and a museum, all at once.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("multi_tool.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    terminal.prompt(QUESTION);

    let one_by_one = ask(&model, ExecutionMode::Sequential, &mut terminal).await?;
    let together = ask(&model, ExecutionMode::Parallel, &mut terminal).await?;

    terminal.title("Time for the tools");
    terminal.line(&format!("  one by one  {:>4} ms", one_by_one.as_millis()));
    terminal.line(&format!("  together    {:>4} ms", together.as_millis()));
    let saved = one_by_one.saturating_sub(together);
    terminal.line(&format!("  saved       {:>4} ms", saved.as_millis()));
    Ok(())
}

/// Asks the question and returns the total time of the tools.
async fn ask(
    model: &Model,
    mode: ExecutionMode,
    terminal: &mut Terminal,
) -> Result<Duration, Box<dyn Error>> {
    let options = model
        .options()
        .system_prompt("You plan trips. Call all tools that you need in one answer.")
        .tool(lookup("weather", Duration::from_millis(200), "sunny, 21 degrees"))
        .tool(lookup("ferries", Duration::from_millis(300), "to the islands at 10:05 and 11:05"))
        .tool(lookup("museum", Duration::from_millis(250), "the Munch museum, open until 21:00"))
        .auto_execute_tools(true)
        .executor(ExecutorOptions::new().mode(mode))
        .build()?;
    let mut client = Client::new(options)?;

    terminal.title(&format!("{mode:?}"));
    client.send(QUESTION).await?;
    let mut began = None;
    let mut took = Duration::ZERO;
    // `next_event` reports everything that happens; `receive` only blocks.
    while let Some(event) = client.next_event().await? {
        match event {
            AgentEvent::Block(block) => terminal.block(&block),
            AgentEvent::Tool(ToolEvent::CallStart(_)) => {
                began.get_or_insert_with(Instant::now);
            }
            AgentEvent::Tool(ToolEvent::CallComplete(result)) => {
                let ms = result.duration.as_millis();
                terminal.note(&format!("  {} took {ms} ms", result.tool_name));
            }
            AgentEvent::Tool(ToolEvent::End(_)) => {
                took += began.take().map(|began| began.elapsed()).unwrap_or_default();
            }
            _ => {}
        }
    }
    Ok(took)
}

/// A slow tool, like one that queries a server.
fn lookup(name: &str, delay: Duration, answer: &'static str) -> FnTool {
    let description = format!("Looks up the {name} for a place");
    tool(name, description).param("place", "string").build(move |_| async move {
        tokio::time::sleep(delay).await;
        Ok(json!(answer))
    })
}

/// The stand-in without a model: two rules.
fn stand_in(chat: &Chat<'_>) -> Reply {
    let results = ["weather", "ferries", "museum"].map(|tool| chat.result(tool));
    match results {
        [Some(weather), Some(ferries), Some(museum)] => Reply::text(format!(
            "Weather: {}. Ferries: {}. Museum: {}.",
            weather.as_str().unwrap_or("unknown"),
            ferries.as_str().unwrap_or("unknown"),
            museum.as_str().unwrap_or("unknown"),
        )),
        _ => Reply::text("I look three things up.")
            .call("weather", json!({ "place": "Oslo" }))
            .call("ferries", json!({ "place": "Oslo" }))
            .call("museum", json!({ "place": "Oslo" })),
    }
}
