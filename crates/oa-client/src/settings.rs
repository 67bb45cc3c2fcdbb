//! What the options come to once they are checked.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use oa_aggregate::{ArgumentRepair, Quirks, ThinkTags};
use oa_executor::ToolExecutor;
use oa_hooks::{Hooks, Permissions};
use oa_tools::{Registry, State};
use oa_transport::Timeouts;
use oa_types::wire::RequestOptions as Wire;
use oa_types::{ModelName, Price};
use tower::Service;

use crate::answer::AnswerStream;
use crate::builder::NO_MODEL;
use crate::chat::{self, AnyChat, ChatRequest};
use crate::dialect::{Spoken, ToolMode};
use crate::endpoint::{Destination, Endpoint};
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::manner::Manner;
use crate::options::{Limits, SystemRole};
use crate::pipeline::OnBadChunk;
use crate::profile::Profile;
use crate::provider::Provider;
use crate::retry::{Budget, RetryConfig};
use crate::server_profile::ServerProfile;
use crate::service::AnyService;
use crate::structured::{Asking, Form};
use crate::thinking::Thinking;

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
    pub(crate) repair: Option<ArgumentRepair>,
    pub(crate) on_bad_chunk: OnBadChunk,
    pub(crate) tools: Registry,
    pub(crate) hooks: Hooks,
    pub(crate) permissions: Permissions,
    pub(crate) turn: oa_turn::Options,
    pub(crate) max_run_time: Option<Duration>,
    pub(crate) price: Option<Price>,
    pub(crate) executor: ToolExecutor,
    pub(crate) state: State,
    pub(crate) retry: RetryConfig,
    /// Shared by all who have these options.
    pub(crate) retry_budget: Arc<Budget>,
    pub(crate) tool_mode: ToolMode,
    /// Whether calls are looked for in text that the server should have read.
    pub(crate) recognizes_calls: bool,
    /// What calls are made in where they are text.
    pub(crate) spoken: Option<Arc<Spoken>>,
    /// What the form of an answer is in words, where it may be asked for so.
    pub(crate) form: Option<Form>,
    /// Made of what is above, for the server that is asked.
    pub(crate) envelope: Option<Arc<Envelope>>,
    /// The same for others.
    pub(crate) envelopes: Envelopes,
}

impl Asked {
    /// Has a request answered.
    pub(crate) async fn answer(&self, request: &ChatRequest) -> Result<AnswerStream> {
        match self {
            Self::Server(endpoint) => chat::answer(endpoint, request).await,
            // It is always ready.
            Self::Service(service) => service.clone().call(request.clone()).await,
        }
    }
}

impl Settings {
    /// Explains why nothing can be asked.
    pub(crate) fn check_usable(&self) -> Result<()> {
        self.unusable.as_ref().map_or(Ok(()), |why| Err(Error::config(why)))
    }

