//! The implementation of the commands.

use oa_markdown::{Line, Span, Style, wrap};
use open_agent::session::{ErrorKind, NewSession, SavedSession, SessionId, Timestamp};
use open_agent::{Doctor, Message, MessageRole, Probe, estimate_tokens, list_models};
use tokio::runtime::Runtime;

use super::command::{COMMANDS, Command, KEYS};
use super::conversation::{Conversation, client, known_turns};
use super::history::{overview, said};
use super::terminal::Terminal;
use super::view::one_line;
use crate::agent::{thinking, thinking_word};
use crate::failure::{Failure, Result};
use crate::figure::{counted, grouped};
use crate::output::columns;
use crate::places;
use crate::sessions::Sessions;

/// The remark if the conversation is empty.
const EMPTY: &str = "The conversation is empty.";
/// The remark if there is no last prompt.
pub(super) const NO_PROMPT: &str = "The conversation has no prompt.";
/// The columns of the names in a list.
const NAME: usize = 17;
/// The most sessions in the list of `/load`.
const LISTED: usize = 20;
/// The most characters of a tool's description.
const ABOUT: usize = 300;

/// Prints the greeting: tools, session, and failed MCP servers.
pub(super) fn greet(conversation: &Conversation, terminal: &mut Terminal) {
    let mut about = Vec::new();
    let tools = conversation.client.options().next_tools().len();
    if tools > 0 {
        about.push(counted(tools as u64, "tool"));
    }
    if let Some(saved) = &conversation.saved {
        let info = &saved.session().info;
        let messages = counted(info.message_count as u64, "message");
        about.push(format!("session {}, {messages}", info.id));
    }
    about.push("/help lists the commands".to_owned());
    terminal.say(&about.join(" · "));
    if !conversation.attached.is_empty() {
        terminal.say(&conversation.list_attached());
    }
    #[cfg(feature = "mcp")]
    for failure in conversation.agent.mcp.iter().flat_map(|mcp| mcp.failures()) {
        terminal.fail(&format!("MCP server {}", failure.error()));
    }
}

/// A remark of a command.
enum Remark {
    Failure(String),
    Lines(Vec<Line>),
    Text(String),
}

/// Runs a command and prints its outcome. Ctrl-C stops it.
pub(super) fn perform(
    runtime: &Runtime,
    conversation: &mut Conversation,
    command: Command,
    terminal: &mut Terminal,
) -> Result<()> {
    if command == Command::Undo && undo_late(conversation, terminal)? {
        return Ok(());
    }
    let attaches = matches!(command, Command::Attach(_));
    let mut remarks = Vec::new();
    let work = run(conversation, command, &mut remarks);
    let done = runtime.block_on(terminal.wait("working", work))?;
    for remark in remarks {
        match remark {
            Remark::Failure(why) => terminal.fail(&why),
            Remark::Lines(lines) => terminal.print_lines(lines),
            Remark::Text(text) => terminal.say(&text),
        }
    }
    match done {
        None => terminal.say("stopped"),
        Some(Err(failure)) => terminal.fail(&failure.to_string()),
        Some(Ok(())) => return Ok(()),
    }
    if attaches {
        terminal.hold_ahead();
    }
    Ok(())
}

/// Removes the last message that waits for the next prompt. Returns false if there is none.
fn undo_late(conversation: &mut Conversation, terminal: &mut Terminal) -> Result<bool> {
    let mut late = conversation.client.take_steered();
    let Some(last) = late.pop() else { return Ok(false) };
    terminal.late.pop();
    conversation.send_late(late)?;
    terminal.say(&removed(&last));
    Ok(true)
}

fn removed(message: &Message) -> String {
    format!("Removed: {}", said(message))
}

