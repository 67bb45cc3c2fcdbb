//! A conversation that outlives the program: each run continues where the last one stopped, even in the middle
//! of a turn. Reading is allowed; writing a note needs permission, which is given in a later run.
//!
//!     cargo run --example sessions -- "My name is Ada. Write down: the ferry leaves at 10:05."
//!     cargo run --example sessions -- --approve        (or --deny "I will remember it")
//!     cargo run --example sessions -- "What did you write down, and what is my name?"
//!
//! The conversation and notes are stored in a folder in the temporary directory; `--in FOLDER` names another one.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::session::{JsonlStore, NewSession, SavedSession};
use open_agent::{Client, FnTool, PermissionMode, json, tool};

const FIRST: &str = "My name is Ada. Write down: the ferry leaves at 10:05.";
const LATER: &str = "What did you write down, and what is my name?";

/// The file with the notes.
struct Notes(PathBuf);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::read(include_str!("sessions.rs"));
    let usual = || std::env::temp_dir().join("open-agent-sessions");
    let folder = arguments.value("--in")?.map_or_else(usual, PathBuf::from);
    let (approve, deny) = (arguments.flag("--approve"), arguments.flag("--deny"));
    let words = arguments.words()?;

    let store = Arc::new(JsonlStore::open(&folder)?);
    let session = NewSession::now("notebook")?;
    let mut saved = SavedSession::open_or_create(store, session).await?;

    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let options = model
        .options()
        .system_prompt("You keep a notebook for the user. Write down only what you are told to.")
        .tools([read_notes(), add_note()])
        .state(Notes(folder.join("notes.txt")))
        .auto_execute_tools(true)
        // Tools in category `read` run. Others need permission, and without a callback to ask, they wait.
        .permission_mode(PermissionMode::AllowReads)
        .build()?;
    // A conversation may end with waiting calls.
    let messages = saved.session().conversation();
    terminal.note(&format!("  {} messages saved in {}.", messages.len(), folder.display()));
    let is_new = messages.is_empty();
    let mut client = Client::resume(options, messages)?;

    let waiting = client.pending_approvals();
    if approve || deny {
        for call in &waiting {
            match approve {
                true => client.approve(&call.id)?,
                false if words.is_empty() => client.deny(&call.id, "the user said no")?,
                false => client.deny(&call.id, &words)?,
            }
        }
        if waiting.is_empty() {
            return Err("no call is waiting for permission".into());
        }
        client.continue_turn().await?;
    } else if !words.is_empty() || waiting.is_empty() {
        let prompt = match (words.as_str(), is_new) {
            ("", true) => FIRST,
            ("", false) => LATER,
            (words, _) => words,
        };
        terminal.prompt(prompt);
        // Waiting calls get the result that they were not run.
        client.send(prompt).await?;
    }
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
    }

    // Saves the complete turns, and the waiting turn separately. If the program is killed before this, it asks again.
    saved.save_waiting_now(client.history()).await?;
    terminal.gap();
    for call in client.pending_approvals() {
        terminal.line(&format!("{} {} is waiting for permission.", call.name, call.input));
        terminal.line("Run this again with --approve, or with --deny and a reason.");
    }
    terminal.note(&format!("  {} messages saved.", client.history().len()));
    Ok(())
}

fn read_notes() -> FnTool {
    tool("read_notes", "Reads all notes").category("read").build_blocking_with_context(|_, cx| {
        let Notes(path) = cx.state().ok_or("there is no notebook")?;
        match fs::read_to_string(path) {
            Ok(notes) => Ok(json!(notes.lines().collect::<Vec<_>>())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(json!([])),
            Err(error) => Err(error.into()),
        }
    })
}

fn add_note() -> FnTool {
    tool("add_note", "Adds a note of one line").param("text", "string").build_blocking_with_context(
        |args, cx| {
            let Notes(path) = cx.state().ok_or("there is no notebook")?;
            let words = args["text"].as_str().unwrap_or_default().split_whitespace();
            let line = words.collect::<Vec<_>>().join(" ");
            let mut file = OpenOptions::new().create(true).append(true).open(path)?;
            writeln!(file, "{line}")?;
            Ok(json!("written down"))
        },
    )
}

/// The stand-in without a model. It knows only what is in the conversation.
fn stand_in(chat: &Chat<'_>) -> Reply {
    if let Some(call) = chat.calls().last() {
        return match (call.name, call.result) {
            ("read_notes", Ok(notes)) => {
                let notes = notes.as_array().into_iter().flatten().filter_map(|note| note.as_str());
                let notes: Vec<_> = notes.map(|note| format!("\"{note}\"")).collect();
                let notes = if notes.is_empty() { "nothing".to_owned() } else { notes.join(", ") };
                let mut names = chat.prompts().filter_map(|prompt| behind(prompt, "name is "));
                let name = names.next_back().unwrap_or("unknown to me");
                Reply::text(format!("Your notes: {notes}. Your name is {name}."))
            }
            (_, Ok(result)) => Reply::text(format!("Done: {}.", result.as_str().unwrap_or("ok"))),
            (_, Err(error)) => Reply::text(format!("It is not in the notebook: {error}.")),
        };
    }
    let prompt = chat.prompt();
    match behind(prompt, "rite down: ") {
        Some(note) => Reply::text("I write that down.").call("add_note", json!({ "text": note })),
        None if prompt.contains("name is ") => Reply::text("I shall remember it."),
        None => Reply::text("I look it up.").call("read_notes", json!({})),
    }
}

/// Returns the rest of the sentence after these words.
fn behind<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(words)?;
    rest.split(['.', '?', '!']).next().filter(|rest| !rest.is_empty())
}
