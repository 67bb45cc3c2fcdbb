//! Names of providers, as the conventions spell them.

use oa_chat::Provider;

/// The name for a server that has none: the conventions name the protocol, which is OpenAI's.
pub(crate) const UNNAMED: &str = "openai";

/// Returns the name from the conventions' list, and for others one in its spelling: lower case, without spaces.
pub(crate) fn name_of(provider: Provider) -> String {
    match provider {
        Provider::Azure => "azure.ai.openai".to_owned(),
        Provider::Gemini => "gcp.gemini".to_owned(),
        Provider::Mistral => "mistral_ai".to_owned(),
        other => other.name().to_lowercase().replace([' ', '-'], "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_as_in_the_conventions() {
        let names: Vec<String> = Provider::ALL.iter().map(|provider| name_of(*provider)).collect();
        assert_eq!(
            names,
            [
                "azure.ai.openai",
                "deepseek",
                "gcp.gemini",
                "groq",
                "litellm",
                "llama.cpp",
                "lm_studio",
                "mistral_ai",
                "ollama",
                "openai",
                "openrouter",
                "text_generation_webui",
                "vllm",
            ]
        );
    }
}
