use std::mem::discriminant;
use std::sync::Arc;

use oa_fallback::{Dialect, Markers, React, TaggedJson};
use oa_types::ToolSpec;

/// The way the model calls tools. Two modes with a custom dialect are equal if they share it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ToolMode {
    /// By the server's function calling; once the server says that the model does not support it, in text, as
    /// [`TaggedJson`](Self::TaggedJson). This is remembered, and reported as
    /// [`Refusal::Tools`](crate::Refusal::Tools). Calls and results in the conversation are then in text for that
    /// model, even if there are no tools any more.
    #[default]
    Auto,
    /// In text, in your own dialect.
    Custom(Arc<dyn Dialect>),
    /// In text: `[TOOL:name:argument=value]`.
    Markers,
    /// In text as with [`Markers`](Self::Markers), but each result replaces its marker, and the answer is
    /// complete without a second request: text before the first marker is streamed, the rest follows once the
    /// tools have run. If a call fails, the model reads the error and answers again. Only for agents that run
    /// tools themselves.
    ///
    /// History has the answer with its calls, their results, and then the text as shown.
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
    fn dialect(&self) -> Option<Arc<dyn Dialect>> {
        match self {
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
}

impl TextDialect {
    /// Returns the dialect of a mode, even without tools: a conversation may hold earlier calls.
    pub(crate) fn new(
        mode: &ToolMode,
        tools: &[ToolSpec],
        system_prompt: Option<&str>,
    ) -> Option<Self> {
        let dialect = mode.dialect()?;
        let instructions = dialect.instructions(tools);
        let parts = [system_prompt.unwrap_or_default(), &*instructions];
        let parts = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        Some(Self { dialect, tools: tools.into(), system_prompt: parts.join("\n\n").into() })
    }
}
