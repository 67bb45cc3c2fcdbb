//! A conversation, with its agent and its session.

use open_agent::session::{NewSession, SavedSession, SessionId, Timestamp};
use open_agent::{AgentOptions, Client, Message, TerminalPrompt};

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
        Ok(Self { client, agent, saved, settings, mode, unanswered: None, person: prompt })
    }

    /// Closes the conversation and stops its MCP servers.
    pub(super) async fn close(self) {
        drop(self.client);
        #[cfg(feature = "mcp")]
        if let Some(mcp) = self.agent.mcp {
            mcp.close().await;
        }
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
