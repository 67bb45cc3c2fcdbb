//! Builds checked options from those that were set.

use std::sync::Arc;

use oa_chat::{
    AnyChat, DEFAULT_BASE_URL, EndpointBuilder, Retry, ToolMode, base_url_from_environment,
    model_from_environment,
};
use oa_executor::{CallRate, ExecutorOptions, ToolExecutor};
use oa_tools::Tool;
use oa_turn::Mode;
use oa_types::ModelName;
use oa_types::wire::ToolChoice;

use super::AgentOptionsBuilder;
use crate::error::{Error, Result};
use crate::options::AgentOptions;
use crate::settings::{AgentConfig, NO_MODEL, Settings, offered, prepared};

/// The requirement for a model.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Model {
    Optional,
    Required,
}

impl AgentOptionsBuilder {
    /// Reads options from the environment; the first request reports invalid values.
    pub(crate) fn from_environment() -> AgentOptions {
        Self::default().assemble(Model::Optional).unwrap_or_else(|error| {
            let builder = Self {
                endpoint: EndpointBuilder::default().base_url(DEFAULT_BASE_URL),
                unusable: Some(error.to_string()),
                ..Self::default()
            };
            builder.assemble(Model::Optional).expect("the default options are valid")
        })
    }

    /// Checks and builds the options.
    ///
    /// # Errors
    ///
    /// `Config` for an option that cannot work, and if there is no model.
    pub fn build(self) -> Result<AgentOptions> {
        self.assemble(Model::Required)
    }

    /// Like [`build`](Self::build), but a model is not required: to list a server's models first, then choose one
    /// ([`AgentOptions::with_model`]). Until then, each prompt is an error of kind `Config`.
    ///
    /// # Errors
    ///
    /// `Config` for an option that cannot work.
    pub fn build_without_model(self) -> Result<AgentOptions> {
        self.assemble(Model::Optional)
    }

    fn assemble(mut self, need: Model) -> Result<AgentOptions> {
        if let Some(error) = self.error.take().or_else(|| self.endpoint.take_error()) {
            return Err(error);
        }
        if let Some((limit, unanswered)) = self.unanswered.take() {
            self.config.permissions = self.config.permissions.timeout(limit, unanswered);
        }
        let limit = self.executor.as_ref().map(|options| options.truncation).unwrap_or_default();
        // The order matters: sources add tools, permissions hide some, and the checks know what is offered.
        let AgentConfig { sources, tools, .. } = &mut self.config;
        sources.iter_mut().for_each(|source| source.refresh(tools));
        self.config.tools = self.config.with_reader(self.config.tools.clone(), limit)?;
        let offered = offered(&self.config.tools, &self.config.permissions);
        self.chat.parameters.tools = self.config.without_reader(offered.clone()).specs();
        self.config.turn.review_answers = self.config.hooks.has_answer();
        self.check_effects()?;
        self.adopt_profile()?;
        // Do not read an invalid environment again.
        let model = match self.model.take() {
            None if self.unusable.is_none() => model_from_environment(),
            named => named,
        };
        match model {
            Some(model) => {
                ModelName::new(model)?.as_str().clone_into(&mut self.chat.parameters.model);
            }
            None if need == Model::Required => return Err(Error::config(NO_MODEL)),
            None => drop(self.unusable.get_or_insert_with(|| NO_MODEL.to_owned())),
        }
        let executor = self.executor_options()?;
        let executor = ToolExecutor::with_options(offered, executor)?;
        let backend = Retry::new(self.backend()?, self.retry);
        let chat = prepared(self.chat, backend.service())?;
        let (unusable, config) = (self.unusable, self.config);
        Ok(AgentOptions(Arc::new(Settings { unusable, chat, backend, config, executor })))
    }

    /// Takes the model of a server profile, unless another is set.
    fn adopt_profile(&mut self) -> Result<()> {
        let Some(profile) = &self.config.server_profile else { return Ok(()) };
        if let Some(service) = &self.service {
            return Err(Error::config(format!("profile has no effect with {}", option(service))));
        }
        let model = self.model.get_or_insert_with(|| profile.model.clone());
        let lacks_tools = profile.tools == Some(false) && !self.config.tools.is_empty();
        if lacks_tools && *model == profile.model && matches!(self.chat.tool_mode, ToolMode::Native)
        {
            return Err(Error::config(format!(
                "the profile says that {model} does not support tools here: remove them, \
                 change tool_mode, or run the doctor again"
            )));
        }
        Ok(())
    }

