//! What the options come to once they are checked.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use oa_aggregate::{Quirks, ThinkTags};
use oa_executor::ToolExecutor;
use oa_hooks::{Hooks, Permissions};
use oa_tools::{Registry, State};
use oa_transport::Timeouts;
use oa_types::wire::ChatRequest as Wire;
use tower::Service;

use crate::answer::AnswerStream;
use crate::chat::{AnyChat, ChatRequest};
use crate::endpoint::{Destination, Endpoint};
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::manner::Manner;
use crate::options::{Limits, SystemRole};
use crate::provider::Provider;
use crate::retry::{Budget, Retry, RetryConfig};
use crate::server_profile::ServerProfile;
use crate::service::AnyService;
use crate::thinking::Thinking;
use crate::work::BoxFuture;

/// Who answers.
#[derive(Clone)]
pub(crate) enum Asked {
    Server(Endpoint),
    /// Something that knows itself which server it asks.
    Service(AnyChat),
}

#[derive(Clone)]
pub(crate) struct Settings {
    /// Why nothing can be asked: there is no model, or what the environment says cannot be used.
    pub(crate) unusable: Option<String>,
    pub(crate) request: Wire,
    pub(crate) asked: Asked,
    pub(crate) server_profile: Option<ServerProfile>,
    pub(crate) thinking: Option<Thinking>,
    pub(crate) think_tags: Option<ThinkTags>,
    pub(crate) system_prompt: Option<Arc<str>>,
    pub(crate) system_role: SystemRole,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) quirks: Quirks,
    pub(crate) tools: Registry,
    pub(crate) hooks: Hooks,
    pub(crate) permissions: Permissions,
    pub(crate) turn: oa_turn::Options,
    pub(crate) max_run_time: Option<Duration>,
    pub(crate) executor: ToolExecutor,
    pub(crate) state: State,
    pub(crate) retry: RetryConfig,
    /// Shared by all who have these options.
    pub(crate) retry_budget: Arc<Budget>,
    /// Made of what is above, for the server that is asked.
    pub(crate) envelope: Option<Arc<Envelope>>,
    /// The same for others.
    pub(crate) envelopes: Envelopes,
}

impl Settings {
    /// Has a request answered, and tried again if need be.
    pub(crate) fn ask(&self, request: ChatRequest) -> BoxFuture<Result<AnswerStream>> {
        let (retry, budget) = (self.retry.clone(), Arc::clone(&self.retry_budget));
        // Both are always ready.
        match &self.asked {
            Asked::Server(endpoint) => Retry::new(endpoint.clone(), retry, budget).call(request),
            Asked::Service(service) => Retry::new(service.clone(), retry, budget).call(request),
        }
    }

