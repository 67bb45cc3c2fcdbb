//! Options with the request bytes derived from them.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use oa_aggregate::{Quirks, ThinkTags};
use oa_output::FormatRequest;
use oa_types::ModelName;
use oa_types::wire::ResultImages;

use crate::destination::Destination;
use crate::dialect::{TextDialect, ToolMode};
use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, Offer};
use crate::error::{Error, Result};
use crate::negotiation::Way;
use crate::options::{ChatOptions, SystemRole};
use crate::server_traits::ServerTraits;
use crate::wire_format::WireFormat;

/// [`ChatOptions`] shared by many requests, with the bytes that those have in common. Cheap to clone.
///
/// Dereferences to the options.
#[derive(Clone)]
pub struct PreparedOptions(Arc<Prepared>);

struct Prepared {
    options: ChatOptions,
    /// The dialect, if calls are in text.
    dialect: Option<Arc<TextDialect>>,
    /// The dialect for servers known to constrain answers to a schema, if the mode leaves the choice.
    held: OnceLock<Option<Arc<TextDialect>>>,
    /// The envelope for the first server, with its address.
    first: Option<(Arc<Destination>, Arc<Envelope>)>,
    others: Envelopes,
}

impl PreparedOptions {
    /// Prepares options for any server.
    #[must_use]
    pub fn new(options: ChatOptions) -> Self {
        Self(Arc::new(Prepared::new(options)))
    }

    /// Prepares options for a server, and checks that the server supports them. The first request is then cheaper.
    ///
    /// # Errors
    ///
    /// `Config` if the server does not support an option, such as an amount of thinking.
    pub fn for_endpoint(options: ChatOptions, endpoint: &Endpoint) -> Result<Self> {
        let destination = &endpoint.0;
        let mut prepared = Prepared::new(options);
        let way = Way::first(prepared.options.tool_mode.is_text());
        let envelope = prepared.new_envelope(destination, way)?;
        prepared.first = Some((Arc::clone(destination), Arc::new(envelope)));
        Ok(Self(Arc::new(prepared)))
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &ChatOptions {
        &self.0.options
    }

    /// Returns `true` if both share the same options; `false` for equal options that were prepared separately.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the dialect for a server, if calls may be in text.
    pub(crate) fn dialect(&self, destination: &Destination) -> Option<&Arc<TextDialect>> {
        self.0.dialect(destination)
    }

    /// Returns the form of the first request to a server, given what is known about it.
    pub(crate) fn first_way(&self, destination: &Destination) -> Way {
        let learned = &destination.learned;
        let model = self.model_at(destination);
        let dialect = self.dialect(destination);
        let is_text = self.tool_mode.is_text()
            || (dialect.is_some() && learned.without_tools.get(model).is_some());
        let mut way = Way::first(is_text);
        let is_held = is_text && dialect.is_some_and(|dialect| dialect.format.is_some());
        let of_dialect = is_held.then(FormatRequest::default);
        if let Some(first) = self.format_fallback.as_ref().map(|it| it.first).or(of_dialect) {
            // Weaker requests are greater, so this is the weaker one of what is wanted and what is accepted.
            way.format = first.max(learned.format.get(model).unwrap_or_default());
        }
        way.usage = learned.takes_usage();
        way.tool_choice = !self.tool_choice_fallback || learned.without_choice.get(model).is_none();
        way.demands = learned.demands.get(model).unwrap_or_default();
        way
    }

    /// Returns the envelope for requests of this form.
    pub(crate) fn envelope(
        &self,
        destination: &Arc<Destination>,
        way: Way,
    ) -> Result<Arc<Envelope>> {
        let prepared = &*self.0;
        if let Some((first, envelope)) = &prepared.first
            && Arc::ptr_eq(first, destination)
            && way.is_like(Way::first(prepared.options.tool_mode.is_text()))
        {
            return Ok(Arc::clone(envelope));
        }
        prepared.others.of(destination, way, || prepared.new_envelope(destination, way))
    }

    /// Returns the number of bytes around the messages of a request to the first server, if that is known.
    #[must_use]
    pub fn overhead(&self, tools: bool) -> Option<usize> {
        let (_, envelope) = self.0.first.as_ref()?;
        Some(envelope.length(Offer { tools, usage: true }))
    }

    /// Returns the server's own name for the model.
    pub(crate) fn model_at<'a>(&'a self, destination: &'a Destination) -> &'a str {
        self.0.model_at(destination)
    }

    /// Returns the format for writing a conversation to a server. `tools` is true if the request offers tools.
    pub(crate) fn wire_format(&self, to: &Destination, way: Way, tools: bool) -> WireFormat {
        let traits = self.0.traits(to);
        let dialect = self.dialect(to).filter(|_| way.calls_are_text);
        let system_prompt = || {
            let with_tools = dialect.filter(|_| tools).map(|dialect| &dialect.system_prompt);
            with_tools.or(self.0.options.system_prompt.as_ref())
        };
        let is_said = self.system_role == SystemRole::User;
        let opening = || self.0.with_instructions(system_prompt(), way.format);
        let mut messages = traits.format;
        if self.result_images == ResultImages::Inline {
            messages.result_images = ResultImages::Inline;
        }
        messages.thinking = self.thinking_replay.unwrap_or(messages.thinking);
        way.demands.apply(&mut messages);
        WireFormat {
            messages,
            bridges_tool_and_user: traits.bridges_tool_and_user && dialect.is_none(),
            lets_assistant_begin: traits.lets_assistant_begin,
            user_instructs: is_said,
            opening: is_said.then(opening).flatten(),
            dialect: dialect.cloned(),
        }
    }

    /// Returns the quirks for reading a server's answers; without a server, those of the options alone.
    #[must_use]
    pub fn quirks_at(&self, endpoint: Option<&Endpoint>) -> Quirks {
        self.quirks(endpoint.map(|endpoint| &*endpoint.0))
    }

    /// Returns the quirks for reading a server's answers; without a server, those of the options alone.
    pub(crate) fn quirks(&self, destination: Option<&Destination>) -> Quirks {
        let mut quirks = destination.and_then(|it| it.quirks).unwrap_or_default();
        let set = (quirks.think_tags != ThinkTags::default()).then_some(quirks.think_tags);
        let usual = || destination.map(|it| self.0.traits(it).think_tags).unwrap_or_default();
        quirks.think_tags = self.think_tags.or(set).unwrap_or_else(usual);
        quirks.repair = self.repair.unwrap_or(quirks.repair);
        quirks
    }
}

impl Prepared {
    fn new(options: ChatOptions) -> Self {
        let dialect = text_dialect(&options.tool_mode, &options);
        let (held, others) = (OnceLock::new(), Envelopes::default());
        Self { options, dialect, held, first: None, others }
    }

