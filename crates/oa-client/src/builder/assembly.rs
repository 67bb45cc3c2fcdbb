//! From what was set to options that work, or to what is wrong with it.

use std::sync::Arc;
use std::time::Duration;

use oa_aggregate::Quirks;
use oa_executor::ToolExecutor;
use oa_transport::{Timeouts, Transport};
use oa_turn::Mode;
use oa_types::{BaseUrl, ModelName};

use super::AgentOptionsBuilder;
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::options::AgentOptions;
use crate::profile::Profile;
use crate::provider::{self, Provider};
use crate::retry::Budget;
use crate::service::AnyService;
use crate::settings::Settings;
use crate::wait::Wait;

/// Whether options may do without a model.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Model {
    Optional,
    Required,
}

const NO_MODEL: &str = "no model: name one by .model() or OPEN_AGENT_MODEL";

impl AgentOptionsBuilder {
    /// What the environment says; what it says wrongly is told by the first request.
    pub(crate) fn from_environment() -> AgentOptions {
        Self::default().assemble(Model::Optional).unwrap_or_else(|error| {
            let builder = Self {
                base_url: Some(provider::DEFAULT_BASE_URL.to_owned()),
                model: Some("unusable".to_owned()),
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
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.request.tools = self.tools.specs();
        self.check_effects()?;
        match self.model.take().or_else(provider::model_from_environment) {
            Some(model) => ModelName::new(model)?.as_str().clone_into(&mut self.request.model),
            None if need == Model::Required => return Err(Error::config(NO_MODEL)),
            None => self.unusable = Some(NO_MODEL.to_owned()),
        }
        let profile = self.provider.map(Provider::profile).unwrap_or_default();
        self.request.include_usage = profile.asks_for_usage;
        self.request.token_limit = profile.token_limit;
        self.tell_how_to_think(&profile)?;
        let base_url = self.address()?;
        let mut quirks = Quirks::default();
        quirks.think_tags = self.think_tags.unwrap_or(profile.think_tags);
        quirks.repair = self.repair;
        let executor = self.executor.take().unwrap_or_default();
        let executor = ToolExecutor::with_options(self.tools.clone(), executor)
            .map_err(|error| Error::config(error.to_string()))?;
        let timeouts = self.all_timeouts();
        let connect_timeout = Wait::or(self.connect, Some(Duration::from_secs(5)));
        let service = self.any_service(connect_timeout)?;
        let envelope = Envelope::new(
            &base_url,
            self.api_key.as_ref(),
            &self.headers,
            self.system_prompt.as_deref(),
            &self.request,
        )?;
        Ok(AgentOptions(Arc::new(Settings {
            unusable: self.unusable,
            request: self.request,
            base_url,
            provider: self.provider,
            profile,
            thinking: self.thinking,
            system_prompt: self.system_prompt,
            api_key: self.api_key,
            headers: self.headers,
            timeouts,
            connect_timeout,
            limits: self.limits,
            quirks,
            tools: self.tools,
            hooks: self.hooks,
            turn: self.turn,
            max_run_time: self.max_run_time,
            executor,
            state: self.state,
            service,
            retry_budget: Arc::new(Budget::new(self.retry.budget)),
            retry: self.retry,
            learned: Arc::default(),
            envelope,
        })))
    }

    /// Refuses options that cannot act.
    fn check_effects(&self) -> Result<()> {
        let has_tools =
            !self.request.tools.is_empty() || self.request.extra_body.contains_key("tools");
        let is_own = self.service.is_some();
        let tool_choice = self.request.tool_choice.is_some();
        let parallel = self.request.parallel_tool_calls.is_some();
        for (is_vain, message) in [
            (
                is_own && self.connect.is_some(),
                "connect_timeout has no effect on a transport of your own",
            ),
            #[cfg(feature = "tls")]
            (
                is_own && !self.roots.is_empty(),
                "root_certificates has no effect on a transport of your own",
            ),
            (self.request.stop.iter().any(String::is_empty), "a stop text is empty"),
            (tool_choice && !has_tools, "tool_choice has no effect without tools"),
            (parallel && !has_tools, "parallel_tool_calls has no effect without tools"),
        ] {
            if is_vain {
                return Err(Error::config(message));
            }
        }
        if let (Mode::Manual, Some(option)) = (self.turn.mode, self.auto_only.first()) {
            let message = format!("{option} has no effect without auto_execute_tools");
            return Err(Error::config(message));
        }
        Ok(())
    }

    fn tell_how_to_think(&mut self, profile: &Profile) -> Result<()> {
        let Some(thinking) = &self.thinking else { return Ok(()) };
        let members = &mut self.request.extra_body;
        if profile.thinking.and_then(|field| field.tell(thinking, members)).is_some() {
            return Ok(());
        }
        Err(Error::config(match self.provider {
            Some(provider) => format!("{} cannot be told {thinking:?}", provider.name()),
            None => "thinking needs a provider: each is told in its own way".to_owned(),
        }))
    }

    fn address(&mut self) -> Result<BaseUrl> {
        let base_url = match (self.base_url.take(), self.provider) {
            (Some(base_url), _) => base_url,
            (None, Some(provider)) => match provider.base_url() {
                Some(base_url) => base_url.to_owned(),
                None => {
                    let name = provider.name();
                    let message = format!("{name} has no usual address: set base_url");
                    return Err(Error::config(message));
                }
            },
            (None, None) => provider::base_url_from_environment()
                .unwrap_or_else(|| provider::DEFAULT_BASE_URL.to_owned()),
        };
        let base_url = BaseUrl::new(base_url)?;
        if base_url.is_https() && self.service.is_none() && cfg!(not(feature = "tls")) {
            return Err(Error::config(format!("{base_url} needs the feature \"tls\"")));
        }
        Ok(base_url)
    }

    fn all_timeouts(&self) -> Timeouts {
        let mut timeouts = Timeouts::default();
        timeouts.idle = Wait::or(self.idle, timeouts.idle);
        timeouts.content = Wait::or(self.content, timeouts.content);
        timeouts.first_token = Wait::or(self.first_token, timeouts.first_token);
        timeouts.total = Wait::or(self.total, timeouts.total);
        timeouts
    }

    fn any_service(&mut self, connect_timeout: Option<Duration>) -> Result<AnyService> {
        if let Some(service) = self.service.take() {
            return Ok(service);
        }
        // A connection attempt without bound lasts as long as the system lets it.
        let transport =
            Transport::builder().connect_timeout(connect_timeout.unwrap_or(Duration::MAX));
        #[cfg(feature = "tls")]
        let transport = if self.roots.is_empty() {
            transport
        } else {
            let roots = transport.root_certificates(&self.roots);
            roots.map_err(|error| Error::config(error.to_string()))?
        };
        Ok(AnyService::new(transport.build()))
    }
}
