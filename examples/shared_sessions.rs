//! A conversation that two machines share through PostgreSQL: one starts it, the other continues it, and if both change
//! it at the same time, the later save reports a conflict.
//!
//!     cargo run --example shared_sessions --features session-postgres
//!     cargo run --example shared_sessions --features session-postgres -- --url postgresql://ada:secret@localhost/chats
//!
//! Without `--url`, it uses the database at `OPEN_AGENT_POSTGRES_URL`, or else starts a server for this program alone,
//! which needs Debian's package `postgresql`.

use std::error::Error;
use std::sync::Arc;

use examples::{Arguments, Chat, Database, Model, Terminal};
use oa_testkit::Reply;
use open_agent::session::{
    ErrorKind, List, NewSession, SavedSession, SessionId, SessionStore, Timestamp,
};
use open_agent::session_postgres::PostgresStore;
use open_agent::{AgentOptions, Client};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::read(include_str!("shared_sessions.rs"));
    let named = arguments.value("--url")?;
    let words = arguments.words()?;
    if !words.is_empty() {
        return Err(format!("unknown argument {words:?}; see --help").into());
    }
    let mut terminal = Terminal::new();
    // A server that is started for this program stops with it.
    let Some(database) = Database::find(named)? else {
        terminal.line("Skipped: no database. Install PostgreSQL, or name a server with --url.");
        return Ok(());
    };
    let url = database.url();
    let model = Model::find(&mut terminal, stand_in).await?;
    let options = model.options().system_prompt("You are brief.").build()?;

    // Like two programs on two machines: each has its own store, and they share nothing but the database.
    let here = Arc::new(PostgresStore::connect(url).await?);
    let there = Arc::new(PostgresStore::connect(url).await?);
    let now = Timestamp::now();
    let id = SessionId::new(format!("ferry {}", now.as_millis()))?;
    let session = NewSession::new(id.clone(), now).with_title("The ferry");
    let mut first = SavedSession::open_or_create(here.clone(), session).await?;

    terminal.line("Here:");
    let prompt = "The ferry leaves at 10:05. Remember it.";
    let history = answer(&mut terminal, &options, &first, prompt).await?;
    first.save_now(&history).await?;

    terminal.line("There:");
    let mut second = SavedSession::open(there.clone(), &id).await?;
    let history = answer(&mut terminal, &options, &second, "When does the ferry leave?").await?;
    second.save_now(&history).await?;

    terminal.line("Here, without the messages from there:");
    let history = answer(&mut terminal, &options, &first, "Is there another one?").await?;
    match first.save_now(&history).await {
        Err(error) if error.kind() == ErrorKind::Conflict => terminal.line(&format!("  {error}")),
        other => return Err(format!("a conflict was expected, not {other:?}").into()),
    }
    first.reload().await?;
    terminal.line(&format!("  Loaded again: {} messages.", first.session().messages.len()));

    for session in here.list(List::new(10)).await?.sessions {
        let title = session.title().unwrap_or("untitled");
        terminal.line(&format!("Stored: {title}, {} messages.", session.message_count));
    }
    there.delete(&id).await?;
    Ok(())
}

/// Asks, and returns the conversation with the answer.
async fn answer(
    terminal: &mut Terminal,
    options: &AgentOptions,
    saved: &SavedSession,
    prompt: &str,
) -> Result<Vec<open_agent::Message>, Box<dyn Error>> {
    let mut client = Client::resume(options.clone(), saved.session().conversation())?;
    terminal.prompt(prompt);
    client.send(prompt).await?;
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
    }
    terminal.gap();
    Ok(client.history().to_vec())
}

/// The stand-in without a model. It knows only what is in the conversation.
fn stand_in(chat: &Chat<'_>) -> Reply {
    let mut told = chat.prompts().filter_map(|prompt| {
        let (_, rest) = prompt.split_once("leaves at ")?;
        rest.split('.').next()
    });
    match (told.next_back(), chat.prompt()) {
        (Some(_), prompt) if prompt.contains("Remember") => Reply::text("I shall remember it."),
        (Some(time), prompt) if prompt.contains("When") => Reply::text(format!("At {time}.")),
        _ => Reply::text("I know of no other."),
    }
}
