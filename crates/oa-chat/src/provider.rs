//! Servers by name, and their environment variables. No other module knows either.

use std::str::FromStr;
use std::{env, fmt};

use oa_aggregate::ThinkTags;
use oa_types::wire::{CallIds, EmptyContent, ThinkingField, ThinkingReplay, TokenLimit};

use crate::error::{Error, Result};
use crate::server_traits::ServerTraits;

/// A server or service whose default address and quirks are known.
///
/// Services have `https://` addresses, which need the feature `tls`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Provider {
    /// Azure OpenAI. It has no default address: set `base_url`.
    Azure,
    /// DeepSeek's service.
    DeepSeek,
    /// Gemini's OpenAI endpoint.
    Gemini,
    /// Groq's service.
    Groq,
    /// A LiteLLM proxy.
    LiteLlm,
    /// llama.cpp's `llama-server`.
    LlamaCpp,
    /// LM Studio.
    LmStudio,
    /// Mistral's service.
    Mistral,
    /// Ollama.
    Ollama,
    /// OpenAI's service.
    OpenAi,
    /// OpenRouter.
    OpenRouter,
    /// oobabooga's text-generation-webui.
    TextGenerationWebui,
    /// vLLM.
    Vllm,
}

impl Provider {
    /// All providers, in alphabetical order.
    pub const ALL: &'static [Self] = &[
        Self::Azure,
        Self::DeepSeek,
        Self::Gemini,
        Self::Groq,
        Self::LiteLlm,
        Self::LlamaCpp,
        Self::LmStudio,
        Self::Mistral,
        Self::Ollama,
        Self::OpenAi,
        Self::OpenRouter,
        Self::TextGenerationWebui,
        Self::Vllm,
    ];

    /// The providers that run locally, in the order in which they are tried.
    pub const LOCAL: &'static [Self] = &[
        Self::LmStudio,
        Self::Ollama,
        Self::LlamaCpp,
        Self::Vllm,
        Self::TextGenerationWebui,
        Self::LiteLlm,
    ];

    /// Returns the name, as its vendor writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the name for `gen_ai.provider.name` in spans and metrics: from the list in OpenTelemetry's conventions,
    /// and in the same style for other servers.
    ///
    /// ```
    /// use oa_chat::Provider;
    ///
    /// assert_eq!(Provider::Mistral.telemetry_name(), "mistral_ai");
    /// assert_eq!(Provider::LmStudio.telemetry_name(), "lm_studio");
    /// ```
    #[must_use]
    pub fn telemetry_name(self) -> &'static str {
        self.row().telemetry_name
    }

    /// Returns the default address, if there is one.
    #[must_use]
    pub fn base_url(self) -> Option<&'static str> {
        self.row().base_url
    }

    /// Returns its quirks.
    #[must_use]
    pub fn traits(self) -> ServerTraits {
        self.row().traits
    }

    /// Returns the path of the server's tokenizer, if it has one.
    pub(crate) fn tokenizer(self) -> Option<Tokenizer> {
        Some(match self {
            Self::LlamaCpp => Tokenizer::Texts { path: "/tokenize", template: "/apply-template" },
            Self::Vllm => Tokenizer::All { path: "/tokenize" },
            _ => return None,
        })
    }

    /// Returns the provider's row of the table. Members that are not listed have their default.
    fn row(self) -> Row {
        let row = |name, telemetry_name, base_url| Row {
            name,
            telemetry_name,
            base_url: Some(base_url),
            traits: ServerTraits::default(),
        };
        // QUIRKS rows 77, 88 and 91.
        let as_openai = |traits: &mut ServerTraits| {
            traits.token_limit = TokenLimit::MaxCompletionTokens;
            traits.lets_assistant_begin = true;
            traits.format.call_ids = CallIds::UpTo64;
        };
        // Models behind gateways refuse empty text (QUIRKS row 84).
        let no_empty_text = |traits: &mut ServerTraits| {
            traits.format.empty_content = EmptyContent::Absent;
        };
        let tags = |traits: &mut ServerTraits| traits.think_tags = ThinkTags::Split;
        let effort = ThinkingField::ReasoningEffort { on: Some("medium") };
        match self {
            Self::Azure => Row { base_url: None, ..row("Azure OpenAI", "azure.ai.openai", "") }
                .with(as_openai)
                .told_by(effort),
            // Its reasoning models refuse a history without their thinking (QUIRKS row 94).
            Self::DeepSeek => row("DeepSeek", "deepseek", "https://api.deepseek.com/v1")
                .with(|traits| traits.format.thinking = ThinkingReplay::ReasoningContent)
                .told_by(ThinkingField::Type),
            Self::Gemini => row(
                "Gemini",
                "gcp.gemini",
                "https://generativelanguage.googleapis.com/v1beta/openai",
            )
            .told_by(effort),
            // Its models think unless they are told not to, and share no other word.
            Self::Groq => row("Groq", "groq", "https://api.groq.com/openai/v1")
                .told_by(ThinkingField::ReasoningEffort { on: None }),
            Self::LiteLlm => row("LiteLLM", "litellm", "http://localhost:4000/v1")
                .with(no_empty_text)
                .told_by(effort),
            Self::LlamaCpp => row("llama.cpp", "llama.cpp", "http://localhost:8080/v1")
                .with(|traits| traits.reports_prompt_progress = true)
                .with(|traits| traits.format.thinking = ThinkingReplay::ReasoningContent)
                .told_by(ThinkingField::TemplateArguments),
            Self::LmStudio => {
                row("LM Studio", "lm_studio", "http://localhost:1234/v1").with(tags).told_by(effort)
            }
            // QUIRKS rows 74, 89 and 91. Most of its models have no other words than `none` and `high`.
            Self::Mistral => row("Mistral", "mistral_ai", "https://api.mistral.ai/v1")
                .with(|traits| {
                    traits.asks_for_usage = false;
                    traits.format.call_ids = CallIds::NineLetters;
                    traits.bridges_tool_and_user = true;
                })
                .told_by(ThinkingField::ReasoningEffort { on: Some("high") }),
            Self::Ollama => row("Ollama", "ollama", "http://localhost:11434/v1")
                .with(|traits| traits.format.thinking = ThinkingReplay::Reasoning)
                .told_by(effort),
            Self::OpenAi => {
                row("OpenAI", "openai", "https://api.openai.com/v1").with(as_openai).told_by(effort)
            }
            Self::OpenRouter => row("OpenRouter", "openrouter", "https://openrouter.ai/api/v1")
                .with(no_empty_text)
                .told_by(ThinkingField::Reasoning),
            Self::TextGenerationWebui => {
                row("text-generation-webui", "text_generation_webui", "http://localhost:5000/v1")
                    .with(tags)
                    .told_by(ThinkingField::EnableThinking)
            }
            Self::Vllm => row("vLLM", "vllm", "http://localhost:8000/v1")
                .with(tags)
                .with(|traits| traits.format.thinking = ThinkingReplay::Reasoning)
                .told_by(ThinkingField::TemplateArguments),
        }
    }
}