    /// The endpoint, unless somebody else chooses one.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        match &self.asked {
            Asked::Server(endpoint) => Some(endpoint),
            Asked::Service(_) => None,
        }
    }

    pub(crate) fn provider(&self) -> Option<Provider> {
        self.endpoint()?.provider()
    }

    /// The envelope for requests to an endpoint.
    pub(crate) fn envelope(&self, endpoint: &Endpoint) -> Result<Arc<Envelope>> {
        match (&self.asked, &self.envelope) {
            (Asked::Server(own), Some(envelope)) if own.is(endpoint) => Ok(Arc::clone(envelope)),
            _ => self.envelopes.of(endpoint, || self.new_envelope(endpoint)),
        }
    }

    /// How a conversation is written for a server.
    pub(crate) fn manner(&self, destination: &Destination) -> Manner {
        let profile = &destination.profile;
        Manner {
            form: profile.form,
            bridges_tool_and_user: profile.bridges_tool_and_user,
            opening: self.system_prompt.clone().filter(|_| self.system_role == SystemRole::User),
        }
    }

    /// How a conversation is written for the server that is asked first.
    pub(crate) fn own_manner(&self) -> Manner {
        self.endpoint().map(|endpoint| self.manner(&endpoint.0)).unwrap_or_default()
    }

    /// How the answers of a server are read.
    pub(crate) fn quirks(&self, destination: &Destination) -> Quirks {
        let mut quirks = self.quirks;
        quirks.think_tags = self.think_tags.unwrap_or(destination.profile.think_tags);
        quirks
    }

    /// Asks the same server over another transport.
    pub(crate) fn use_transport(&mut self, service: AnyService) -> Result<()> {
        let Asked::Server(endpoint) = &mut self.asked else {
            return Err(Error::config("a chat service of your own has its own transports"));
        };
        *endpoint = endpoint.over(service);
        Ok(())
    }

    /// Takes other tools. The executor keeps its options.
    pub(crate) fn set_tools(&mut self, tools: Registry) {
        let options = self.executor.options().clone();
        let offered = offered(&tools, &self.permissions);
        self.request.tools = offered.specs();
        self.executor = ToolExecutor::with_options(offered, options)
            .expect("these options were checked before");
        self.tools = tools;
    }

    /// Makes the envelope anew after a change.
    pub(crate) fn prepare(&mut self) -> Result<()> {
        self.envelopes = Envelopes::default();
        let envelope = self.endpoint().map(|endpoint| self.new_envelope(endpoint)).transpose()?;
        self.envelope = envelope.map(Arc::new);
        Ok(())
    }

    fn new_envelope(&self, endpoint: &Endpoint) -> Result<Envelope> {
        let destination = &*endpoint.0;
        let profile = &destination.profile;
        let mut request = self.request.clone();
        if let Some(model) = &destination.model {
            model.as_str().clone_into(&mut request.model);
        }
        request.include_usage = profile.asks_for_usage;
        request.token_limit = profile.token_limit;
        if let Some(thinking) = &self.thinking {
            let told =
                profile.thinking.and_then(|field| field.tell(thinking, &mut request.extra_body));
            told.ok_or_else(|| {
                Error::config(match destination.provider {
                    Some(provider) => format!("{} cannot be told {thinking:?}", provider.name()),
                    None => "thinking needs a provider: each is told in its own way".to_owned(),
                })
            })?;
        }
        let system_prompt =
            self.system_prompt.as_deref().filter(|_| self.system_role == SystemRole::System);
        Envelope::new(destination, system_prompt, &request)
    }
}

/// The tools that may run at all. Of others the model is told nothing.
pub(crate) fn offered(tools: &Registry, permissions: &Permissions) -> Registry {
    let mut offered = tools.clone();
    for name in tools.names().filter(|name| !permissions.offers(name)) {
        offered.remove(name);
    }
    offered
}

/// Envelopes for endpoints that somebody else has chosen.
#[derive(Default)]
pub(crate) struct Envelopes(Mutex<Vec<(Endpoint, Arc<Envelope>)>>);

/// How many are kept.
const MOST_ENVELOPES: usize = 64;

impl Envelopes {
    fn of(
        &self,
        endpoint: &Endpoint,
        make: impl FnOnce() -> Result<Envelope>,
    ) -> Result<Arc<Envelope>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, envelope)) = known.iter().find(|(other, _)| other.is(endpoint)) {
            return Ok(Arc::clone(envelope));
        }
        let envelope = Arc::new(make()?);
        if known.len() == MOST_ENVELOPES {
            known.remove(0);
        }
        known.push((endpoint.clone(), Arc::clone(&envelope)));
        Ok(envelope)
    }
}

impl Clone for Envelopes {
    /// They are for these settings, and whoever copies settings changes them.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentOptions")
            .field("request", &self.request)
            .field("endpoint", &self.endpoint())
            .field("server_profile", &self.server_profile)
            .field("system_prompt", &self.system_prompt)
            .field("timeouts", &self.timeouts)
            .field("limits", &self.limits)
            .field("think_tags", &self.think_tags)
            .field("quirks", &self.quirks)
            .field("tools", &self.tools)
            .field("hooks", &self.hooks)
            .field("permissions", &self.permissions)
            .field("turn", &self.turn)
            .field("max_run_time", &self.max_run_time)
            .field("retry", &self.retry)
            .field("executor", &self.executor.options())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
