//! `oa chat`.

mod command;
mod commands;
mod composer;
mod history;
mod keys;
mod once;
mod person;
mod prompt;
mod screen;
mod turn;
mod view;

use std::io::{IsTerminal, stdin, stdout};

use open_agent::Client;
use open_agent::session::{NewSession, SavedSession, SessionId, Timestamp};

use self::person::Questions;
use self::prompt::{Line, PromptEditor};
use self::turn::Terminal;
use crate::agent::{self, Agent, Person};
use crate::args::ChatArgs;
use crate::failure::{Failure, Result};
use crate::places;
use crate::settings::Settings;

pub use self::command::{COMMANDS, Command, Entered, parse};
pub use self::composer::{Composer, Input};
pub use self::screen::Screen;
pub use self::view::View;

/// A conversation, and where it is kept.
#[derive(Debug)]
struct Conversation {
    client: Client,
    agent: Agent,
    saved: Option<SavedSession>,
    settings: Settings,
    mode: String,
}

/// Runs the command.
pub(crate) fn run(args: &ChatArgs, settings: Settings) -> Result<()> {
    // A worker beside this thread, which waits for keys: servers of tools go on meanwhile.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let has_terminal = stdin().is_terminal() && stdout().is_terminal();
    let result = if has_terminal && args.prompt.is_empty() {
        talk(&runtime, args, settings)
    } else {
        runtime.block_on(once::run(args, settings))
    };
    // A tool that blocks must not keep the program.
    runtime.shutdown_background();
    result
}

impl Conversation {
    async fn start(args: &ChatArgs, settings: Settings, person: Person) -> Result<Self> {
        let agent = agent::build(&settings, person).await?;
        let saved = match &args.session {
            Some(name) => Some(open_session(&settings, name).await?),
            None => None,
        };
        let messages = saved.as_ref().map(|saved| saved.session().conversation());
        let client = Client::with_history(agent.options.clone(), messages.unwrap_or_default())?;
        let mode = settings.text("mode").unwrap_or(agent::MODE).to_owned();
        Ok(Self { client, agent, saved, settings, mode })
    }

    /// Ends what belongs to the conversation: the programs of MCP servers.
    async fn close(self) {
        drop(self.client);
        #[cfg(feature = "mcp")]
        if let Some(mcp) = self.agent.mcp {
            mcp.close().await;
        }
    }

    /// Returns the name of the model and its server.
    fn title(&self) -> String {
        match &self.agent.server {
            Some(server) => format!("{} by {}", self.client.options().model(), server.name()),
            None => format!("{}, a few rules and no language model", self.client.options().model()),
        }
    }
}

async fn open_session(settings: &Settings, name: &str) -> Result<SavedSession> {
    let id = SessionId::new(name).map_err(|error| Failure::usage(error.to_string()))?;
    let store = places::sessions(settings)?;
    Ok(SavedSession::open_or_create(store, NewSession::new(id, Timestamp::now())).await?)
}

/// Talks until the person has enough.
fn talk(runtime: &tokio::runtime::Runtime, args: &ChatArgs, settings: Settings) -> Result<()> {
    let has_styles = crate::has_styles(&settings, stdout().is_terminal());
    let (questions, prompt) = Questions::new();
    runtime.spawn(turn::restore_at_termination());
    let mut conversation =
        runtime.block_on(Conversation::start(args, settings, Person::Terminal(prompt)))?;
    let mut terminal = Terminal::new(has_styles, questions);
    let mut editor = PromptEditor::new(has_styles);
    terminal.say(&conversation.title());
    commands::greet(&conversation, &mut terminal);
    loop {
        match editor.read(terminal.take_unsent())? {
            Line::Quit => break,
            Line::Entered(line) => match parse(&line) {
                Entered::Nothing => {}
                Entered::Unknown(why) => terminal.say(&why),
                Entered::Command(Command::Quit) => break,
                Entered::Command(command) => {
                    let done = commands::run(&mut conversation, command, &mut terminal);
                    if let Err(failure) = runtime.block_on(done) {
                        terminal.fail(&failure.to_string());
                    }
                }
                Entered::Prompt(prompt) => {
                    terminal.note_prompt(&prompt);
                    runtime.block_on(terminal.turn(&mut conversation, &prompt))?;
                }
            },
        }
    }
    runtime.block_on(conversation.close());
    Ok(())
}
