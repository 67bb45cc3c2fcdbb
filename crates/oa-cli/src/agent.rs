//! The agent that the settings describe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use open_agent::{
    AgentOptions, AgentOptionsBuilder, ContextPolicy, Permission, PermissionMode, Provider,
    TerminalPrompt, Thinking, Tool,
};

use crate::failure::{Failure, Result};
use crate::find::{self, Server};
use crate::settings::Settings;
use crate::{places, stand_in};

/// An agent, with its server, permission mode and MCP connections.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) options: AgentOptions,
    /// `None` for the stand-in.
    pub(crate) server: Option<Server>,
    pub(crate) mode: Mode,
    #[cfg(feature = "mcp")]
    pub(crate) mcp: Option<open_agent::mcp::Connected>,
}

/// The person who is asked for permission.
#[derive(Clone, Debug)]
pub(crate) enum Person {
    /// A person at a front end, later: calls that need permission wait.
    #[cfg(feature = "serve")]
    Later,
    /// No one: calls that need permission are denied.
    Nobody,
    /// A person at a terminal.
    Terminal(TerminalPrompt),
}

/// The permission mode, which can be changed while the program runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mode {
    allows_all: Arc<AtomicBool>,
}

impl Mode {
    /// Sets the mode by name, and returns the mode of the client.
    ///
    /// "all" is `Ask` with a callback that allows every call: a client rejects a callback that is never called.
    pub(crate) fn set(&self, word: &str) -> Option<PermissionMode> {
        let mode = match word {
            "ask" | "all" => PermissionMode::Ask,
            "plan" => PermissionMode::Plan,
            "reads" => PermissionMode::AllowReads,
            _ => return None,
        };
        self.allows_all.store(word == "all", Ordering::Release);
        Some(mode)
    }

    fn allows_all(&self) -> bool {
        self.allows_all.load(Ordering::Acquire)
    }
}

/// The default mode.
pub(crate) const MODE: &str = "reads";
/// The default maximum of rounds of calls.
const ROUNDS: u32 = 25;

/// Finds the server and makes the agent, with its tools.
pub(crate) async fn build(settings: &Settings, person: Person) -> Result<Agent> {
    build_within(settings, person, find::ANSWER).await
}

/// [`build`], with a limit for the server's list of models.
pub(crate) async fn build_within(
    settings: &Settings,
    person: Person,
    answer: Duration,
) -> Result<Agent> {
    let (mut builder, server) = if settings.is_on("stand_in") {
        let model = settings.text("model").unwrap_or(stand_in::NAME);
        (AgentOptions::builder().model(model).chat_service(stand_in::StandIn), None)
    } else {
        let server = find::servers(settings, answer).await?.swap_remove(0);
        (connected(settings, &server)?, Some(server))
    };
    builder = sampled(settings, builder)?;
    let mode = Mode::default();
    let word = settings.text("mode").unwrap_or(MODE);
    let client_mode =
        mode.set(word).ok_or_else(|| Failure::usage(format!("unknown mode {word}")))?;
    let rounds =
        settings.integer("max_rounds").map(|rounds| u32::try_from(rounds).unwrap_or(u32::MAX));
    builder = builder.auto_execute_tools(true).max_tool_iterations(rounds.unwrap_or(ROUNDS));
    builder = match person {
        #[cfg(feature = "serve")]
        Person::Later if word == "all" => builder.permission_mode(PermissionMode::AllowAll),
        #[cfg(feature = "serve")]
        Person::Later => builder.permission_mode(client_mode),
        Person::Nobody => asking(builder, client_mode, &mode, None),
        Person::Terminal(prompt) => asking(builder, client_mode, &mode, Some(prompt)),
    };
    let tools = tools(settings).await?;
    builder = builder.tools(tools.list).offer_full_results(true);
    // The tool lists of servers change: the agent reads them before each request.
    #[cfg(feature = "mcp")]
    if let Some(mcp) = &tools.mcp {
        builder = builder.tool_source(mcp.source());
    }
    Ok(Agent {
        options: builder.build()?,
        server,
        mode,
        #[cfg(feature = "mcp")]
        mcp: tools.mcp,
    })
}

/// Adds a callback for calls that the mode leaves open: it asks at the terminal, or denies them if there is none.
fn asking(
    builder: AgentOptionsBuilder,
    client_mode: PermissionMode,
    mode: &Mode,
    prompt: Option<TerminalPrompt>,
) -> AgentOptionsBuilder {
    let mode = mode.clone();
    builder.permission_mode(client_mode).can_use_tool(move |request| {
        let allows_all = mode.allows_all();
        // The prompt asks when `ask` is called, not when the future is polled.
        let answer = prompt.as_ref().filter(|_| !allows_all).map(|prompt| prompt.ask(request));
        async move {
            match answer {
                Some(answer) => answer.await,
                None if allows_all => Permission::Allow,
                None => Permission::deny(
                    "permission cannot be requested: there is no terminal, and the mode does not allow the call",
                ),
            }
        }
    })
}