/// # Cancel safety
///
/// If the future is dropped, a session may have been created without messages, and a change may not be saved.
async fn run(
    conversation: &mut Conversation,
    command: Command,
    remarks: &mut Vec<Remark>,
) -> Result<()> {
    let mut say = |text: String| remarks.push(Remark::Text(text));
    match command {
        Command::Attach(line) => {
            match line {
                Some(none) if none == "none" => conversation.attached.clear(),
                Some(line) => conversation.attach(line).await?,
                None => {}
            }
            say(conversation.list_attached());
        }
        Command::Clear => {
            conversation.client.clear_history();
            (conversation.unanswered, conversation.turns) = (None, Vec::new());
            conversation.save().await?;
            conversation.keep_turns().await;
            say(EMPTY.to_owned());
        }
        Command::Context => say(conversation.context().await),
        Command::Help => remarks.push(Remark::Lines(help())),
        Command::History if conversation.client.history().is_empty() => {
            say(EMPTY.to_owned());
        }
        Command::History => {
            remarks.push(Remark::Lines(overview(conversation.client.history(), columns())));
        }
        Command::Load(None) => conversation.show_sessions(remarks).await?,
        Command::Load(Some(name)) => {
            conversation.load(&name).await?;
            let messages = conversation.client.history();
            remarks.push(Remark::Lines(overview(messages, columns())));
            let count = counted(messages.len() as u64, "message");
            remarks.push(Remark::Text(format!("Session {name}, {count}.")));
        }
        Command::Mcp => conversation.show_mcp(remarks),
        Command::Mode(None) => say(format!("The mode is {}.", conversation.mode)),
        Command::Mode(Some(word)) => {
            let why = || Failure::new(format!("unknown mode {word}: use ask, reads, all or plan"));
            let mode = conversation.agent.mode.set(&word).ok_or_else(why)?;
            conversation.client.set_permission_mode(mode)?;
            say(format!("The mode is {word}."));
            conversation.mode = word;
        }
        Command::Model(None) => remarks.push(conversation.models().await?),
        Command::Model(Some(name)) => {
            conversation.client.set_model(&name)?;
            say(format!("The model is {name}."));
        }
        // They start a turn or end the program, which `converse` does.
        Command::Quit | Command::Retry => {}
        Command::Save(name) => {
            conversation.keep_as(&name).await?;
            say(format!("Saved as {name}, now and after every answer."));
        }
        Command::System(None) => {
            let system = conversation.client.options().system_prompt().unwrap_or("none");
            say(format!("The system prompt: {system}"));
        }
        Command::System(Some(text)) => {
            let is_none = text == "none";
            conversation.client.set_system_prompt(if is_none { String::new() } else { text })?;
            let done = if is_none { "removed" } else { "set" };
            say(format!("The system prompt is {done}."));
        }
        Command::Thinking(None) => {
            let thinking = conversation.client.options().thinking();
            say(format!("Thinking: {}", thinking.map_or("up to the model", thinking_word)));
        }
        Command::Thinking(Some(word)) => {
            conversation.client.set_thinking(thinking(&word))?;
            say(format!("Thinking: {word}"));
        }
        Command::Tools => {
            let lines = conversation.tools();
            if lines.is_empty() {
                say("There are no tools; add some with --tools files:DIR or --mcp FILE.".to_owned());
            } else {
                remarks.push(Remark::Lines(lines));
            }
        }
        Command::Undo => {
            let taken = conversation.take_last().await?;
            taken.iter().map(removed).for_each(&mut say);
            if taken.is_empty() {
                say(NO_PROMPT.to_owned());
            }
        }
    }
    Ok(())
}

fn help() -> Vec<Line> {
    let commands = COMMANDS.iter().map(|(name, argument, about)| {
        let command = format!("/{name} {argument}");
        (command.trim_end().to_owned(), *about)
    });
    let keys = KEYS.iter().map(|(key, about)| ((*key).to_owned(), *about));
    let mut lines = rows(commands);
    lines.push(Line::default());
    lines.extend(rows(keys));
    lines
}