    /// Rejects options that would have no effect.
    fn check_effects(&self) -> Result<()> {
        let has_tools = !self.chat.parameters.tools.is_empty()
            || self.chat.parameters.extra_body.contains_key("tools");
        let tool_choice = self.chat.parameters.tool_choice.is_some();
        let parallel = self.chat.parameters.parallel_tool_calls.is_some();
        let is_text = self.chat.tool_mode.is_text();
        let is_free = is_text && !matches!(self.chat.tool_mode, ToolMode::Constrained);
        for (is_vain, message) in [
            (
                self.chat.parameters.stop.iter().any(String::is_empty),
                "a stop text must not be empty",
            ),
            (tool_choice && !has_tools, "tool_choice has no effect without tools"),
            (parallel && !has_tools, "parallel_tool_calls has no effect without tools"),
            (tool_choice && is_free, "tool_choice has no effect when calls are text"),
            (parallel && is_free, "parallel_tool_calls has no effect when calls are text"),
            (
                self.config.turn.max_answer_retries
                    != oa_turn::Options::default().max_answer_retries
                    && !self.config.turn.review_answers,
                "max_answer_retries has no effect without an answer hook",
            ),
            (
                self.chat.recognize_calls && is_text,
                "recognize_calls has no effect when calls are text",
            ),
        ] {
            if is_vain {
                return Err(Error::config(message));
            }
        }
        self.check_choice()?;
        let inline = self.config.turn.inline_results.then_some("ToolMode::MarkersInline");
        let auto_only = self.auto_only.first().copied().or(inline);
        if let (Mode::Manual, Some(option)) = (self.config.turn.mode, auto_only) {
            let message = format!("{option} has no effect without auto_execute_tools");
            return Err(Error::config(message));
        }
        if self.config.steps.archive.is_some() && self.config.context.is_none() {
            return Err(Error::config("archive_context has no effect without context"));
        }
        // Sub-agents have their own prices.
        if self.config.turn.max_cost.is_some()
            && self.config.price.is_none_or(|price| price.is_free())
            && !self.config.has_agents()
        {
            return Err(Error::config("max_run_cost has no effect without a price"));
        }
        self.config.hooks.check().map_err(Error::config)?;
        self.config.permissions.check().map_err(Error::config)?;
        if !self.names_questions {
            self.check_names()?;
        }
        let timeouts = self.executor.iter().flat_map(|options| options.timeouts.names());
        if let Some(name) = timeouts.into_iter().find(|name| !self.config.tools.contains(name)) {
            let message = format!("there is no tool {name:?}, which a timeout refers to");
            return Err(Error::config(message));
        }
        self.config.context.iter().try_for_each(|policy| policy.check()).map_err(Error::config)
    }

    /// Rejects names and categories of tools that do not exist. Patterns may match tools that are added later.
    fn check_names(&self) -> Result<()> {
        let AgentConfig { tools, permissions, hooks, .. } = &self.config;
        let is_name = |name: &&str| !name.ends_with('*');
        let lacks = |is_meant: &dyn Fn(&dyn Tool) -> bool| tools.any(is_meant) == Some(false);
        if let Some(category) = permissions
            .categories()
            .find(|category| lacks(&|tool| tool.category() == Some(category)))
        {
            let message = format!("no tool has the category {category:?}, which a rule refers to");
            return Err(Error::config(message));
        }
        let mut listed = permissions.listed().filter(is_name);
        if let Some(name) = listed.find(|name| lacks(&|tool| tool.name() == *name)) {
            return Err(no_tool(name, "permissions"));
        }
        // Sub-agents do not inherit hooks. In manual mode, hooks also see calls of tools set in `extra_body`.
        let extra = &self.chat.parameters.extra_body;
        let is_unknown = |name: &&str| !tools.contains(name) && !extra.contains_key("tools");
        match hooks.listed().filter(is_name).find(is_unknown) {
            Some(name) => Err(no_tool(name, "hooks")),
            None => Ok(()),
        }
    }

    /// Rejects a tool choice that is not offered.
    fn check_choice(&self) -> Result<()> {
        let Some(ToolChoice::Tool(name)) = &self.chat.parameters.tool_choice else { return Ok(()) };
        let is_offered = self.chat.parameters.tools.iter().any(|tool| tool.name == *name);
        // Tools set in `extra_body` take precedence and are not checked.
        if is_offered || self.chat.parameters.extra_body.contains_key("tools") {
            return Ok(());
        }
        let why =
            if self.config.tools.contains(name) { "is not allowed" } else { "does not exist" };
        Err(Error::config(format!("tool_choice names the tool {name:?}, which {why}")))
    }

    /// Returns the executor's options, with the rate that was set here.
    fn executor_options(&mut self) -> Result<ExecutorOptions> {
        let options = self.executor.take().unwrap_or_default();
        match (self.calls_per_minute, &options.rate) {
            (None, _) => Ok(options),
            (Some(calls), None) => Ok(options.rate(CallRate::per_minute(calls))),
            (Some(_), Some(_)) => Err(Error::config(
                "max_tool_calls_per_minute has no effect when the executor has its own rate",
            )),
        }
    }

    /// Returns the backend: the caller's service, or the server set here or by the environment.
    fn backend(&mut self) -> Result<AnyChat> {
        let Some(service) = self.service.take() else {
            let mut endpoint = std::mem::take(&mut self.endpoint);
            if !endpoint.names_server() {
                let base_url = base_url_from_environment();
                endpoint = endpoint.base_url(base_url.as_deref().unwrap_or(DEFAULT_BASE_URL));
            }
            return Ok(endpoint.build()?.into());
        };
        match self.endpoint.first_set() {
            Some(option) => {
                let by = self::option(&service);
                Err(Error::config(format!("{option} has no effect with {by}: set it there")))
            }
            None => Ok(service),
        }
    }
}

/// Returns the name of the option that set the service.
fn option(service: &AnyChat) -> &'static str {
    if service.endpoint().is_some() { "endpoint" } else { "chat_service" }
}

fn no_tool(name: &str, from: &str) -> Error {
    Error::config(format!(
        "there is no tool {name:?}, which {from} refer to; a tool that is added later needs a pattern, such as \"{name}*\""
    ))
}