    fn dialect(&self, destination: &Destination) -> Option<&Arc<TextDialect>> {
        let known = destination.known.as_ref().filter(|known| known.keeps_schema == Some(true));
        if self.options.tool_mode == ToolMode::Auto
            && known.is_some_and(|known| known.name == self.model_at(destination))
        {
            let new = || text_dialect(&ToolMode::Constrained, &self.options);
            return self.held.get_or_init(new).as_ref();
        }
        self.dialect.as_ref()
    }

    fn model_at<'a>(&'a self, destination: &'a Destination) -> &'a str {
        destination.model.as_ref().map_or(&self.options.parameters.model, ModelName::as_str)
    }

    fn traits<'a>(&self, destination: &'a Destination) -> &'a ServerTraits {
        destination.traits(self.model_at(destination))
    }

    /// Returns the system prompt, with the format instructions if they are needed.
    fn with_instructions(
        &self,
        prompt: Option<&Arc<str>>,
        format: FormatRequest,
    ) -> Option<Arc<str>> {
        let prompt = prompt.filter(|prompt| !prompt.is_empty());
        let fallback =
            self.options.format_fallback.as_ref().filter(|_| format > FormatRequest::Schema);
        match (fallback, prompt) {
            (Some(fallback), None) => Some(Arc::clone(&fallback.instructions)),
            (Some(fallback), Some(prompt)) => {
                Some(format!("{prompt}\n\n{}", fallback.instructions).into())
            }
            (None, prompt) => prompt.cloned(),
        }
    }

    /// Out of line, so that the usual case, a cache hit, needs no stack for it.
    #[inline(never)]
    fn new_envelope(&self, destination: &Destination, way: Way) -> Result<Envelope> {
        let traits = self.traits(destination);
        let mut parameters = self.options.parameters.clone();
        self.model_at(destination).clone_into(&mut parameters.model);
        let dialect = self.dialect(destination).filter(|_| way.calls_are_text);
        if let Some(dialect) = dialect
            && !dialect.tools.is_empty()
        {
            parameters.stop.extend(dialect.dialect.stop());
        }
        parameters.include_usage = traits.asks_for_usage;
        parameters.tool_choice = parameters.tool_choice.filter(|_| way.tool_choice);
        parameters.token_limit = way.demands.token_limit(traits.token_limit);
        if self.options.prompt_progress && traits.reports_prompt_progress {
            parameters.extra_body.entry("return_progress").or_insert(true.into());
        }
        if let Some(thinking) = &self.options.thinking {
            let why = "thinking requires a provider, because each has its own member for it; extra_body can set it, too";
            let field = traits.thinking.ok_or_else(|| Error::config(why))?;
            if way.demands.allow(thinking) {
                field.set(thinking, &mut parameters.extra_body);
            }
        }
        let mut with_tools = parameters.clone();
        parameters.tools.clear();
        if self.options.format_fallback.is_some() {
            way.format.apply(&mut parameters);
        }
        if let Some(dialect) = dialect {
            with_tools.tools.clear();
            if dialect.format.is_some() {
                with_tools.response_format.clone_from(&dialect.format);
            }
        }
        way.format.apply(&mut with_tools);
        way.demands.apply_to_parameters(&mut parameters);
        way.demands.apply_to_parameters(&mut with_tools);
        let requests = [&parameters, &with_tools];
        let bare = self.options.system_prompt.as_ref();
        let with_tools = dialect.map_or(bare, |dialect| Some(&dialect.system_prompt));
        let is_message = self.options.system_role == SystemRole::System;
        let prompts = [bare, with_tools]
            .map(|prompt| self.with_instructions(prompt, way.format).filter(|_| is_message));
        Envelope::new(destination, prompts, requests)
    }
}

