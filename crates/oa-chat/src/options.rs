//! The options of a chat request: everything about it but its messages.

use std::sync::Arc;

use oa_aggregate::{ArgumentRepair, ThinkTags};
use oa_output::FormatFallback;
use oa_transport::Timeouts;
use oa_types::wire::{ChatParameters, ResultImages};

use crate::dialect::ToolMode;
use crate::pipeline::OnBadChunk;
use crate::thinking::Thinking;

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

/// Everything about a chat request but its messages: plain data, the same for every server.
///
/// The provider of the [`Endpoint`](crate::Endpoint) that sends the request decides how it is written.
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
    /// The model, the tools, the response format, and sampling. The endpoint sets the server's own name for the
    /// model, the name of its token limit, and whether usage is requested.
    pub parameters: ChatParameters,
    /// The first message of the request.
    pub system_prompt: Option<Arc<str>>,
    /// The way the system prompt is sent.
    pub system_role: SystemRole,
    /// Where the images of tool results are sent, unless the endpoint's provider takes them in the results.
    pub result_images: ResultImages,
    /// The amount of thinking before the model answers. It needs an endpoint with a provider.
    pub thinking: Option<Thinking>,
    /// The way think tags in the text are read; by default, as the provider's models use them.
    pub think_tags: Option<ThinkTags>,
    /// The way broken argument JSON is repaired; by default, as the endpoint's quirks say.
    pub repair: Option<ArgumentRepair>,
    /// True if servers that can are asked to report how far they have read the prompt.
    pub prompt_progress: bool,
    /// The policy for a chunk that is not JSON.
    pub on_bad_chunk: OnBadChunk,
    /// Limits on the answer, as held in memory.
    pub limits: Limits,
    /// The timeouts of the answer and each part of it.
    pub timeouts: Timeouts,
    /// The way the model calls tools.
    pub tool_mode: ToolMode,
    /// True if calls are also looked for in text that the server should have parsed.
    pub recognize_calls: bool,
    /// The fallback for servers that reject the response format; without one, a rejection is an error.
    pub format_fallback: Option<FormatFallback>,
}

impl ChatOptions {
    /// Creates options for a model; everything else is left to the server.
    #[must_use]
    pub fn new(model: impl Into<String>) -> Self {
        Self { parameters: ChatParameters::new(model), ..Self::default() }
    }
}