fn connected(settings: &Settings, server: &Server) -> Result<AgentOptionsBuilder> {
    let mut builder =
        AgentOptions::builder().model(server.model(settings)?).base_url(&server.base_url);
    if let Some(provider) = server.provider {
        builder = builder.provider(provider).prompt_progress(provider == Provider::LlamaCpp);
    }
    // A key is only sent to a server that was set, never to whatever listens on a default port.
    let is_set = find::address(settings)?.is_some();
    if let (true, Ok(Some(key))) = (is_set, settings.key_for(&server.base_url)) {
        builder = builder.api_key(key);
    }
    Ok(builder)
}

/// Returns the amount of thinking that a word of the setting means.
pub(crate) fn thinking(word: &str) -> Thinking {
    match word {
        "on" => true.into(),
        "off" => false.into(),
        effort => effort.into(),
    }
}

/// Returns the word of the setting for an amount of thinking.
pub(crate) fn thinking_word(thinking: &Thinking) -> &str {
    match thinking {
        Thinking::Effort(effort) => effort,
        Thinking::Off => "off",
        _ => "on",
    }
}

fn sampled(settings: &Settings, mut builder: AgentOptionsBuilder) -> Result<AgentOptionsBuilder> {
    if let Some(system) = settings.text("system") {
        builder = builder.system_prompt(system);
    }
    if let Some(temperature) = settings.number("temperature") {
        builder = builder.temperature(temperature as f32);
    }
    builder = builder.top_p(settings.number("top_p").map(|it| it as f32));
    builder = builder.seed(settings.integer("seed"));
    if let Some(members) = settings.object("extra_body") {
        builder = builder.extra_body(members.clone().into());
    }
    if let Some(tokens) = settings.integer("max_tokens") {
        builder = builder.max_tokens(u32::try_from(tokens).unwrap_or(u32::MAX));
    }
    if let Some(word) = settings.text("thinking") {
        builder = builder.thinking(thinking(word));
    }
    if let Some(tokens) = settings.integer("context") {
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        builder = builder.context(ContextPolicy::new(tokens));
    }
    Ok(builder)
}

/// The tools of the settings.
pub(crate) struct Tools {
    /// The built-in tools.
    pub(crate) list: Vec<Arc<dyn Tool>>,
    /// The MCP servers.
    #[cfg(feature = "mcp")]
    pub(crate) mcp: Option<open_agent::mcp::Connected>,
}

/// Creates the built-in tools that are set, and connects to MCP servers.
pub(crate) async fn tools(settings: &Settings) -> Result<Tools> {
    let mut list: Vec<Arc<dyn Tool>> = Vec::new();
    if settings.is_on("stand_in") {
        list.extend(stand_in::tools().into_iter().map(|tool| Arc::new(tool) as _));
    }
    let mut folders = Vec::new();
    for tools in settings.list("tools") {
        match tools.split_once(':') {
            Some(("files", folder)) if !folder.is_empty() => folders.push(places::expanded(folder)),
            _ => return Err(Failure::usage(format!("unknown tools {tools:?}: use files:DIR"))),
        }
    }
    let files = oa_files::tools(&folders).map_err(open_agent::Error::from)?;
    list.extend(files.into_iter().map(|tool| Arc::new(tool) as _));
    #[cfg(feature = "mcp")]
    let mcp = match settings.text("mcp") {
        Some(path) => Some(connect_mcp(path).await?),
        None => None,
    };
    #[cfg(not(feature = "mcp"))]
    if settings.text("mcp").is_some() {
        return Err(Failure::usage("this program was built without MCP (feature `mcp`)"));
    }
    Ok(Tools {
        list,
        #[cfg(feature = "mcp")]
        mcp,
    })
}

#[cfg(feature = "mcp")]
async fn connect_mcp(path: &str) -> Result<open_agent::mcp::Connected> {
    use open_agent::mcp::Servers;

    let path = places::expanded(path);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::usage(error.to_string()).at(path.display()))?;
    let servers = Servers::from_json(&text, crate::environment::variable)
        .map_err(|error| Failure::usage(error.to_string()).at(path.display()))?;
    let connected = servers.connect().await;
    connected.map_err(|error| Failure::new(crate::failure::with_causes(&error)).at(path.display()))
}
