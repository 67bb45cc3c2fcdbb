//! The options of a chat request: everything except its messages.

use std::sync::Arc;

use oa_aggregate::{ArgumentRepair, ThinkTags};
use oa_output::FormatFallback;
use oa_transport::Timeouts;
use oa_types::wire::{ChatParameters, ResultImages, Thinking, ThinkingReplay};

use crate::dialect::ToolMode;
use crate::pipeline::OnBadChunk;

/// Limits on the memory that a server's answer may take.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Text, calls and arguments of one answer.
    pub answer: oa_aggregate::Limits,
    /// One event of the stream, or a body of plain JSON.
    pub events: oa_sse::Limits,
}

/// The way the system prompt is sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum SystemRole {
    /// As a system message, before all others.
    #[default]
    System,
    /// At the start of the first user message, for models whose templates have no system role (QUIRKS row 95).
    User,
}

/// The options of a chat request: everything except its messages. Plain data, the same for every server.
///
/// The provider of the [`Endpoint`](crate::Endpoint) that sends the request determines the wire format.
///
/// ```
/// use oa_chat::ChatOptions;
///
/// let mut options = ChatOptions::new("qwen3:8b");
/// options.system_prompt = Some("You are brief.".into());
/// options.parameters.temperature = Some(0.2);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ChatOptions {
    /// The model, the tools, the response format, and sampling. The endpoint decides the server's own name for the
    /// model, the name of its token limit, and whether to request usage.
    pub parameters: ChatParameters,
    /// The first message of the request.
    pub system_prompt: Option<Arc<str>>,
    /// The way the system prompt is sent.
    pub system_role: SystemRole,
    /// The place of images from tool results, unless the endpoint's provider accepts them inside the results.
    pub result_images: ResultImages,
    /// The amount of thinking before an answer. Requires an endpoint with a provider.
    pub thinking: Option<Thinking>,
    /// The member in which the model reads its own thinking. By default, that of the provider.
    pub thinking_replay: Option<ThinkingReplay>,
    /// The treatment of think tags in the text. By default, that of the provider.
    pub think_tags: Option<ThinkTags>,
    /// The repair of malformed argument JSON. By default, that of the endpoint's quirks.
    pub repair: Option<ArgumentRepair>,
    /// True to ask servers that support it to report how far they have read the prompt.
    pub prompt_progress: bool,
    /// The policy for chunks that are not JSON.
    pub on_bad_chunk: OnBadChunk,
    /// Limits on the memory that an answer may take.
    pub limits: Limits,
    /// The timeouts of the answer and its parts.
    pub timeouts: Timeouts,
    /// The way the model calls tools.
    pub tool_mode: ToolMode,
    /// True to also look for calls that the server failed to parse, in text and at the end of thinking.
    pub recognize_calls: bool,
    /// The fallback for servers that reject the response format; without one, a rejection is an error.
    pub format_fallback: Option<FormatFallback>,
    /// True to leave out the tool choice for models that reject it (QUIRKS row 130); otherwise a rejection is an error.
    pub tool_choice_fallback: bool,
}

impl ChatOptions {
    /// Creates options for a model; everything else is left to the server.
    #[must_use]
    pub fn new(model: impl Into<String>) -> Self {
        Self { parameters: ChatParameters::new(model), ..Self::default() }
    }
}
