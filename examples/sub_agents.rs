//! Agents as tools of an agent: two researchers work in parallel within one budget, and their events are shown live.
//!
//!     cargo run --example sub_agents

use std::error::Error;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{
    AgentEvent, AgentTool, Client, ContentBlock, NestedEvent, Permission, Result, json, tool,
};

const PROMPT: &str = "What are the longest river and the highest mountain of Europe?";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("sub_agents.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let options = model
        .options()
        .system_prompt("You write one sentence from what your researchers find.")
        .tool(researcher(&model, "rivers")?)
        .tool(researcher(&model, "mountains")?)
        .auto_execute_tools(true)
        // Limits for all three agents together.
        .max_run_tokens(20_000)
        .max_tool_calls(10)
        // Also called for the researchers, which have no callback themselves.
        .can_use_tool(|request| async move {
            let path = [&request.agents[..], &[request.tool_name]].concat();
            eprintln!("  allowed: {}", path.join(" > "));
            Permission::Allow
        })
        .build()?;
    let mut client = Client::new(options)?;

    terminal.prompt(PROMPT);
    client.send(PROMPT).await?;
    while let Some(event) = client.next_event().await? {
        match event {
            AgentEvent::Block(block) => terminal.block(&block),
            AgentEvent::Nested(nested) => show(&mut terminal, &nested),
            AgentEvent::TurnEnd(reason) => terminal.note(&format!("  finish reason: {reason}")),
            _ => {}
        }
    }
    Ok(())
}

fn researcher(model: &Model, subject: &str) -> Result<AgentTool> {
    let look_up = tool("look_up", "Looks something up")
        .param("what", "string")
        .category("read")
        .build(|args| async move {
            Ok(json!(match args["what"].as_str() {
                Some("longest river") => "the Volga, 3,531 km",
                Some("highest mountain") => "Mount Elbrus, 5,642 m",
                _ => "nothing found",
            }))
        });
    let options = model
        .options()
        .system_prompt(format!("You know all about {subject}."))
        .tool(look_up)
        .auto_execute_tools(true)
        .build()?;
    AgentTool::new(subject, format!("Answers questions about {subject}"), options)
}

/// Prints a researcher's event after its name. Both work in parallel, so it prints only complete answers.
fn show(terminal: &mut Terminal, nested: &NestedEvent) {
    let agent = &nested.agent;
    match &nested.event {
        AgentEvent::Block(ContentBlock::ToolUse(call)) => {
            terminal.note(&format!("  [{agent}] calls {} {}", call.name, call.input));
        }
        AgentEvent::AnswerEnd(message) if !message.text().is_empty() => {
            terminal.note(&format!("  [{agent}] says: {}", message.text()));
        }
        AgentEvent::TurnEnd(reason) => terminal.note(&format!("  [{agent}] is done: {reason}")),
        _ => {}
    }
}

/// The stand-in without a model, for all three agents.
fn stand_in(chat: &Chat<'_>) -> Reply {
    let prompt = |words: &str| json!({ "prompt": words });
    if chat.has_tool("rivers") {
        return match (chat.result("rivers"), chat.result("mountains")) {
            (Some(river), Some(mountain)) => Reply::text(format!(
                "Europe's longest river is {}, and its highest mountain {}.",
                river.as_str().unwrap_or_default(),
                mountain.as_str().unwrap_or_default(),
            )),
            _ => Reply::text("I ask both.")
                .call("rivers", prompt("Which river is the longest?"))
                .call("mountains", prompt("Which mountain is the highest?")),
        };
    }
    match chat.result("look_up") {
        Some(found) => Reply::text(found.as_str().unwrap_or_default()),
        None if chat.system().contains("rivers") => {
            Reply::new().call("look_up", json!({ "what": "longest river" }))
        }
        None => Reply::new().call("look_up", json!({ "what": "highest mountain" })),
    }
}
