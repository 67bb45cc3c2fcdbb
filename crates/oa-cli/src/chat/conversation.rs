//! A conversation, with its agent and its session.

use oa_files::Attachment;
use open_agent::session::{NewSession, SavedSession, SessionId, Timestamp};
use open_agent::{AgentOptions, Client, Message, MessageRole, TerminalPrompt, json};

use super::history;
use crate::agent::{self, Agent, Person};
use crate::args::ChatArgs;
use crate::failure::{Failure, Result};
use crate::places;
use crate::settings::Settings;

/// A conversation, with its settings, its agent, and the session that saves it.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) client: Client,
    pub(super) agent: Agent,
    pub(super) saved: Option<SavedSession>,
    pub(super) settings: Settings,
    pub(super) mode: String,
    /// The last prompt, if it is not in the history, because no answer to it had begun.
    pub(super) unanswered: Option<Message>,
    /// The known prompts in the history, each with the number of messages of its turn: those that were sent during a turn
    /// belong to it. The session keeps the numbers.
    pub(super) turns: Vec<(Message, usize)>,
    /// The person at the terminal, if there is one.
    pub(super) person: Option<TerminalPrompt>,
    /// The files that go with the next prompt. They stay until a prompt with them is in the history.
    pub(super) attached: Vec<Attachment>,
}

impl Conversation {
    pub(super) async fn start(
        args: &ChatArgs,
        settings: Settings,
        asked: Person,
        attached: Vec<Attachment>,
    ) -> Result<Self> {
        let person =
            if let Person::Terminal(prompt) = &asked { Some(prompt.clone()) } else { None };
        let agent = agent::build(&settings, asked).await?;
        let saved = match &args.session {
            Some(name) => Some(open_session(&settings, name).await?),
            None => None,
        };
        let client = client(agent.options.clone(), saved.as_ref())?;
        let mode = settings.text("mode").unwrap_or(agent::MODE).to_owned();
        let turns = saved.as_ref().map_or_else(Vec::new, known_turns);
        let unanswered = None;
        Ok(Self { client, agent, saved, settings, mode, unanswered, turns, person, attached })
    }

    /// Closes the conversation and stops its MCP servers.
    pub(super) async fn close(self) {
        drop(self.client);
        #[cfg(feature = "mcp")]
        if let Some(mcp) = self.agent.mcp {
            mcp.close().await;
        }
    }

    /// Records a turn.
    pub(super) async fn note_turn(&mut self, turn: TurnRecord) {
        let history = self.client.history();
        self.unanswered = None;
        // The turn of an earlier prompt went on.
        if let Some((_, size)) = self.turns.last_mut() {
            *size += turn.continued;
        }
        if let Some(prompt) = turn.prompt {
            let is_same = |at: &usize| history[*at] == prompt;
            let place = match turn.is_shortened {
                true => (0..history.len()).rev().filter(is_same).nth(turn.repeats),
                false => (history.len() > turn.before).then_some(turn.before),
            };
            match place {
                Some(place) => {
                    self.attached.retain(|file| !prompt.content.contains(file.block()));
                    self.turns.push((prompt, history.len() - place));
                }
                None => self.unanswered = Some(prompt),
            }
        }
        self.keep_turns().await;
    }

    /// Stores the numbers of messages of the known turns with the conversation. If it fails, or somebody else writes the
    /// session, the last prompt is guessed when it is loaded.
    pub(super) async fn keep_turns(&self) {
        let Some(saved) = &self.saved else { return };
        let session = saved.session();
        let messages = self.client.history();
        if session.conversation() != messages {
            return;
        }
        let known = &self.turns[self.turns.len().saturating_sub(KEPT_TURNS)..];
        let sizes: Vec<_> = known.iter().map(|(_, size)| *size).collect();
        let members = [(TURNS, json!({"messages": messages.len(), "sizes": sizes}))];
        let members = members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        let _ = saved.store().set_metadata(&session.info.id, members, Timestamp::now()).await;
    }

    /// Returns the place of the last prompt in the history.
    pub(super) fn last_prompt(&self) -> Option<usize> {
        let history = self.client.history();
        let known = self.turns.last().and_then(|(prompt, size)| {
            let place = history.len().checked_sub(*size)?;
            (history.get(place) == Some(prompt)).then_some(place)
        });
        known.or_else(|| history::last_prompt(history))
    }

    /// Returns the prompt that decides about waiting calls; `None` if the mode allows all.
    pub(super) fn judge(&self) -> Option<TerminalPrompt> {
        self.person.clone().filter(|_| self.mode != "all")
    }

    /// Returns the name of the model and its server.
    pub(super) fn title(&self) -> String {
        match &self.agent.server {
            Some(server) => format!("{} by {}", self.client.options().model(), server.name()),
            None => format!("{}, a few rules, not a language model", self.client.options().model()),
        }
    }
}

/// A turn that has ended.
#[derive(Debug)]
pub(super) struct TurnRecord {
    /// Its prompt; `None` if only the turn of an earlier one went on.
    pub(super) prompt: Option<Message>,
    /// The number of messages before the prompt.
    pub(super) before: usize,
    /// The number of messages with which the turn of an earlier prompt went on.
    pub(super) continued: usize,
    /// True if older messages were left out during it.
    pub(super) is_shortened: bool,
    /// The number of messages that were sent during it and are the same as the prompt.
    pub(super) repeats: usize,
}

/// The member of a session's metadata with the sizes of its last turns, and the most of these.
const TURNS: &str = "oa_turns";
const KEPT_TURNS: usize = 100;

/// Returns the turns that a session knows, unless its messages are not those whose turns were stored.
pub(super) fn known_turns(saved: &SavedSession) -> Vec<(Message, usize)> {
    let session = saved.session();
    let Some(stored) = session.info.metadata.get(TURNS) else { return Vec::new() };
    let messages = session.conversation();
    let mut turns = Vec::new();
    let mut end = messages.len();
    if stored["messages"].as_u64() != u64::try_from(end).ok() {
        return turns;
    }
    for size in stored["sizes"].as_array().into_iter().flatten().rev() {
        let size = size.as_u64().and_then(|size| usize::try_from(size).ok()).unwrap_or_default();
        let place = end.checked_sub(size);
        match place.and_then(|place| messages.get(place)) {
            Some(prompt) if prompt.role == MessageRole::User => turns.push((prompt.clone(), size)),
            _ => break,
        }
        end -= size;
    }
    turns.reverse();
    turns
}

/// Creates a client that continues a session. Calls that wait for permission keep waiting.
pub(super) fn client(options: AgentOptions, saved: Option<&SavedSession>) -> Result<Client> {
    let Some(saved) = saved else { return Ok(Client::new(options)?) };
    let mut client = Client::resume(options, saved.session().conversation())?;
    client.set_key_prefix(saved.key_prefix());
    Ok(client)
}

async fn open_session(settings: &Settings, name: &str) -> Result<SavedSession> {
    let id = SessionId::new(name).map_err(|error| Failure::usage(error.to_string()))?;
    let store = places::sessions(settings)?;
    Ok(SavedSession::open_or_create(store, NewSession::new(id, Timestamp::now())).await?)
}
