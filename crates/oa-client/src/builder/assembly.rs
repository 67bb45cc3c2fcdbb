//! From what was set to options that work, or to what is wrong with it.

use std::sync::Arc;

use oa_executor::{CallRate, ExecutorOptions, ToolExecutor};
use oa_transport::Timeouts;
use oa_turn::Mode;
use oa_types::ModelName;
use oa_types::wire::ToolChoice;

use super::AgentOptionsBuilder;
use crate::dialect::ToolMode;
use crate::endpoint::{EndpointBuilder, KnownModel};
use crate::error::{Error, Result};
use crate::options::AgentOptions;
use crate::provider::{self, Provider};
use crate::retry::Budget;
use crate::settings::{Asked, Envelopes, Settings, offered};
use crate::wait::Wait;

/// Whether options may do without a model.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Model {
    Optional,
    Required,
}

pub(crate) const NO_MODEL: &str = "no model: name one by .model() or OPEN_AGENT_MODEL";

impl AgentOptionsBuilder {
    /// What the environment says; what it says wrongly is told by the first request.
    pub(crate) fn from_environment() -> AgentOptions {
        Self::default().assemble(Model::Optional).unwrap_or_else(|error| {
            let builder = Self {
                endpoint: EndpointBuilder::default().base_url(provider::DEFAULT_BASE_URL),
                unusable: Some(error.to_string()),
                ..Self::default()
            };
            builder.assemble(Model::Optional).expect("nothing of this comes from the environment")
        })
    }

    /// Checks everything.
    ///
    /// # Errors
    ///
    /// `Config` for an option that cannot work, and if there is no model.
    pub fn build(self) -> Result<AgentOptions> {
        self.assemble(Model::Required)
    }

    fn assemble(mut self, need: Model) -> Result<AgentOptions> {
        if let Some(error) = self.endpoint.take_error() {
            return Err(error);
        }
        if let Some((limit, unanswered)) = self.unanswered.take()
            && let Some(limit) = limit.duration()
        {
            self.permissions = self.permissions.timeout(limit, unanswered);
        }
        let offered = offered(&self.tools, &self.permissions);
        self.request.tools = offered.specs();
        self.check_effects()?;
        self.adopt_profile()?;
        // An environment that cannot be used is not read again.
        let model = match self.model.take() {
            None if self.unusable.is_none() => provider::model_from_environment(),
            named => named,
        };
        match model {
            Some(model) => ModelName::new(model)?.as_str().clone_into(&mut self.request.model),
            None if need == Model::Required => return Err(Error::config(NO_MODEL)),
            None => drop(self.unusable.get_or_insert_with(|| NO_MODEL.to_owned())),
        }
        let executor = self.executor_options()?;
        let executor = ToolExecutor::with_options(offered, executor)
            .map_err(|error| Error::config(error.to_string()))?;
        let timeouts = self.all_timeouts();
        let asked = self.asked()?;
        let mut settings = Settings {
            unusable: self.unusable,
            request: self.request,
            asked,
            server_profile: self.server_profile,
            thinking: self.thinking,
            think_tags: self.think_tags,
            system_prompt: self.system_prompt,
            system_role: self.system_role.unwrap_or_default(),
            timeouts,
            limits: self.limits,
            repair: self.repair,
            on_bad_chunk: self.on_bad_chunk,
            tools: self.tools,
            hooks: self.hooks,
            permissions: self.permissions,
            turn: self.turn,
            max_run_time: self.max_run_time,
            price: self.price,
            executor,
            state: self.state,
            retry_budget: Arc::new(Budget::new(self.retry.budget)),
            retry: self.retry,
            tool_mode: self.tool_mode,
            recognises_calls: self.recognises_calls,
            spoken: None,
            form: None,
            envelope: None,
            envelopes: Envelopes::default(),
        };
        settings.prepare()?;
        Ok(AgentOptions(Arc::new(settings)))
    }

    /// Takes over what the profile of a server says and was not set otherwise.
    fn adopt_profile(&mut self) -> Result<()> {
        let Some(learned) = &self.server_profile else { return Ok(()) };
        learned.check()?;
        if self.chat.is_some() {
            return Err(Error::config("profile has no effect beside chat_service"));
        }
        let endpoint = &mut self.endpoint;
        if let (Some(named), Some(seen), None) =
            (endpoint.provider, learned.provider, &endpoint.base_url)
            && named != seen
        {
            let (named, seen) = (named.name(), seen.name());
            return Err(Error::config(format!(
                "the provider is {named}, and the profile is of {seen}: leave one out, or set base_url"
            )));
        }
        endpoint.base_url.get_or_insert_with(|| learned.base_url.clone());
        endpoint.provider = endpoint.provider.or(learned.provider);
        let mut profile = endpoint.provider.map(Provider::profile).unwrap_or_default();
        profile.asks_for_usage = learned.ask_for_usage.unwrap_or(profile.asks_for_usage);
        let model = self.model.get_or_insert_with(|| learned.model.clone());
        let lacks_tools = learned.tools == Some(false) && !self.tools.is_empty();
        if lacks_tools && *model == learned.model && matches!(self.tool_mode, ToolMode::Native) {
            return Err(Error::config(format!(
                "the profile says that {model} cannot be offered tools here: leave them out, \
                 let tool_mode be another, or have the doctor look again"
            )));
        }
        let mut of_model = profile;
        of_model.token_limit = learned.token_limit.unwrap_or(profile.token_limit);
        of_model.think_tags = learned.think_tags.unwrap_or(profile.think_tags);
        endpoint.known = Some(KnownModel {
            name: learned.model.clone(),
            profile: of_model,
            lacks_tools,
            lacks_schema: learned.schema == Some(false),
        });
        endpoint.profile = Some(profile);
        Ok(())
    }

