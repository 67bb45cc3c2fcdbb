//! What the options come to once they are checked.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use oa_aggregate::Quirks;
use oa_executor::ToolExecutor;
use oa_hooks::Hooks;
use oa_tools::{Registry, State};
use oa_transport::{ApiKey, Timeouts};
use oa_types::BaseUrl;
use oa_types::wire::ChatRequest;

use crate::chat::{ChatService, Learned};
use crate::envelope::Envelope;
use crate::error::Result;
use crate::options::Limits;
use crate::profile::Profile;
use crate::provider::Provider;
use crate::retry::{Budget, Retry, RetryConfig};
use crate::service::AnyService;
use crate::thinking::Thinking;

#[derive(Clone)]
pub(crate) struct Settings {
    /// Why nothing can be asked: there is no model, or what the environment says cannot be used.
    pub(crate) unusable: Option<String>,
    pub(crate) request: ChatRequest,
    pub(crate) base_url: BaseUrl,
    pub(crate) provider: Option<Provider>,
    pub(crate) profile: Profile,
    pub(crate) thinking: Option<Thinking>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) api_key: Option<ApiKey>,
    pub(crate) headers: HeaderMap,
    pub(crate) timeouts: Timeouts,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) limits: Limits,
    pub(crate) quirks: Quirks,
    pub(crate) tools: Registry,
    pub(crate) hooks: Hooks,
    pub(crate) turn: oa_turn::Options,
    pub(crate) max_run_time: Option<Duration>,
    pub(crate) executor: ToolExecutor,
    pub(crate) state: State,
    pub(crate) service: AnyService,
    pub(crate) retry: RetryConfig,
    /// What is shared by all who have these options.
    pub(crate) retry_budget: Arc<Budget>,
    pub(crate) learned: Arc<Learned>,
    /// Made of what is above.
    pub(crate) envelope: Envelope,
}

impl Settings {
    /// The service that answers chat requests.
    pub(crate) fn chat(self: &Arc<Self>) -> Retry<ChatService> {
        let chat = ChatService::new(Arc::clone(self));
        Retry::new(chat, self.retry.clone(), Arc::clone(&self.retry_budget))
    }

    /// Takes other tools. The executor keeps its options.
    pub(crate) fn set_tools(&mut self, tools: Registry) {
        let options = self.executor.options().clone();
        self.executor = ToolExecutor::with_options(tools.clone(), options)
            .expect("these options were checked before");
        self.request.tools = tools.specs();
        self.tools = tools;
    }

    /// Makes the envelope anew after a change.
    pub(crate) fn prepare(&mut self) -> Result<()> {
        self.envelope = Envelope::new(
            &self.base_url,
            self.api_key.as_ref(),
            &self.headers,
            self.system_prompt.as_deref(),
            &self.request,
        )?;
        Ok(())
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentOptions")
            .field("request", &self.request)
            .field("base_url", &self.base_url)
            .field("provider", &self.provider)
            .field("system_prompt", &self.system_prompt)
            .field("api_key", &self.api_key)
            .field("headers", &Masked(&self.headers))
            .field("timeouts", &self.timeouts)
            .field("connect_timeout", &self.connect_timeout)
            .field("limits", &self.limits)
            .field("quirks", &self.quirks)
            .field("tools", &self.tools)
            .field("hooks", &self.hooks)
            .field("turn", &self.turn)
            .field("max_run_time", &self.max_run_time)
            .field("retry", &self.retry)
            .field("executor", &self.executor.options())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Headers without their values: any of them may be a secret.
struct Masked<'a>(&'a HeaderMap);

impl fmt::Debug for Masked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name, "****"))).finish()
    }
}

/// A header of the user's, checked; its value is marked as a secret.
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let name: HeaderName = name.parse().map_err(|_| format!("not a header name: {name:?}"))?;
    let mut value: HeaderValue = value
        .parse()
        .map_err(|_| format!("the value of header {name} has forbidden characters"))?;
    value.set_sensitive(true);
    Ok((name, value))
}
