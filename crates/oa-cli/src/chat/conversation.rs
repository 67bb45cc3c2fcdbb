//! A conversation, with its agent and its session.

use open_agent::session::{NewSession, SavedSession, SessionId, Timestamp};
use open_agent::{AgentOptions, Client, Message, TerminalPrompt};

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
    /// The prompts of this run that are in the history, each with the number of messages of its turn: those that were
    /// sent during a turn belong to it.
    pub(super) turns: Vec<(Message, usize)>,
    /// The person at the terminal, if there is one.
    pub(super) person: Option<TerminalPrompt>,
}

impl Conversation {
    pub(super) async fn start(args: &ChatArgs, settings: Settings, person: Person) -> Result<Self> {
        let prompt = match &person {
            Person::Terminal(prompt) => Some(prompt.clone()),
            _ => None,
        };
        let agent = agent::build(&settings, person).await?;
        let saved = match &args.session {
            Some(name) => Some(open_session(&settings, name).await?),
            None => None,
        };
        let client = client(agent.options.clone(), saved.as_ref())?;
        let mode = settings.text("mode").unwrap_or(agent::MODE).to_owned();
        Ok(Self {
            client,
            agent,
            saved,
            settings,
            mode,
            unanswered: None,
            turns: Vec::new(),
            person: prompt,
        })
    }

    /// Closes the conversation and stops its MCP servers.
    pub(super) async fn close(self) {
        drop(self.client);
        #[cfg(feature = "mcp")]
        if let Some(mcp) = self.agent.mcp {
            mcp.close().await;
        }
    }

    /// Records a turn that began when there were `before` messages. If it was `shortened`, older ones were left out.
    pub(super) fn note_turn(&mut self, prompt: Option<Message>, before: usize, shortened: bool) {
        let history = self.client.history();
        self.unanswered = None;
        let Some(prompt) = prompt else {
            // The turn of an earlier prompt went on.
            if let Some((_, size)) = self.turns.last_mut() {
                *size += history.len().saturating_sub(before);
            }
            return;
        };
        let place = match shortened {
            true => history.iter().rposition(|message| *message == prompt),
            false => (history.len() > before).then_some(before),
        };
        match place {
            Some(place) => self.turns.push((prompt, history.len() - place)),
            None => self.unanswered = Some(prompt),
        }
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
