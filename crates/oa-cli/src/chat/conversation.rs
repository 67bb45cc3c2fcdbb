//! A conversation, with its agent and its session.

use open_agent::Client;
use open_agent::session::{NewSession, SavedSession, SessionId, Timestamp};

use crate::agent::{self, Agent, Person};
use crate::args::ChatArgs;
use crate::failure::{Failure, Result};
use crate::places;
use crate::settings::Settings;

/// A conversation, and where it is kept.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) client: Client,
    pub(super) agent: Agent,
    pub(super) saved: Option<SavedSession>,
    pub(super) settings: Settings,
    pub(super) mode: String,
}

impl Conversation {
    pub(super) async fn start(args: &ChatArgs, settings: Settings, person: Person) -> Result<Self> {
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
    pub(super) async fn close(self) {
        drop(self.client);
        #[cfg(feature = "mcp")]
        if let Some(mcp) = self.agent.mcp {
            mcp.close().await;
        }
    }

    /// Returns the name of the model and its server.
    pub(super) fn title(&self) -> String {
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