/// The path at which a server counts tokens with its model's vocabulary, from its root.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tokenizer {
    /// It accepts texts and conversations alike.
    All { path: &'static str },
    /// It accepts texts; a conversation is rendered by the model's template first.
    Texts { path: &'static str, template: &'static str },
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Provider {
    type Err = Error;

    /// Finds a provider by its vendor's name for it, in upper or lower case. Only letters and digits count, so
    /// `lm-studio` and `llamacpp` are found, too.
    ///
    /// # Errors
    ///
    /// `Config`, with all names, if there is no such provider.
    fn from_str(name: &str) -> Result<Self> {
        let is_it = |provider: &&Self| plain(provider.name()).eq(plain(name));
        Self::ALL.iter().find(is_it).copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|provider| provider.name()).collect();
            Error::config(format!("unknown provider {name:?}: use one of {}", names.join(", ")))
        })
    }
}

/// Returns the letters and digits of a name, in lower case.
fn plain(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase())
}

struct Row {
    name: &'static str,
    telemetry_name: &'static str,
    base_url: Option<&'static str>,
    traits: ServerTraits,
}

impl Row {
    /// Sets the request member that controls thinking.
    fn told_by(self, field: ThinkingField) -> Self {
        self.with(|traits| traits.thinking = Some(field))
    }

    fn with(mut self, change: impl FnOnce(&mut ServerTraits)) -> Self {
        change(&mut self.traits);
        self
    }
}

/// The address used if none is set: LM Studio's.
pub const DEFAULT_BASE_URL: &str = "http://localhost:1234/v1";

/// Returns `OPEN_AGENT_MODEL`, if it is set and not blank.
#[must_use]
pub fn model_from_environment() -> Option<String> {
    variable("OPEN_AGENT_MODEL")
}

/// Returns `OPEN_AGENT_BASE_URL`, if it is set and not blank.
#[must_use]
pub fn base_url_from_environment() -> Option<String> {
    variable("OPEN_AGENT_BASE_URL")
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}
