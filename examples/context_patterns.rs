//! Four ways to handle a context that is too small for the whole conversation. Nothing is dropped unless the
//! program asks for it.
//!
//!     cargo run --example context_patterns

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{
    AgentOptionsBuilder, Client, Compaction, ContextPolicy, FnTool, Overflow, estimate_tokens,
    is_approaching_limit, json, query, tool, truncate_messages,
};

const QUESTIONS: [&str; 4] = [
    "My name is Ada. Tell me about bees.",
    "Tell me about wasps.",
    "Tell me about ants.",
    "What is my name?",
];
/// Small, so that it fills up quickly.
const CONTEXT: usize = 400;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("context_patterns.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    stateless(&mut terminal, model.options()).await?;
    truncation(&mut terminal, model.options()).await?;
    budget(&mut terminal, model.options()).await?;
    external_memory(&mut terminal, model.options()).await
}

/// Sends each question on its own: the context does not grow, and the model remembers nothing.
async fn stateless(
    terminal: &mut Terminal,
    options: AgentOptionsBuilder,
) -> Result<(), Box<dyn Error>> {
    terminal.title("Stateless");
    let options = options.build()?;
    for question in [QUESTIONS[0], QUESTIONS[3]] {
        terminal.prompt(question);
        terminal.line(&query(question, &options).await?.text().await?);
    }
    Ok(())
}

/// Keeps the last exchanges, up to a number of messages, and drops earlier ones.
async fn truncation(
    terminal: &mut Terminal,
    options: AgentOptionsBuilder,
) -> Result<(), Box<dyn Error>> {
    terminal.title("Truncation");
    let mut client = Client::new(options.build()?)?;
    for question in QUESTIONS {
        if is_approaching_limit(client.history(), CONTEXT, 0.5) {
            let before = client.history().len();
            // Whole exchanges, so that no call loses its result.
            let kept = truncate_messages(client.history(), 2, true);
            *client.history_mut() = kept;
            terminal.line(&format!("  {before} messages became {}.", client.history().len()));
        }
        terminal.prompt(question);
        terminal.line(&client.ask(question).await?.text);
    }
    Ok(())
}

/// Lets a policy decide when the conversation is too long. A model summarizes the dropped messages.
async fn budget(
    terminal: &mut Terminal,
    options: AgentOptionsBuilder,
) -> Result<(), Box<dyn Error>> {
    terminal.title("Budget");
    let policy = ContextPolicy::new(CONTEXT).with_trigger(0.6).with_overflow(Overflow::Summarize);
    let mut client = Client::new(options.build()?)?;
    for question in QUESTIONS {
        let before = estimate_tokens(client.history());
        if let Compaction::Summarized { messages, .. } = client.compact(&policy).await? {
            let now = estimate_tokens(client.history());
            terminal.line(&format!(
                "  A summary replaced {messages} messages: {before} tokens became {now}."
            ));
        }
        terminal.prompt(question);
        terminal.line(&client.ask(question).await?.text);
    }
    Ok(())
}

/// Stores important facts outside the conversation with tools, so the conversation can be cleared.
async fn external_memory(
    terminal: &mut Terminal,
    options: AgentOptionsBuilder,
) -> Result<(), Box<dyn Error>> {
    terminal.title("External memory");
    let notes = Notes::default();
    let options = options
        .system_prompt("Write down what you learn of the user, and look it up when asked.")
        .tools([remember(), recall()])
        .state(notes.clone())
        .auto_execute_tools(true);
    let mut client = Client::new(options.build()?)?;
    for question in [QUESTIONS[0], QUESTIONS[3]] {
        terminal.prompt(question);
        client.send(question).await?;
        while let Some(block) = client.receive().await? {
            terminal.block(&block);
        }
        client.clear_history();
    }
    terminal
        .line(&format!("  Notes: {:?}", notes.0.lock().unwrap_or_else(PoisonError::into_inner)));
    Ok(())
}

/// A real program would use a file, a database or a search index.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<BTreeMap<String, String>>>);

fn remember() -> FnTool {
    let builder = tool("remember", "Writes a note").param("key", "string").param("note", "string");
    builder.build_with_context(|args, cx| async move {
        let notes = cx.state::<Notes>().ok_or("there is no notebook")?;
        let argument = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
        let mut notes = notes.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.insert(argument("key"), argument("note"));
        Ok(json!("written down"))
    })
}

fn recall() -> FnTool {
    tool("recall", "Reads a note").param("key", "string").build_with_context(
        |args, cx| async move {
            let notes = cx.state::<Notes>().ok_or("there is no notebook")?;
            let notes = notes.0.lock().unwrap_or_else(PoisonError::into_inner);
            let note = notes.get(args["key"].as_str().unwrap_or_default());
            Ok(json!(note.ok_or("there is no such note")?))
        },
    )
}

/// The stand-in without a model: it knows only what is in the conversation.
fn stand_in(chat: &Chat<'_>) -> Reply {
    let prompt = chat.prompt();
    if prompt.starts_with("Summarize") {
        return Reply::text("The user's name is Ada. They asked about insects.");
    }
    let asks_name = prompt.ends_with("What is my name?");
    if let Some(call) = chat.calls().last() {
        return match (&call.result, asks_name) {
            (Ok(note), true) => {
                Reply::text(format!("Your name is {}.", note.as_str().unwrap_or("a secret")))
            }
            (Ok(_), false) => Reply::text("I have written that down."),
            (Err(error), _) => Reply::text(format!("That did not work: {error}.")),
        };
    }
    if chat.has_tool("recall") {
        return match asks_name {
            true => Reply::new().call("recall", json!({ "key": "name" })),
            false => Reply::new().call("remember", json!({ "key": "name", "note": "Ada" })),
        };
    }
    if asks_name {
        let is_known = chat.prompts().any(|prompt| prompt.contains("Ada"));
        return Reply::text(if is_known { "Your name is Ada." } else { "I do not know." });
    }
    Reply::text("They have six legs, and live in states of many thousands. ".repeat(8).trim_end())
}
