//! The server and the model under examination, and how requests are sent to them.

use std::time::Duration;

use oa_aggregate::ThinkTags;
use oa_chat::{ChatOptions, Endpoint, Error, RawChat, RawResponse, Result, ServerTraits, Target};
use oa_transport::Timeouts;
use oa_types::Message;
use oa_types::wire::{ChatParameters, Demands, TokenLimit};
use serde_json::Value;
use tokio::time::Instant;

use crate::observed::Observed;
use crate::quote::Quotes;
use crate::tap::Tap;

/// The members that probes set themselves; the rest of the caller's `extra_body` stays.
const OURS: [&str; 9] = [
    "max_completion_tokens",
    "max_tokens",
    "n",
    "parallel_tool_calls",
    "response_format",
    "stop",
    "stream_options",
    "tool_choice",
    "tools",
];

/// A server and a model, with the options of requests to them.
#[derive(Debug)]
pub(crate) struct ProbeTarget {
    pub(crate) options: ChatOptions,
    pub(crate) endpoint: Endpoint,
    /// The server's quirks, if known.
    pub(crate) traits: ServerTraits,
    pub(crate) quotes: Quotes,
    pub(crate) max_tokens: u32,
    pub(crate) time_limit: Duration,
    /// The deadline of the whole examination.
    pub(crate) deadline: Instant,
}

impl ProbeTarget {
    /// Requests the list of models.
    pub(crate) async fn models(&self) -> Result<RawResponse> {
        self.endpoint.fetch(Target::Models, self.timeouts()).await
    }

    /// Requests a page, by its path from the root of the server.
    pub(crate) async fn page(&self, path: &str) -> Result<RawResponse> {
        self.endpoint.fetch(Target::Page(path), self.timeouts()).await
    }

    /// Sends this body unchanged to the chat path.
    pub(crate) async fn post(&self, body: &Value) -> Result<RawResponse> {
        self.endpoint.fetch(Target::Chat(body), self.timeouts()).await
    }

    /// Requests an answer to a short conversation, with the options' sampling and the changes of `change`.
    pub(crate) async fn chat(
        &self,
        messages: &[Message],
        change: impl FnOnce(&mut ChatParameters),
    ) -> Result<Observed> {
        let options = &self.options;
        let mut parameters = options.parameters.clone();
        parameters.tools.clear();
        (parameters.tool_choice, parameters.parallel_tool_calls) = (None, None);
        (parameters.response_format, parameters.max_tokens) = (None, Some(self.max_tokens));
        parameters.stop.clear();
        parameters.include_usage = self.traits.asks_for_usage;
        parameters.token_limit = self.traits.token_limit;
        parameters.extra_body.retain(|name, _| !OURS.contains(&&**name));
        if let (Some(thinking), Some(field)) = (&options.thinking, self.traits.thinking) {
            field.set(thinking, &mut parameters.extra_body);
        }
        change(&mut parameters);

        // As clients do, a request that the server refuses to stream is sent again (QUIRKS row 143).
        let mut demands = Demands::default();
        match self.send(messages, &parameters).await {
            Err(error) if error.adds_to(&mut demands) && demands.whole_answers => {
                demands.apply_to_parameters(&mut parameters);
                let mut observed = self.send(messages, &parameters).await?;
                observed.unstreamed = Some(error);
                Ok(observed)
            }
            answer => answer,
        }
    }

    async fn send(&self, messages: &[Message], parameters: &ChatParameters) -> Result<Observed> {
        let limits = self.options.limits;
        let mut chat = RawChat::new(parameters, messages);
        (chat.traits, chat.limits, chat.timeouts) = (self.traits, limits, self.timeouts());
        // Tags must stay visible.
        chat.quirks.think_tags = ThinkTags::Off;
        let (mut tap, seen) = Tap::new(limits.events);
        let asked = Instant::now();
        let answer = self.endpoint.open(chat, move |bytes| tap.look(bytes)).await?;
        Observed::read(answer, &seen, asked, parameters.max_tokens).await
    }

    fn timeouts(&self) -> Timeouts {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let mut timeouts = Timeouts::default();
        // One limit for the whole request: a slow phase is a finding, not an error.
        (timeouts.first_token, timeouts.idle, timeouts.content) = (None, None, None);
        timeouts.total = Some(self.time_limit.min(left));
        timeouts
    }

    /// Returns the name of the member that bounds an answer.
    pub(crate) fn token_limit_name(&self) -> &'static str {
        name_of(self.traits.token_limit)
    }

    /// Switches to the other name of that member.
    pub(crate) fn swap_token_limit(&mut self) {
        self.traits.token_limit = other_than(self.traits.token_limit);
    }

    /// Returns an error's text, made safe to show.
    pub(crate) fn quote(&self, error: &Error) -> String {
        self.quotes.quote(&error.to_string())
    }
}

/// Returns the name of a member that bounds an answer.
pub(crate) fn name_of(limit: TokenLimit) -> &'static str {
    match limit {
        TokenLimit::MaxCompletionTokens => "max_completion_tokens",
        _ => "max_tokens",
    }
}

/// Returns the other of these members.
pub(crate) fn other_than(limit: TokenLimit) -> TokenLimit {
    match limit {
        TokenLimit::MaxCompletionTokens => TokenLimit::MaxTokens,
        _ => TokenLimit::MaxCompletionTokens,
    }
}
