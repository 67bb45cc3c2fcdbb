//! The work of the commands.

use open_agent::session::{ErrorKind, NewSession, SavedSession, SessionId, Timestamp};
use open_agent::{Client, Doctor, Probe, estimate_tokens, list_models};

use super::command::{COMMANDS, Command};
use super::conversation::Conversation;
use super::figure::grouped;
use super::history::overview;
use super::turn::Terminal;
use crate::failure::{Failure, Result};
use crate::places;
use crate::style::{Line, Style, excerpt};

/// Says what there is at the beginning.
pub(super) fn greet(conversation: &Conversation, terminal: &mut Terminal) {
    let mut about = Vec::new();
    let tools = conversation.client.options().tools().len();
    if tools > 0 {
        about.push(format!("{tools} tools"));
    }
    if let Some(saved) = &conversation.saved {
        let info = &saved.session().info;
        about.push(format!("session {}, {} messages", info.id, info.message_count));
    }
    about.push("/help lists the commands".to_owned());
    terminal.say(&about.join(" · "));
    #[cfg(feature = "mcp")]
    for failure in conversation.agent.mcp.iter().flat_map(|mcp| mcp.failures()) {
        terminal.fail(&format!("MCP server {}: {}", failure.server(), failure.error()));
    }
}

/// Runs a command and prints its outcome.
pub(super) async fn run(
    conversation: &mut Conversation,
    command: Command,
    terminal: &mut Terminal,
) -> Result<()> {
    match command {
        Command::Clear => {
            conversation.client.clear_history();
            conversation.save().await?;
            terminal.say("The conversation is empty.");
        }
        Command::Context => terminal.say(&conversation.context().await),
        Command::Help => terminal.print_lines(help()),
        Command::History if conversation.client.history().is_empty() => {
            terminal.say("The conversation is empty.");
        }
        Command::History => terminal.print_lines(overview(conversation.client.history())),
        Command::Load(name) => {
            conversation.load(&name).await?;
            let messages = conversation.client.history();
            terminal.print_lines(overview(messages));
            terminal.say(&format!("Session {name}, {} messages.", messages.len()));
        }
        Command::Mcp => conversation.show_mcp(terminal),
        Command::Mode(None) => terminal.say(&format!("The mode is {}.", conversation.mode)),
        Command::Mode(Some(word)) => {
            let Some(mode) = conversation.agent.mode.set(&word) else {
                return Err(Failure::new(format!(
                    "there is no mode {word}: use ask, reads, all or plan"
                )));
            };
            conversation.client.set_permission_mode(mode)?;
            terminal.say(&format!("The mode is {word}."));
            conversation.mode = word;
        }
        Command::Model(None) => conversation.show_models(terminal).await?,
        Command::Model(Some(name)) => {
            conversation.client.set_model(&name)?;
            terminal.say(&format!("The model is {name}."));
        }
        Command::Quit => {}
        Command::Save(name) => {
            conversation.keep_as(&name).await?;
            terminal.say(&format!("Saved as {name}, now and after every answer."));
        }
        Command::System(None) => {
            let system = conversation.client.options().system_prompt().unwrap_or("none").to_owned();
            terminal.say(&format!("The system prompt: {system}"));
        }
        Command::System(Some(text)) => {
            let text = if text == "none" { String::new() } else { text };
            conversation.client.set_system_prompt(text)?;
            terminal.say("The system prompt is set.");
        }
        Command::Tools => {
            let lines = conversation.tools();
            if lines.is_empty() {
                terminal.say("There are no tools: --tools files:DIR, --mcp FILE.");
            }
            terminal.print_lines(lines);
        }
    }
    Ok(())
}

fn help() -> Vec<Line> {
    let row = |(name, argument, about): &(&str, &str, &str)| {
        let command = format!("/{name} {argument}");
        Line::new(&format!("{command:<16} "), Style::PLAIN).and(about, Style::DIMMED)
    };
    let keys = [
        ("Alt-Enter", "begins a new line; a pasted text may have several"),
        ("Ctrl-R", "searches the history"),
        ("Ctrl-C", "stops the answer; twice at an empty prompt ends the program"),
        ("typing", "while the model works sends it a message before its next step"),
    ];
    let keys = keys.map(|(key, about)| {
        Line::new(&format!("{key:<16} "), Style::PLAIN).and(about, Style::DIMMED)
    });
    COMMANDS.iter().map(row).chain(keys).collect()
}

impl Conversation {
    async fn save(&mut self) -> Result<()> {
        if let Some(saved) = &mut self.saved {
            saved.save_now(self.client.history()).await?;
        }
        Ok(())
    }

