use std::env;
use std::io;
use std::time::Duration;

use oa_testkit::{Reply, Request, Script, SocketServer, Strict};
use open_agent::{AgentOptions, AgentOptionsBuilder, Provider, list_models};

use crate::chat::Chat;
use crate::terminal::Terminal;

/// Long enough for a local server to list its models.
const LOOK: Duration = Duration::from_millis(700);
/// The stand-in's time per word.
const WORD: Duration = Duration::from_millis(10);
/// If this variable is set, the stand-in is used without a search.
const STAND_IN: &str = "OPEN_AGENT_STAND_IN";

/// A model to talk to: one on a local server, or a stand-in.
///
/// The stand-in is not a language model, but everything between it and the program is real: a socket, HTTP
/// chunks, server-sent events, one delta at a time.
#[derive(Debug)]
pub struct Model {
    name: String,
    base_url: String,
    /// Serves until dropped.
    _stand_in: Option<SocketServer>,
}

impl Model {
    /// Looks for a server, prints what was found, and otherwise starts `stand_in`.
    pub async fn find<F>(terminal: &mut Terminal, stand_in: F) -> io::Result<Self>
    where
        F: Fn(&Chat<'_>) -> Reply + Send + Sync + 'static,
    {
        let answer = move |request: &Request| stand_in(&Chat::of(request)).delay(WORD);
        // It numbers its calls from 1 in each program, but a conversation may continue in another one.
        let rules = Strict::new().allow_repeated_ids();
        Self::find_or(terminal, Script::new().strict_by(rules).otherwise(Reply::by(answer))).await
    }

    /// Like [`find`](Self::find), with a stand-in that sees whole requests, of any kind.
    pub async fn find_or(terminal: &mut Terminal, script: Script) -> io::Result<Self> {
        if env::var_os(STAND_IN).is_none()
            && let Some(found) = Self::look_around(terminal).await
        {
            return Ok(found);
        }
        terminal.note("  Using a stand-in: a few rules and no language model, over a real socket.");
        terminal.note(
            "  For a real model, start LM Studio, Ollama, llama.cpp or vLLM and run this again.",
        );
        let server = SocketServer::start(script.models(["stand-in"])).await?;
        let (name, base_url) = ("stand-in".to_owned(), server.base_url());
        Ok(Self { name, base_url, _stand_in: Some(server) })
    }

    /// Starts options for this model. A program that knows its server sets both:
    /// `.model("qwen3:8b").provider(Provider::Ollama)`.
    pub fn options(&self) -> AgentOptionsBuilder {
        AgentOptions::builder().model(&self.name).base_url(&self.base_url)
    }

    /// Queries the server named by the environment and then all usual addresses; the first in this order wins.
    async fn look_around(terminal: &mut Terminal) -> Option<Self> {
        terminal.note("Looking for a model server ...");
        let named = env::var("OPEN_AGENT_BASE_URL").ok().filter(|url| !url.trim().is_empty());
        let usual = Provider::LOCAL
            .iter()
            .filter_map(|provider| Some((provider.name(), provider.base_url()?.to_owned())));
        let named = named.map(|url| ("OPEN_AGENT_BASE_URL", url.trim().to_owned()));

        // In parallel, so that it takes no longer than the slowest.
        let looks: Vec<_> = named
            .into_iter()
            .chain(usual)
            .map(|(server, url)| (server, url.clone(), tokio::spawn(look(url))))
            .collect();
        for (server, base_url, look) in looks {
            match look.await {
                Ok(Ok(name)) => {
                    terminal.line(&format!("  Found {server} at {base_url}, model {name}."));
                    return Some(Self { name, base_url, _stand_in: None });
                }
                // Somebody meant this one, so say what is wrong with it.
                Ok(Err(why)) if server == "OPEN_AGENT_BASE_URL" => {
                    terminal.note(&format!("  {base_url} (OPEN_AGENT_BASE_URL): {why}."));
                }
                _ => {}
            }
        }
        terminal.note("  No server found at the usual addresses.");
        None
    }
}

/// Returns the model to use at this address, or why there is none.
async fn look(base_url: String) -> Result<String, String> {
    let builder = AgentOptions::builder().base_url(base_url).model("any");
    let options = builder.connect_timeout(LOOK).first_token_timeout(LOOK).build();
    let options = options.map_err(|error| error.to_string())?;
    let models = list_models(&options).await.map_err(|error| error.to_string())?;
    let wanted = AgentOptions::default();
    if !wanted.model().is_empty() {
        return Ok(wanted.model().to_owned());
    }
    // Embedding models cannot chat.
    let model = models.into_iter().find(|model| !model.contains("embed"));
    model.ok_or_else(|| "it has no model that can chat".to_owned())
}