/// Returns rows with a name and a description, which is wrapped beside the name.
fn rows<'a>(rows: impl Iterator<Item = (String, &'a str)>) -> Vec<Line> {
    let width = columns();
    // A narrow terminal has no room for a column of names.
    let (fill, beside) = if width > 3 * NAME { (NAME - 1, NAME) } else { (0, 2) };
    let indent = [Span::new(&" ".repeat(beside), Style::PLAIN)];
    let mut lines = Vec::new();
    for (name, about) in rows {
        let first = [Span::visible(&format!("{name:<fill$} "), Style::PLAIN)];
        lines.extend(wrap(&[Span::visible(about, Style::DIMMED)], &first, &indent, width));
    }
    lines
}

impl Conversation {
    async fn save(&mut self) -> Result<()> {
        if let Some(saved) = &mut self.saved {
            saved.save_waiting_now(self.client.history()).await?;
        }
        Ok(())
    }

    /// Removes the last prompt from the conversation, with all that followed. Returns it, and the messages that were sent
    /// with it; nothing if there is none.
    pub(super) async fn take_last(&mut self) -> Result<Vec<Message>> {
        // It is not in the conversation.
        if let Some(prompt) = self.unanswered.take() {
            return Ok(vec![prompt]);
        }
        let Some(index) = self.last_prompt() else { return Ok(Vec::new()) };
        self.turns.pop();
        let mut taken = self.client.history_mut().split_off(index);
        let is_sent = |message: &Message| message.role == MessageRole::User;
        taken.truncate(taken.iter().take_while(|message| is_sent(message)).count());
        self.unanswered = taken.first().cloned();
        // If saving fails or is stopped, the prompt can still be sent again.
        self.save().await?;
        self.unanswered = None;
        self.keep_turns().await;
        Ok(taken)
    }

    /// Sends messages along with the next prompt.
    pub(super) fn send_late(&self, messages: Vec<Message>) -> Result<()> {
        let steer = self.client.steer_handle();
        Ok(messages.into_iter().try_for_each(|message| steer.steer_message(message))?)
    }

    /// Saves the conversation under a new name.
    async fn keep_as(&mut self, name: &str) -> Result<()> {
        let id = SessionId::new(name)?;
        if self.saved.as_ref().is_some_and(|saved| saved.session().info.id == id) {
            return self.save().await;
        }
        let store = places::sessions(&self.settings)?;
        if let Err(error) = store.create(NewSession::new(id.clone(), Timestamp::now())).await {
            return Err(if error.kind() == ErrorKind::AlreadyExists {
                Failure::new(format!("session {name} already exists; /load {name} continues it"))
            } else {
                error.into()
            });
        }
        let mut saved = SavedSession::open(store, &id).await?;
        saved.save_waiting_now(self.client.history()).await?;
        self.saved = Some(saved);
        self.keep_turns().await;
        Ok(())
    }