    /// Keeps the conversation under a name that is new.
    async fn keep_as(&mut self, name: &str) -> Result<()> {
        let id = SessionId::new(name)?;
        if self.saved.as_ref().is_some_and(|saved| saved.session().info.id == id) {
            return self.save().await;
        }
        let store = places::sessions(&self.settings)?;
        if let Err(error) = store.create(NewSession::new(id.clone(), Timestamp::now())).await {
            return Err(if error.kind() == ErrorKind::AlreadyExists {
                Failure::new(format!(
                    "there is a session {name} already; /load {name} goes on with it"
                ))
            } else {
                error.into()
            });
        }
        let mut saved = SavedSession::open(store, &id).await?;
        saved.save_now(self.client.history()).await?;
        self.saved = Some(saved);
        Ok(())
    }

    async fn load(&mut self, name: &str) -> Result<()> {
        let store = places::sessions(&self.settings)?;
        let saved = match SavedSession::open(store, &SessionId::new(name)?).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Failure::new(format!("there is no session {name}")));
            }
            opened => opened?,
        };
        let messages = saved.session().conversation();
        self.client = Client::with_history(self.client.options().clone(), messages)?;
        self.saved = Some(saved);
        Ok(())
    }

    fn tools(&self) -> Vec<Line> {
        let tools = self.client.options().tools();
        tools
            .iter()
            .map(|tool| {
                let kind = tool.category().unwrap_or("other").to_owned();
                let about = excerpt(tool.description(), 120).into_owned();
                Line::new(tool.name(), Style::PLAIN.bold())
                    .and(&format!("  {kind}  {about}"), Style::DIMMED)
            })
            .collect()
    }

    async fn show_models(&self, terminal: &mut Terminal) -> Result<()> {
        let current = self.client.options().model();
        if self.agent.server.is_none() {
            terminal.say(&format!("The model is {current}, and there is no other."));
            return Ok(());
        }
        let models = list_models(self.client.options()).await?;
        let row = |model: &String| {
            let (sign, style) =
                if model == current { ("* ", Style::PLAIN.bold()) } else { ("  ", Style::PLAIN) };
            Line::new(sign, style).and(model, style)
        };
        terminal.print_lines(models.iter().map(row).collect());
        Ok(())
    }

    /// Says how full the context is.
    async fn context(&self) -> String {
        let options = self.client.options();
        let history = estimate_tokens(self.client.history()) as u64;
        let system = options.system_prompt().map_or(0, |text| text.len().div_ceil(4) as u64);
        let tools: usize = options
            .tools()
            .iter()
            .map(|tool| tool.description().len() + tool.input_schema().to_string().len())
            .sum();
        let tools = tools.div_ceil(4) as u64;
        let mut text = format!(
            "About {} tokens: {} in {} messages, {} in the system prompt, {} in the tools.",
            grouped(history + system + tools),
            grouped(history),
            self.client.history().len(),
            grouped(system),
            grouped(tools),
        );
        if let Some(total) = self.client.usage().and_then(|usage| usage.total()) {
            text.push_str(&format!(" The server counted {} last time.", grouped(total)));
        }
        let size = match self.settings.integer("context") {
            Some(size) => Some(size),
            None if self.agent.server.is_some() => self.context_of_server().await,
            None => None,
        };
        match size {
            Some(size) => text.push_str(&format!(" The context has {}.", grouped(size))),
            None => text.push_str(" The size of the context is not known; set `context`."),
        }
        text
    }

    async fn context_of_server(&self) -> Option<u64> {
        let doctor = Doctor::new(self.client.options()).ok()?.only([Probe::Reach, Probe::Context]);
        doctor.examine().await.profile.context_tokens
    }

    #[cfg(feature = "mcp")]
    fn show_mcp(&self, terminal: &mut Terminal) {
        let Some(mcp) = &self.agent.mcp else {
            return terminal.say("There are no MCP servers: --mcp FILE.");
        };
        for connection in mcp.connections() {
            let prefix = format!("{}__", connection.name());
            let tools = self.client.options().tools();
            let count = tools.iter().filter(|tool| tool.name().starts_with(&prefix)).count();
            terminal.say(&format!("{}: {count} tools", connection.name()));
            for warning in connection.warnings() {
                terminal.say(&format!("  {warning}"));
            }
        }
        for failure in mcp.failures() {
            terminal.fail(&format!("{}: {}", failure.server(), failure.error()));
        }
    }

    #[cfg(not(feature = "mcp"))]
    fn show_mcp(&self, terminal: &mut Terminal) {
        terminal.say("This program was built without MCP.");
    }
}
