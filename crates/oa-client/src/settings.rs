//! Checked options, and values derived from them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oa_chat::{AnyChat, ChatOptions, Endpoint, PreparedOptions, Retry, ServerProfile};
use oa_contain::contain;
use oa_context::ContextPolicy;
use oa_executor::ToolExecutor;
use oa_hooks::{Hooks, Permissions};
use oa_output::OutputValidator;
use oa_tools::{Registry, SourcedTools, State, Tool};
use oa_turn::{OuterBudget, Turn};
use oa_types::{Price, Usage};

use crate::error::{Error, Result};
use crate::step::StepHooks;

/// The options of the agent itself; those of its requests are [`ChatOptions`]. Builder, getters and `Debug` share
/// both, so a plain option is one field in one of them and two methods.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentConfig {
    pub(crate) server_profile: Option<ServerProfile>,
    pub(crate) tools: Registry,
    /// The sources of some of the tools.
    pub(crate) sources: Vec<SourcedTools>,
    pub(crate) hooks: Hooks,
    pub(crate) permissions: Permissions,
    pub(crate) turn: oa_turn::Options,
    pub(crate) max_run_time: Option<Duration>,
    pub(crate) price: Option<Price>,
    pub(crate) state: State,
    pub(crate) steps: StepHooks,
    pub(crate) context: Option<ContextPolicy>,
    /// True if the model can read full results.
    pub(crate) keeps_results: bool,
    /// The budget of the agent that runs this one.
    pub(crate) outer: Option<Arc<OuterBudget>>,
}

/// Checked options. A change creates new ones, so each holder sees one consistent state.
#[derive(Clone)]
pub(crate) struct Settings {
    /// The reason why no request can be sent: there is no model, or the environment is invalid.
    pub(crate) unusable: Option<String>,
    pub(crate) chat: PreparedOptions,
    /// The server, or a service with its own servers, with retries around it.
    pub(crate) backend: Retry,
    pub(crate) config: AgentConfig,
    pub(crate) executor: ToolExecutor,
}

impl AgentConfig {
    /// Creates a turn that knows which tools are external.
    pub(crate) fn turn(&self, options: oa_turn::Options) -> Turn {
        let mut turn = Turn::new(options);
        turn.set_external_tools(self.external_tools());
        turn
    }

    /// Returns the options of a turn for a single prompt, in manual mode.
    pub(crate) fn single_turn(&self) -> oa_turn::Options {
        let mut options = oa_turn::Options::default();
        options.plan_steps = self.turn.plan_steps;
        options.review_answers = self.turn.review_answers;
        options.max_answer_retries = self.turn.max_answer_retries;
        options
    }

    pub(crate) fn external_tools(&self) -> impl Iterator<Item = String> {
        let is_external = |tool: &&Arc<dyn Tool>| contain(|| tool.is_external()).unwrap_or(false);
        let external = self.tools.iter().filter(is_external);
        external.map(|tool| tool.name().to_owned())
    }

    /// Sets the cost of an answer, if the price is known.
    pub(crate) fn price(&self, usage: &mut Usage) {
        if let Some(price) = &self.price {
            usage.cost = price.cost(usage).or(usage.cost);
        }
    }
}

pub(crate) const NO_MODEL: &str = "no model: set one with .model() or OPEN_AGENT_MODEL";

impl Settings {
    /// Returns an error if no request can be sent.
    pub(crate) fn check_usable(&self) -> Result<()> {
        self.unusable.as_ref().map_or(Ok(()), |why| Err(Error::config(why)))
    }

    /// Returns the endpoint, unless a service chooses one.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.backend.service().endpoint()
    }

    /// Changes the options of requests.
    pub(crate) fn change_chat(&mut self, change: impl FnOnce(&mut ChatOptions)) -> Result<()> {
        let mut chat = self.chat.options().clone();
        change(&mut chat);
        self.chat = prepared(chat, self.backend.service())?;
        Ok(())
    }

    /// Replaces the tools. The executor keeps its options.
    pub(crate) fn set_tools(&mut self, tools: Registry) -> Result<()> {
        let options = self.executor.options().clone();
        let tools = self.config.with_reader(tools, options.truncation)?;
        let offered = offered(&tools, &self.config.permissions);
        let specs = self.config.without_reader(offered.clone()).specs();
        self.executor = ToolExecutor::with_options(offered, options)
            .expect("these options were checked before");
        self.config.tools = tools;
        self.change_chat(|chat| chat.parameters.tools = specs)
    }

    /// Returns settings with the current tools of the sources; `None` if nothing changed. Requests for structured
    /// output offer their output tool as well.
    pub(crate) fn refreshed(&self, output: Option<&OutputValidator>) -> Result<Option<Self>> {
        let refreshed = contain(|| self.with_current_tools()).map_err(|panic| {
            let words = panic.excerpt().unwrap_or_default();
            Error::config(format!("a source of tools panicked: {words}"))
        });
        match (refreshed??, output) {
            (Some(settings), Some(output)) => settings.for_output(output).map(Some),
            (settings, _) => Ok(settings),
        }
    }

    fn with_current_tools(&self) -> Result<Option<Self>> {
        if !self.config.sources.iter().any(SourcedTools::is_stale) {
            return Ok(None);
        }
        let mut tools = self.config.without_reader(self.config.tools.clone()); // added again below
        let mut settings = self.clone();
        settings.config.sources.iter_mut().for_each(|source| source.refresh(&mut tools));
        settings.set_tools(tools)?;
        Ok(Some(settings))
    }

    /// Switches to another transport for the same server. `over` creates the endpoint.
    pub(crate) fn use_endpoint(
        &mut self,
        over: impl FnOnce(&Endpoint) -> Result<Endpoint>,
    ) -> Result<()> {
        let why = "with_transport has no effect with chat_service: set the transport there";
        let endpoint = self.endpoint().ok_or_else(|| Error::config(why))?;
        self.backend = self.backend.around(over(endpoint)?.into());
        self.change_chat(|_| {})
    }
}

/// Prepares options for the first server, if one is known.
pub(crate) fn prepared(chat: ChatOptions, service: &AnyChat) -> Result<PreparedOptions> {
    match service.endpoint() {
        Some(endpoint) => PreparedOptions::for_endpoint(chat, endpoint),
        None => Ok(PreparedOptions::new(chat)),
    }
}

/// Returns the tools that may run at all. The model never sees the others.
pub(crate) fn offered(tools: &Registry, permissions: &Permissions) -> Registry {
    let mut offered = tools.clone();
    for name in tools.names().filter(|name| !permissions.offers(name)) {
        offered.remove(name);
    }
    offered
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentOptions")
            .field("chat", &self.chat)
            .field("backend", &self.backend)
            .field("config", &self.config)
            .field("quirks", &self.chat.quirks_at(self.endpoint()))
            .field("executor", &self.executor.options())
            .finish_non_exhaustive()
    }
}
