use std::mem::discriminant;
use std::sync::Arc;

use oa_fallback::{Constrained, Dialect, Grammar, Markers, React, TaggedJson};
use oa_types::ToolSpec;
use oa_types::wire::ChatParameters;
use serde_json::Value;

/// The way the model calls tools. Two modes with a custom dialect are equal if they share the dialect.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ToolMode {
    /// With the server's function calling. If the server says that the model does not support it, calls are made in
    /// text: as with [`Constrained`](Self::Constrained) if a [`ServerProfile`](crate::ServerProfile) says that answers
    /// follow a schema, otherwise as with [`TaggedJson`](Self::TaggedJson). The client remembers and reports this
    /// ([`Refusal::Tools`](crate::Refusal::Tools)), and sends calls and results to that model as text from then on.
    #[default]
    Auto,
    /// In answers that the server constrains to a JSON Schema. Each answer is one object: a call or text. For the
    /// smallest models on llama.cpp, LM Studio, Ollama or vLLM: every call is well-formed and names an offered tool.
    ///
    /// `tool_choice` decides whether the model may call, must call, or must answer; `parallel_tool_calls(true)` allows
    /// up to 16 calls in one answer. Text streams as it is generated. The schema is sent as `response_format`. If the
    /// server rejects it, the client falls back to `json_object`, then to instructions in the prompt, and reports
    /// [`Refusal::Format`](crate::Refusal::Format).
    Constrained,
    /// In text, in your own dialect.
    Custom(Arc<dyn Dialect>),
    /// In text: `[TOOL:name:argument=value]`.
    Markers,
    /// In text as with [`Markers`](Self::Markers), but each result replaces its marker, and the answer is complete
    /// without a second request. Text before the first marker streams; the rest follows once the tools have run. If a
    /// call fails, the model reads the error and answers again. Only for agents that run tools themselves.
    ///
    /// History contains the answer with its calls, their results, and then the text as shown.
    MarkersInline,
    /// By the server's function calling only. A rejection is an error.
    Native,
    /// In text: `Action: name(argument="value")`.
    React,
    /// In text: JSON between `<tool_call>` tags, as many models are trained to write.
    TaggedJson,
}

impl ToolMode {
    /// Returns the dialect that is used from the start or as a fallback.
    fn dialect(&self, parallel: bool) -> Option<Arc<dyn Dialect>> {
        match self {
            Self::Constrained => Some(Arc::new(Constrained::new().with_parallel_calls(parallel))),
            Self::Auto | Self::TaggedJson => Some(Arc::new(TaggedJson::new())),
            Self::Custom(dialect) => Some(Arc::clone(dialect)),
            Self::Markers => Some(Arc::new(Markers::new())),
            Self::MarkersInline => Some(Arc::new(Markers::inline())),
            Self::Native => None,
            Self::React => Some(Arc::new(React::new())),
        }
    }

    /// Returns `true` if calls are in text from the start.
    #[must_use]
    pub fn is_text(&self) -> bool {
        !matches!(self, Self::Auto | Self::Native)
    }
}

impl PartialEq for ToolMode {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Custom(one), Self::Custom(other)) => Arc::ptr_eq(one, other),
            _ => discriminant(self) == discriminant(other),
        }
    }
}

/// A dialect with the instructions for the current tools.
#[derive(Debug)]
pub(crate) struct TextDialect {
    pub(crate) dialect: Arc<dyn Dialect>,
    pub(crate) tools: Arc<[ToolSpec]>,
    /// The system prompt with the instructions; empty if there is neither.
    pub(crate) system_prompt: Arc<str>,
    /// The response format that constrains answers to the dialect.
    pub(crate) format: Option<Value>,
}

impl TextDialect {
    /// Returns the dialect of a mode, even without tools, because a conversation may contain earlier calls.
    pub(crate) fn new(
        mode: &ToolMode,
        parameters: &ChatParameters,
        system_prompt: Option<&str>,
    ) -> Option<Self> {
        let dialect = mode.dialect(parameters.parallel_tool_calls == Some(true))?;
        let instructions = dialect.instructions(&parameters.tools);
        let parts = [system_prompt.unwrap_or_default(), &*instructions];
        let parts = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let format = dialect.response_format(parameters);
        let (tools, system_prompt) = (&*parameters.tools, parts.join("\n\n"));
        Some(Self { dialect, tools: tools.into(), system_prompt: system_prompt.into(), format })
    }

    /// Returns the grammar of the calls in an answer, if there may be any. `offers_tools` is true if the request has
    /// tools; `is_json` is true if the caller set a response format.
    pub(crate) fn grammar(
        &self,
        mode: &ToolMode,
        offers_tools: bool,
        is_json: bool,
    ) -> Option<Box<dyn Grammar>> {
        // Without tools nothing can be called: read the answer as with function calling.
        let is_native = !mode.is_text() && self.tools.is_empty();
        // Without tools, such an answer is not an object of the dialect.
        let is_own = is_json && !offers_tools;
        (!is_native && !is_own).then(|| self.dialect.grammar(Arc::clone(&self.tools)))
    }
}