fn text_dialect(mode: &ToolMode, options: &ChatOptions) -> Option<Arc<TextDialect>> {
    let ChatOptions { parameters, system_prompt, .. } = options;
    TextDialect::new(mode, parameters, system_prompt.as_deref()).map(Arc::new)
}

impl Deref for PreparedOptions {
    type Target = ChatOptions;

    fn deref(&self) -> &ChatOptions {
        &self.0.options
    }
}

impl From<ChatOptions> for PreparedOptions {
    fn from(options: ChatOptions) -> Self {
        Self::new(options)
    }
}

impl PartialEq for PreparedOptions {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.0.options == other.0.options
    }
}

impl fmt::Debug for PreparedOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.options.fmt(f)
    }
}

/// Envelopes for servers chosen by a router, and for fallbacks after a rejection.
#[derive(Default)]
struct Envelopes(Mutex<Vec<Kept>>);

struct Kept {
    destination: Arc<Destination>,
    way: Way,
    envelope: Arc<Envelope>,
}

/// The maximum number of envelopes kept.
const MOST_ENVELOPES: usize = 64;

impl Envelopes {
    fn of(
        &self,
        destination: &Arc<Destination>,
        way: Way,
        make: impl FnOnce() -> Result<Envelope>,
    ) -> Result<Arc<Envelope>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The kept `Arc` keeps its address from being reused, so equal pointers are equal servers.
        let is_it =
            |kept: &&Kept| Arc::ptr_eq(&kept.destination, destination) && kept.way.is_like(way);
        if let Some(kept) = kept.iter().find(is_it) {
            return Ok(Arc::clone(&kept.envelope));
        }
        let envelope = Arc::new(make()?);
        if kept.len() == MOST_ENVELOPES {
            kept.remove(0);
        }
        let destination = Arc::clone(destination);
        kept.push(Kept { destination, way, envelope: Arc::clone(&envelope) });
        Ok(envelope)
    }
}