    /// Asks another model.
    pub(crate) fn set_model(&mut self, model: &ModelName) {
        model.as_str().clone_into(&mut self.request.model);
        // An environment that cannot be used has other faults than that.
        self.unusable = self.unusable.take().filter(|why| why != NO_MODEL);
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

    /// The envelope for requests to an endpoint, in text or not.
    pub(crate) fn envelope(
        &self,
        endpoint: &Endpoint,
        in_text: bool,
        asking: Asking,
    ) -> Result<Arc<Envelope>> {
        let make = || self.new_envelope(endpoint, in_text, asking);
        match (&self.asked, &self.envelope) {
            (Asked::Server(own), Some(envelope))
                if own.is(endpoint)
                    && in_text == self.tool_mode.is_text()
                    && asking == Asking::default() =>
            {
                Ok(Arc::clone(envelope))
            }
            _ => self.envelopes.of(endpoint, (in_text, asking), make),
        }
    }

    /// What calls are made in with a server, if they are text there.
    pub(crate) fn spoken(&self, destination: &Destination) -> Option<&Arc<Spoken>> {
        let learned = &destination.learned.without_tools;
        self.spoken.as_ref().filter(|_| {
            self.tool_mode.is_text() || learned.get(self.model_at(destination)).is_some()
        })
    }

    /// How a server is asked for the form of an answer.
    pub(crate) fn asking(&self, destination: &Destination) -> Asking {
        let Some(form) = &self.form else { return Asking::default() };
        let learned = destination.learned.asking.get(self.model_at(destination));
        form.first.max(learned.unwrap_or_default())
    }

    /// A system prompt, with the form of the answer where that is asked for in words.
    fn with_form(&self, prompt: Option<&Arc<str>>, asking: Asking) -> Option<Arc<str>> {
        let prompt = prompt.filter(|prompt| !prompt.is_empty());
        match (&self.form, prompt) {
            (Some(form), None) if asking > Asking::Schema => Some(Arc::clone(&form.words)),
            (Some(form), Some(prompt)) if asking > Asking::Schema => {
                Some(format!("{prompt}\n\n{}", form.words).into())
            }
            _ => prompt.cloned(),
        }
    }

    /// What a server calls the model.
    pub(crate) fn model_at<'a>(&'a self, destination: &'a Destination) -> &'a str {
        destination.model.as_ref().map_or(&self.request.model, ModelName::as_str)
    }

    /// What a server wants to be different for the model.
    pub(crate) fn profile<'a>(&self, destination: &'a Destination) -> &'a Profile {
        destination.profile(self.model_at(destination))
    }

    /// How a conversation is written for a server.
    pub(crate) fn manner(
        &self,
        destination: &Destination,
        spoken: Option<&Arc<Spoken>>,
        asking: Asking,
    ) -> Manner {
        let profile = self.profile(destination);
        let system_prompt = spoken.map(|spoken| &spoken.system_prompt);
        let system_prompt = || system_prompt.or(self.system_prompt.as_ref());
        let is_said = self.system_role == SystemRole::User;
        Manner {
            form: profile.form,
            bridges_tool_and_user: profile.bridges_tool_and_user && spoken.is_none(),
            lets_assistant_begin: profile.lets_assistant_begin,
            user_instructs: is_said,
            opening: is_said.then(|| self.with_form(system_prompt(), asking)).flatten(),
            spoken: spoken.cloned(),
        }
    }

    /// How a conversation is written for the server that is asked first.
    pub(crate) fn own_manner(&self) -> Manner {
        let manner = |Endpoint(destination): &Endpoint| {
            self.manner(destination, self.spoken(destination), self.asking(destination))
        };
        self.endpoint().map(manner).unwrap_or_default()
    }

    /// How the answers of a server are read.
    pub(crate) fn quirks(&self, destination: &Destination) -> Quirks {
        let mut quirks = destination.quirks.unwrap_or_default();
        let said = (quirks.think_tags != ThinkTags::default()).then_some(quirks.think_tags);
        let usual = || self.profile(destination).think_tags;
        quirks.think_tags = self.think_tags.or(said).unwrap_or_else(usual);
        quirks.repair = self.repair.unwrap_or(quirks.repair);
        quirks
    }

    /// As [`quirks`](Self::quirks), as far as the server that is asked is known.
    pub(crate) fn own_quirks(&self) -> Quirks {
        let unknown = || {
            let mut quirks = Quirks::default();
            quirks.think_tags = self.think_tags.unwrap_or_default();
            quirks.repair = self.repair.unwrap_or_default();
            quirks
        };
        self.endpoint().map_or_else(unknown, |Endpoint(destination)| self.quirks(destination))
    }

    /// Asks the same server over another transport.
    pub(crate) fn use_transport(&mut self, service: AnyService) -> Result<()> {
        let Asked::Server(endpoint) = &mut self.asked else {
            return Err(Error::config("a chat service of your own has its own transports"));
        };
        *endpoint = endpoint.over(service)?;
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
        let spoken =
            Spoken::new(&self.tool_mode, &self.request.tools, self.system_prompt.as_deref());
        self.spoken = spoken.map(Arc::new);
        let in_text = self.tool_mode.is_text();
        let asking = Asking::default();
        let envelope = self.endpoint().map(|endpoint| self.new_envelope(endpoint, in_text, asking));
        self.envelope = envelope.transpose()?.map(Arc::new);
        Ok(())
    }

    /// Out of line, so that others who ask for one need no room for it.
    #[inline(never)]
    fn new_envelope(&self, endpoint: &Endpoint, in_text: bool, asking: Asking) -> Result<Envelope> {
        let destination = &*endpoint.0;
        let profile = self.profile(destination);
        let mut request = self.request.clone();
        self.model_at(destination).clone_into(&mut request.model);
        let spoken = self.spoken.as_ref().filter(|_| in_text);
        if let Some(spoken) = spoken {
            request.tools.clear();
            if !spoken.tools.is_empty() {
                request.stop.extend(spoken.dialect.stop());
            }
        }
        asking.put(&mut request);
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
        let bare = self.system_prompt.as_ref();
        let with_tools = spoken.map_or(bare, |spoken| Some(&spoken.system_prompt));
        let is_message = self.system_role == SystemRole::System;
        let prompts =
            [bare, with_tools].map(|prompt| self.with_form(prompt, asking).filter(|_| is_message));
        Envelope::new(destination, prompts, &request)
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

/// Envelopes for endpoints that somebody else has chosen, and for those where calls turned out to be text.
#[derive(Default)]
pub(crate) struct Envelopes(Mutex<Vec<Kept>>);

struct Kept {
    endpoint: Endpoint,
    way: Way,
    envelope: Arc<Envelope>,
}

/// Whether calls are text, and how the form of the answer is asked for.
type Way = (bool, Asking);

/// How many are kept.
const MOST_ENVELOPES: usize = 64;

impl Envelopes {
    fn of(
        &self,
        endpoint: &Endpoint,
        way: Way,
        make: impl FnOnce() -> Result<Envelope>,
    ) -> Result<Arc<Envelope>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |kept: &&Kept| kept.endpoint.is(endpoint) && kept.way == way;
        if let Some(kept) = known.iter().find(is_it) {
            return Ok(Arc::clone(&kept.envelope));
        }
        let envelope = Arc::new(make()?);
        if known.len() == MOST_ENVELOPES {
            known.remove(0);
        }
        let kept = Kept { endpoint: endpoint.clone(), way, envelope: Arc::clone(&envelope) };
        known.push(kept);
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
            .field("quirks", &self.own_quirks())
            .field("tools", &self.tools)
            .field("tool_mode", &self.tool_mode)
            .field("hooks", &self.hooks)
            .field("permissions", &self.permissions)
            .field("turn", &self.turn)
            .field("max_run_time", &self.max_run_time)
            .field("price", &self.price)
            .field("on_bad_chunk", &self.on_bad_chunk)
            .field("retry", &self.retry)
            .field("executor", &self.executor.options())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
