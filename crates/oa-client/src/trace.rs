//! Spans, named as in OpenTelemetry's conventions for generative AI: `invoke_agent` for a turn, in it `chat` for each
//! request and `execute_tool` for each call. None of them records content.

use std::collections::HashMap;

use oa_aggregate::Problem;
use oa_chat::{Endpoint, Provider, ServerAddress};
use oa_context::{CacheMiss, PromptCut};
use oa_events::AgentEvent;
use oa_executor::ToolEvent;
use oa_redact::Secrets;
use oa_types::{AssistantMessage, FinishReason, Outcome};
use tracing::field::Empty;
use tracing::{Span, info_span, warn};

use crate::error::{Error, ErrorKind};
use crate::settings::Settings;

/// The part of a word of the server that is recorded, in characters.
const WORD: usize = 200;

/// The spans of one turn.
#[derive(Debug)]
pub(crate) struct Trace {
    turn: Span,
    chat: Span,
    /// The keys that the server may repeat.
    secrets: Secrets,
    tools: HashMap<String, Span>,
}

impl Trace {
    pub(crate) fn begin(settings: &Settings) -> Box<Self> {
        let turn = info_span!(
            "invoke_agent",
            gen_ai.operation.name = "invoke_agent",
            gen_ai.request.model = settings.chat.parameters.model,
            gen_ai.response.finish_reasons = Empty,
            error.type = Empty,
        );
        let endpoint = settings.endpoint().filter(|_| !turn.is_disabled());
        let secrets = endpoint.map(|endpoint| endpoint.secrets().clone()).unwrap_or_default();
        Box::new(Self { turn, chat: Span::none(), secrets, tools: HashMap::new() })
    }

    pub(crate) fn request(&mut self, settings: &Settings, model: &str) {
        let request = &settings.chat.parameters;
        let endpoint = settings.endpoint().filter(|_| !self.turn.is_disabled());
        // A URL may contain a password, so spans get the host and the port alone.
        let server = endpoint.and_then(|endpoint| ServerAddress::of(endpoint.base_url()));
        self.chat = info_span!(
            parent: &self.turn,
            "chat",
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = endpoint.and_then(Endpoint::provider).map(Provider::telemetry_name),
            gen_ai.request.model = model,
            gen_ai.request.max_tokens = request.max_tokens,
            gen_ai.request.temperature = request.temperature,
            gen_ai.request.top_p = request.top_p,
            gen_ai.request.seed = request.seed,
            gen_ai.response.id = Empty,
            gen_ai.response.model = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            server.address = server.as_ref().map(|server| &*server.host),
            server.port = server.as_ref().map(|server| server.port),
            error.type = Empty,
        );
    }

    /// Masks the keys of the server that an answer came from, which a chat service may have chosen.
    pub(crate) fn came_from(&mut self, secrets: &Secrets) {
        if !self.turn.is_disabled() {
            self.secrets.clone_from(secrets);
        }
    }

    pub(crate) fn answer(&mut self, message: &AssistantMessage, failure: Option<&Error>) {
        let chat = std::mem::replace(&mut self.chat, Span::none());
        if chat.is_disabled() {
            return;
        }
        let record = |name: &str, word: &str| {
            chat.record(name, &*self.secrets.excerpt(word, WORD));
        };
        record("gen_ai.response.finish_reasons", message.finish_reason.as_str());
        if let Some(id) = &message.id {
            record("gen_ai.response.id", id);
        }
        if let Some(model) = &message.model {
            record("gen_ai.response.model", model);
        }
        let usage = message.usage.unwrap_or_default();
        if let Some(tokens) = usage.prompt_tokens {
            chat.record("gen_ai.usage.input_tokens", tokens);
        }
        if let Some(tokens) = usage.completion_tokens {
            chat.record("gen_ai.usage.output_tokens", tokens);
        }
        if let Some(failure) = failure {
            chat.record("error.type", failure.kind().as_str());
        }
    }

    /// Logs an event that makes answers worse, such as dropped messages or a cut answer. The server is not quoted.
    pub(crate) fn warn(&self, event: &AgentEvent) {
        let _entered = self.turn.enter();
        match event {
            AgentEvent::CacheMiss(CacheMiss {
                cached_before, cached_now, first_changed, ..
            }) => {
                warn!(
                    cached_before,
                    cached_now,
                    ?first_changed,
                    "the prompt cache was mostly lost"
                );
            }
            AgentEvent::PromptCut(PromptCut { estimated, reported, .. }) => {
                warn!(estimated, reported, "the server seems to have cut the prompt");
            }
            AgentEvent::FormatRefused(_) => {
                warn!("the server rejected the format or the tool choice: using a weaker one");
            }
            AgentEvent::ThinkingRefused(_) => {
                warn!("the model's thinking cannot be set: none is requested");
            }
            AgentEvent::ToolsRefused(_) => {
                warn!("the model does not support tools: calls are made in text");
            }
            AgentEvent::Problem(Problem::Server(_)) => {
                warn!("the server reported an error inside the answer");
            }
            AgentEvent::Problem(Problem::UncleanEnd(end)) => {
                warn!("the answer is complete, but {end}");
            }
            AgentEvent::Problem(Problem::Unreadable(chunk)) => {
                let position = chunk.position();
                warn!(position, "a chunk of the answer is not JSON and was skipped");
            }
            _ => {}
        }
    }

    pub(crate) fn failed(&mut self, error: &Error) {
        let kind = error.kind().as_str();
        self.chat.record("error.type", kind);
        self.turn.record("error.type", kind);
        self.chat = Span::none();
    }

    pub(crate) fn tool(&mut self, event: &ToolEvent) {
        match event {
            ToolEvent::CallStart(call) => {
                let span = info_span!(
                    parent: &self.turn,
                    "execute_tool",
                    gen_ai.operation.name = "execute_tool",
                    gen_ai.tool.name = self.secrets.excerpt(&call.tool_name, WORD),
                    gen_ai.tool.call.id = self.secrets.excerpt(&call.call_id, WORD),
                    error.type = Empty,
                );
                if !span.is_disabled() {
                    self.tools.insert(call.call_id.clone(), span);
                }
            }
            ToolEvent::CallComplete(result) => {
                let span = self.tools.remove(&result.call_id);
                if let Some(span) = span.filter(|_| result.is_error()) {
                    span.record("error.type", result.outcome.as_str());
                }
            }
            _ => {}
        }
    }

    /// Ends the spans. A turn that a limit ended is a warning: the model was not done.
    pub(crate) fn end(self, reason: Option<&FinishReason>, rounds: u32) {
        let Some(reason) = reason else { return };
        // An excerpt takes time, and most programs record no spans. A limit is logged even without one.
        if self.turn.is_disabled() && !reason.is_limit() {
            return;
        }
        let said = self.secrets.excerpt(reason.as_str(), WORD);
        self.turn.record("gen_ai.response.finish_reasons", &*said);
        if reason.is_limit() {
            let _entered = self.turn.enter();
            warn!(reason = &*said, rounds, "a limit ended the turn");
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // These were in progress when the turn ended or was dropped.
        self.chat.record("error.type", ErrorKind::Interrupted.as_str());
        for span in self.tools.values() {
            span.record("error.type", Outcome::Cancelled.as_str());
        }
    }
}
