//! What is known of servers by name, and what the environment says. Nothing else in the workspace
//! knows either.

use std::env;

/// A server whose usual address is known.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Provider {
    /// A LiteLLM proxy.
    LiteLlm,
    /// llama.cpp's `llama-server`.
    LlamaCpp,
    /// LM Studio.
    LmStudio,
    /// Ollama.
    Ollama,
    /// oobabooga's text-generation-webui.
    TextGenerationWebui,
    /// vLLM.
    Vllm,
}

impl Provider {
    /// All providers, in the order in which a server on this machine is looked for.
    pub const ALL: [Self; 6] = [
        Self::LmStudio,
        Self::Ollama,
        Self::LlamaCpp,
        Self::Vllm,
        Self::TextGenerationWebui,
        Self::LiteLlm,
    ];

    /// Returns the name that its makers use.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name_and_base_url().0
    }

    /// Returns the address that it listens on unless told otherwise.
    #[must_use]
    pub fn base_url(self) -> &'static str {
        self.name_and_base_url().1
    }

    fn name_and_base_url(self) -> (&'static str, &'static str) {
        match self {
            Self::LiteLlm => ("LiteLLM", "http://localhost:4000/v1"),
            Self::LlamaCpp => ("llama.cpp", "http://localhost:8080/v1"),
            Self::LmStudio => ("LM Studio", "http://localhost:1234/v1"),
            Self::Ollama => ("Ollama", "http://localhost:11434/v1"),
            Self::TextGenerationWebui => ("text-generation-webui", "http://localhost:5000/v1"),
            Self::Vllm => ("vLLM", "http://localhost:8000/v1"),
        }
    }
}

/// The address used when nothing names one.
pub(crate) const DEFAULT_BASE_URL: &str = "http://localhost:1234/v1";

/// `OPEN_AGENT_MODEL`, if it is set to something.
pub(crate) fn model_from_environment() -> Option<String> {
    variable("OPEN_AGENT_MODEL")
}

/// `OPEN_AGENT_BASE_URL`, if it is set to something.
pub(crate) fn base_url_from_environment() -> Option<String> {
    variable("OPEN_AGENT_BASE_URL")
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use oa_types::BaseUrl;

    use super::{DEFAULT_BASE_URL, Provider};

    #[test]
    fn every_address_is_one() {
        for provider in Provider::ALL {
            assert_eq!(BaseUrl::new(provider.base_url()).unwrap().as_str(), provider.base_url());
        }
        assert_eq!(DEFAULT_BASE_URL, Provider::LmStudio.base_url());
    }
}
