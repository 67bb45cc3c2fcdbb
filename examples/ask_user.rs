//! An external tool: a person, a browser or another process answers its calls, and no task here waits for them. The
//! turn ends with the question, and a later program continues it with the answer.
//!
//!     cargo run --example ask_user

use std::error::Error;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{AgentOptions, Client, FinishReason, Message, Result, json, tool};

const PROMPT: &str = "Book a table for tonight.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("ask_user.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let ask_user =
        tool("ask_user", "Asks the user a question").param("question", "string").external();
    let book = tool("book", "Books a table")
        .param("people", "integer")
        .build(|args| async move { Ok(json!(format!("a table for {}", args["people"]))) });
    let options = model
        .options()
        .system_prompt("You book tables. Ask the user for whatever you do not know.")
        .tool(ask_user)
        .tool(book)
        .auto_execute_tools(true)
        .build()?;

    terminal.prompt(PROMPT);
    let stored = question(&options, &mut terminal).await?;
    terminal.note("  The conversation is stored. The program could exit here.");
    let messages: Vec<Message> = serde_json::from_str(&stored)?;
    answer(options, messages, &mut terminal).await?;
    Ok(())
}

/// Runs the first program, which ends with the question.
async fn question(
    options: &AgentOptions,
    terminal: &mut Terminal,
) -> Result<String, Box<dyn Error>> {
    let mut client = Client::new(options.clone())?;
    client.send(PROMPT).await?;
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
    }
    if client.finish_reason() == Some(&FinishReason::WaitsForResults) {
        for call in client.pending_calls() {
            terminal.note(&format!("  {} asks: {}", call.id, call.input["question"]));
        }
    }
    Ok(serde_json::to_string(client.history())?)
}

/// Runs the second program, once the answer has arrived.
async fn answer(
    options: AgentOptions,
    messages: Vec<Message>,
    terminal: &mut Terminal,
) -> Result<()> {
    let mut client = Client::resume(options, messages)?;
    for call in client.pending_calls() {
        client.add_tool_result(&call.id, json!("There are four of us."))?;
    }
    client.continue_turn().await?;
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
    }
    terminal.end_line();
    Ok(())
}

/// The stand-in without a model: it asks, books, and reports.
fn stand_in(chat: &Chat<'_>) -> Reply {
    match chat.calls().count() {
        0 => Reply::new().call("ask_user", json!({ "question": "For how many people?" })),
        1 => Reply::new().call("book", json!({ "people": 4 })),
        _ => Reply::text("Booked: a table for four."),
    }
}