    /// Refuses options that cannot act.
    fn check_effects(&self) -> Result<()> {
        let has_tools =
            !self.request.tools.is_empty() || self.request.extra_body.contains_key("tools");
        let tool_choice = self.request.tool_choice.is_some();
        let parallel = self.request.parallel_tool_calls.is_some();
        let is_text = self.tool_mode.is_text();
        for (is_vain, message) in [
            (self.request.stop.iter().any(String::is_empty), "a stop text is empty"),
            (tool_choice && !has_tools, "tool_choice has no effect without tools"),
            (parallel && !has_tools, "parallel_tool_calls has no effect without tools"),
            (tool_choice && is_text, "tool_choice has no effect where calls are text"),
            (parallel && is_text, "parallel_tool_calls has no effect where calls are text"),
            (
                self.recognises_calls && is_text,
                "recognise_calls has no effect where calls are text",
            ),
        ] {
            if is_vain {
                return Err(Error::config(message));
            }
        }
        self.check_choice()?;
        let fill_in = self.turn.inline_results.then_some("ToolMode::MarkersFilledIn");
        let auto_only = self.auto_only.first().copied().or(fill_in);
        if let (Mode::Manual, Some(option)) = (self.turn.mode, auto_only) {
            let message = format!("{option} has no effect without auto_execute_tools");
            return Err(Error::config(message));
        }
        if self.turn.max_cost.is_some() && self.price.is_none_or(|price| price.is_free()) {
            return Err(Error::config("max_run_cost has no effect without a price"));
        }
        for category in self.permissions.categories() {
            if !self.tools.iter().any(|tool| tool.category() == Some(category)) {
                let message = format!("no tool has the category {category:?}, which a rule names");
                return Err(Error::config(message));
            }
        }
        for name in self.permissions.listed() {
            if !name.ends_with('*') && !self.tools.contains(name) {
                let message = format!("there is no tool {name:?}, which permissions name");
                return Err(Error::config(message));
            }
        }
        self.permissions.check().map_err(Error::config)
    }

    /// Refuses to have a tool called that is not offered.
    fn check_choice(&self) -> Result<()> {
        let Some(ToolChoice::Tool(name)) = &self.request.tool_choice else { return Ok(()) };
        let is_offered = self.request.tools.iter().any(|tool| tool.name == *name);
        // Those set there win, and are the caller's matter.
        if is_offered || self.request.extra_body.contains_key("tools") {
            return Ok(());
        }
        let why = if self.tools.contains(name) { "is not allowed" } else { "does not exist" };
        Err(Error::config(format!("tool_choice names the tool {name:?}, which {why}")))
    }

    /// How calls are run, with the rate that was set here.
    fn executor_options(&mut self) -> Result<ExecutorOptions> {
        let options = self.executor.take().unwrap_or_default();
        match (self.calls_per_minute, &options.rate) {
            (None, _) => Ok(options),
            (Some(calls), None) => Ok(options.rate(CallRate::per_minute(calls))),
            (Some(_), Some(_)) => Err(Error::config(
                "max_tool_calls_per_minute has no effect beside the rate of the executor",
            )),
        }
    }

    fn all_timeouts(&self) -> Timeouts {
        let mut timeouts = Timeouts::default();
        timeouts.idle = Wait::or(self.idle, timeouts.idle);
        timeouts.content = Wait::or(self.content, timeouts.content);
        timeouts.first_token = Wait::or(self.first_token, timeouts.first_token);
        timeouts.total = Wait::or(self.total, timeouts.total);
        timeouts
    }

    /// Who answers: a service of the caller's, or the server that was named here or by the environment.
    fn asked(&mut self) -> Result<Asked> {
        let Some(service) = self.chat.take() else {
            if self.endpoint.base_url.is_none() && self.endpoint.provider.is_none() {
                let base_url = provider::base_url_from_environment();
                self.endpoint.base_url =
                    Some(base_url.unwrap_or_else(|| provider::DEFAULT_BASE_URL.to_owned()));
            }
            return Ok(Asked::Server(std::mem::take(&mut self.endpoint).build()?));
        };
        match self.endpoint.what_was_set() {
            Some(option) => {
                let message = format!("{option} has no effect beside chat_service: set it there");
                Err(Error::config(message))
            }
            None => Ok(Asked::Service(service)),
        }
    }
}
