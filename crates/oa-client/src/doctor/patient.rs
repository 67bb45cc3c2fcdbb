use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, StatusCode};
use oa_aggregate::ThinkTags;
use oa_transport::{RequestBody, Timeouts, Watch};
use oa_types::Message;
use oa_types::wire::{RequestOptions, TokenLimit, write_message};
use serde_json::Value;
use tokio::time::Instant;

use super::observed::Observed;
use super::quote::Quotes;
use crate::answer::AnswerStream;
use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, Wanted};
use crate::error::{Error, Result, server_error};
use crate::pipeline::PipelineOptions;
use crate::profile::Profile;
use crate::service::{collect, collect_some, head, readable};
use crate::settings::Settings;
use crate::structured::Asking;

/// What probes say for themselves; the rest of what the user merges into requests stays.
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

/// A server and a model, as they are asked.
#[derive(Debug)]
pub(super) struct Patient {
    pub(super) settings: Arc<Settings>,
    pub(super) endpoint: Endpoint,
    /// The server's quirks, as far as they are known by now.
    pub(super) profile: Profile,
    pub(super) quotes: Quotes,
    pub(super) max_tokens: u32,
    pub(super) time_limit: Duration,
    /// When all has to be over.
    pub(super) deadline: Instant,
}

/// An answer that is no chat.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    pub(super) took: Duration,
}

impl Reply {
    /// The body, or null.
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The server's words about what is wrong.
    pub(super) fn complaint(&self, quotes: &Quotes) -> String {
        quotes.quote(&server_error(&self.body, quotes.secrets()).message)
    }
}

impl Patient {
    /// Asks for the list of models.
    pub(super) async fn models(&self) -> Result<Reply> {
        self.get(self.envelope()?.models()).await
    }

    /// Asks for a page beside the one that chats are sent to, from the root of the server.
    pub(super) async fn page(&self, path: &str) -> Result<Reply> {
        let mut request = self.envelope()?.models();
        *request.uri_mut() = self.endpoint.0.at_root(path)?;
        self.get(request).await
    }

    /// Sends a body that is no chat request.
    pub(super) async fn post(&self, body: &Value) -> Result<Reply> {
        let mut request =
            self.envelope()?.chat(None, &[], b"", Wanted { tools: false, usage: false });
        *request.body_mut() = RequestBody::new(body.to_string());
        self.get(request).await
    }

    async fn get(&self, request: Request<RequestBody>) -> Result<Reply> {
        let mut watch = self.watch();
        let asked = Instant::now();
        let response = head(&self.endpoint, request, &mut watch).await?;
        let took = asked.elapsed();
        let (head, body) = response.into_parts();
        let body = collect(body, &mut watch).await?;
        Ok(Reply { status: head.status, headers: head.headers, body, took })
    }

    /// Asks the model, and reads its answer to the end, or to a time or a length at which it has been
    /// seen enough of.
    ///
    /// # Errors
    ///
    /// Where nothing of an answer came.
    pub(super) async fn chat(
        &self,
        messages: &[Message],
        change: impl FnOnce(&mut RequestOptions),
    ) -> Result<Observed> {
        let settings = &self.settings;
        let mut request = settings.request.clone();
        request.tools.clear();
        (request.tool_choice, request.parallel_tool_calls) = (None, None);
        (request.response_format, request.max_tokens) = (None, Some(self.max_tokens));
        request.stop.clear();
        request.include_usage = self.profile.asks_for_usage;
        request.token_limit = self.profile.token_limit;
        request.extra_body.retain(|name, _| !OURS.contains(&&**name));
        if let (Some(thinking), Some(field)) = (&settings.thinking, self.profile.thinking) {
            field.tell(thinking, &mut request.extra_body);
        }
        change(&mut request);

        let envelope = Envelope::new(&self.endpoint.0, [None, None], &request)?;
        // The bracket is in the envelope, which takes this one for the comma before the first.
        let mut written = vec![b'['];
        for message in messages {
            write_message(message, &self.profile.form, &mut written);
        }
        let wanted = Wanted { tools: true, usage: true };
        let http = envelope.chat(None, &[], &written, wanted);

        let mut watch = self.watch();
        let asked = Instant::now();
        let response = head(&self.endpoint, http, &mut watch).await?;
        if !response.status().is_success() {
            let (head, body) = response.into_parts();
            let body = collect_some(body, &mut watch).await;
            let secrets = &self.endpoint.0.secrets;
            return Err(Error::response(head.status, &head.headers, &body, secrets));
        }
        let response = readable(response)?;
        let mut options = PipelineOptions { parser: settings.limits.events, ..Default::default() };
        options.aggregator.limits = settings.limits.answer;
        // Tags are to be seen.
        options.aggregator.quirks.think_tags = ThinkTags::Off;
        let (tapped, seen) = Observed::tap(response, options.parser);
        let mut answer = AnswerStream::new(self.endpoint.clone(), tapped, options, watch);
        let mut observed = Observed::new(asked, request.max_tokens);
        while let Some(more) =
            poll_fn(|cx| answer.poll_next(cx, |delta| Some(observed.note(delta, &seen)))).await
        {
            if !more {
                break;
            }
        }
        observed.conclude(answer, &seen).await
    }

    fn envelope(&self) -> Result<Arc<Envelope>> {
        let in_text = self.settings.tool_mode.is_text();
        self.settings.envelope(&self.endpoint, in_text, Asking::default())
    }

    /// The time that one request may take.
    fn watch(&self) -> Watch {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let mut timeouts = Timeouts::default();
        (timeouts.first_token, timeouts.idle, timeouts.content) = (None, None, None);
        timeouts.total = Some(self.time_limit.min(left));
        Watch::new(timeouts)
    }

    /// The name under which the longest answer is sent.
    pub(super) fn token_limit_name(&self) -> &'static str {
        match self.profile.token_limit {
            TokenLimit::MaxCompletionTokens => "max_completion_tokens",
            _ => "max_tokens",
        }
    }

    /// Takes the other name.
    pub(super) fn swap_token_limit(&mut self) {
        self.profile.token_limit = match self.profile.token_limit {
            TokenLimit::MaxCompletionTokens => TokenLimit::MaxTokens,
            _ => TokenLimit::MaxCompletionTokens,
        };
    }

    /// What went wrong, as it may be shown.
    pub(super) fn quote(&self, error: &Error) -> String {
        self.quotes.quote(&error.to_string())
    }
}
