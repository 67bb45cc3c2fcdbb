//! A turn that is much longer than the context: old results are cleared, old steps are summarized, and the model reads
//! the rest of a result that was too long.
//!
//!     cargo run --example long_run

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{
    AgentEvent, AgentOptionsBuilder, Client, ContextPolicy, ContextShortened, Overflow, json, tool,
};

/// Much smaller than all pages together.
const CONTEXT: usize = 2_000;
const PAGES: u64 = 60;
const PROMPT: &str = "Read the whole log, and say how often the door opened.";
const QUESTION: &str = "How loud was it at noon?";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("long_run.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    many_pages(&mut terminal, model.options()).await?;
    one_long_result(&mut terminal, model.options()).await
}

/// Reads many pages, each of which takes more than a tenth of the context.
async fn many_pages(
    terminal: &mut Terminal,
    options: AgentOptionsBuilder,
) -> Result<(), Box<dyn Error>> {
    let read = tool("read", "Reads a page of the log, from 1 to 60")
        .param("page", "integer")
        .build(|input| async move {
            let noise = "The wind blew. ".repeat(60);
            Ok(json!(format!("Page {}: the door opened. {noise}", input["page"])))
        });
    let archived = Arc::new(AtomicUsize::new(0));
    let archive = Arc::clone(&archived);
    let options = options
        .tool(read)
        .auto_execute_tools(true)
        .max_tool_iterations(100)
        .context(ContextPolicy::new(CONTEXT).with_overflow(Overflow::Summarize))
        // Receives all messages that leave the conversation, in full, to store them in a file or a database.
        .archive_context(move |messages| {
            archive.fetch_add(messages.len(), Ordering::Relaxed);
            std::future::ready(())
        });
    let mut client = Client::new(options.build()?)?;

    terminal.prompt(PROMPT);
    client.send(PROMPT).await?;
    let mut largest = 0;
    while let Some(event) = client.next_event().await? {
        match event {
            AgentEvent::ContextShortened(event) => {
                largest = largest.max(event.before);
                terminal.note(&line(&event));
            }
            AgentEvent::TurnEnd(_) => {
                let last = client.history().last();
                terminal.line(&last.map(|last| last.text()).unwrap_or_default());
            }
            _ => {}
        }
    }
    let archived = archived.load(Ordering::Relaxed);
    terminal
        .note(&format!("  never more than {largest} tokens; {archived} messages were archived"));
    Ok(())
}

fn line(event: &ContextShortened) -> String {
    let ContextShortened { before, after, how, .. } = event;
    let mut line =
        format!("  {before} tokens became {after}; tool results cleared: {}", how.results_cleared);
    if how.messages_summarized > 0 {
        line += &format!("; {} messages became a summary", how.messages_summarized);
    }
    line
}

/// Runs a tool with a long result. The model sees the beginning and searches the rest.
async fn one_long_result(
    terminal: &mut Terminal,
    options: AgentOptionsBuilder,
) -> Result<(), Box<dyn Error>> {
    let measure =
        tool("measure", "Returns the noise of the day, minute by minute").build(|_| async {
            let minute = |minute: u32| {
                format!("{:02}:{:02} {} dB\n", minute / 60, minute % 60, 30 + minute * 7 % 60)
            };
            Ok(json!((0..24 * 60).map(minute).collect::<String>()))
        });
    let options = options.tool(measure).auto_execute_tools(true).offer_full_results(true);
    let mut client = Client::new(options.build()?)?;
    terminal.prompt(QUESTION);
    client.send(QUESTION).await?;
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
    }
    terminal.end_line();
    Ok(())
}

/// The stand-in without a model. It reads one page after the other.
fn stand_in(chat: &Chat<'_>) -> Reply {
    if chat.prompts().any(|prompt| prompt.starts_with("Summarize")) {
        return Reply::text("The door opened on each page so far.");
    }
    if chat.has_tool("measure") {
        let results = chat.calls().count();
        return match results {
            0 => Reply::new().call_with_id("day", "measure", json!({})),
            1 => Reply::new().call("read_result", json!({ "id": "day", "search": "12:00" })),
            _ => Reply::text("At noon it was 30 dB loud."),
        };
    }
    let pages = chat.calls().filter_map(|call| call.input["page"].as_u64());
    let page = pages.max().unwrap_or_default() + 1;
    if page > PAGES {
        return Reply::text("The door opened 60 times.");
    }
    Reply::new().call_with_id(format!("call_{page}"), "read", json!({ "page": page }))
}