    async fn load(&mut self, name: &str) -> Result<()> {
        let store = places::sessions(&self.settings)?;
        let saved = match SavedSession::open(store, &SessionId::new(name)?).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Failure::new(format!("session {name} does not exist")));
            }
            opened => opened?,
        };
        let loaded = client(self.client.options().clone(), Some(&saved))?;
        // What was typed too late for a turn is still sent with the next prompt.
        let late = std::mem::replace(&mut self.client, loaded).take_steered();
        self.send_late(late)?;
        (self.unanswered, self.turns) = (None, known_turns(&saved));
        self.saved = Some(saved);
        Ok(())
    }

    async fn show_sessions(&self, remarks: &mut Vec<Remark>) -> Result<()> {
        let sessions = Sessions::of(&*places::sessions(&self.settings)?).await?;
        let rows: Vec<_> = sessions.rows().take(LISTED).collect();
        let more = sessions.readable.len() - rows.len();
        let lines = rows.iter().map(|row| Line::new(row, Style::PLAIN));
        remarks.push(Remark::Lines(lines.collect()));
        remarks.extend(sessions.unreadable.into_iter().map(Remark::Failure));
        match (rows.len(), more) {
            (0, _) => {
                let text = "There are no sessions. /save NAME saves this conversation.";
                remarks.push(Remark::Text(text.to_owned()));
            }
            (_, 0) => {}
            _ => remarks.push(Remark::Text(format!("And {more} more: `oa sessions` lists all."))),
        }
        Ok(())
    }

    fn tools(&self) -> Vec<Line> {
        let indent = [Span::new("  ", Style::PLAIN)];
        let tools = self.client.options().next_tools();
        let lines = tools.iter().flat_map(|tool| {
            let kind = tool.category().unwrap_or("other");
            // The descriptions of MCP servers often have several lines.
            let about = format!("  {kind}  {}", one_line(tool.description(), ABOUT));
            let name = Span::visible(tool.name(), Style::PLAIN.bold());
            wrap(&[name, Span::visible(&about, Style::DIMMED)], &[], &indent, columns())
        });
        lines.collect()
    }

    async fn models(&self) -> Result<Remark> {
        let current = self.client.options().model();
        if self.agent.server.is_none() {
            return Ok(Remark::Text(format!("The model is {current}, the only one.")));
        }
        let models = list_models(self.client.options()).await?;
        if models.is_empty() {
            return Ok(Remark::Text("The server lists no models.".to_owned()));
        }
        let row = |model: &String| {
            let (sign, style) =
                if model == current { ("* ", Style::PLAIN.bold()) } else { ("  ", Style::PLAIN) };
            Line::new(sign, style).and(model, style)
        };
        Ok(Remark::Lines(models.iter().map(row).collect()))
    }

    /// Describes how full the context is.
    async fn context(&self) -> String {
        let options = self.client.options();
        let history = estimate_tokens(self.client.history()) as u64;
        let system = options.system_prompt().map_or(0, |text| text.len().div_ceil(4) as u64);
        let tools: usize = options
            .next_tools()
            .iter()
            .map(|tool| tool.description().len() + tool.input_schema().to_string().len())
            .sum();
        let tools = tools.div_ceil(4) as u64;
        let mut text = format!(
            "About {} tokens: {} in {}, {} in the system prompt, {} in the tools.",
            grouped(history + system + tools),
            grouped(history),
            counted(self.client.history().len() as u64, "message"),
            grouped(system),
            grouped(tools),
        );
        if let Some(total) = self.client.usage().and_then(|usage| usage.total()) {
            text.push_str(&format!(" The server last counted {}.", grouped(total)));
        }
        let size = match self.settings.integer("context") {
            Some(size) => Some(size),
            None if self.agent.server.is_some() => self.context_of_server().await,
            None => None,
        };
        match size {
            Some(size) => text.push_str(&format!(" The context size is {}.", grouped(size))),
            None => text.push_str(" The context size is unknown; set `context`."),
        }
        text
    }

    async fn context_of_server(&self) -> Option<u64> {
        let doctor = Doctor::new(self.client.options()).ok()?.only([Probe::Reach, Probe::Context]);
        doctor.examine().await.profile.context_tokens
    }

    #[cfg(feature = "mcp")]
    fn show_mcp(&self, remarks: &mut Vec<Remark>) {
        let Some(mcp) = &self.agent.mcp else {
            return remarks.push(Remark::Text(
                "There are no MCP servers; add some with --mcp FILE.".to_owned(),
            ));
        };
        for connection in mcp.connections() {
            let prefix = format!("{}__", connection.name());
            let tools = mcp.tools();
            let count = tools.iter().filter(|tool| tool.name().starts_with(&prefix)).count();
            let count = counted(count as u64, "tool");
            remarks.push(Remark::Text(format!("{}: {count}", connection.name())));
            let warnings = connection.warnings();
            remarks.extend(warnings.iter().map(|why| Remark::Text(format!("  {why}"))));
        }
        let failures = mcp.failures().iter();
        remarks.extend(failures.map(|failure| Remark::Failure(failure.error().to_string())));
    }

    #[cfg(not(feature = "mcp"))]
    fn show_mcp(&self, remarks: &mut Vec<Remark>) {
        remarks.push(Remark::Text("This program was built without MCP.".to_owned()));
    }
}
