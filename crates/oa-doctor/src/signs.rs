//! How a server is told from others by what it sends, and where it says more of itself.

use http::HeaderMap;
use http::header::SERVER;
use serde_json::Value;

use super::Provider;

/// What a server has shown of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    /// The host of its address.
    pub(crate) host: &'a str,
    /// The headers of an answer.
    pub(crate) headers: &'a HeaderMap,
    /// Its list of models.
    pub(crate) models: &'a Value,
}

/// A page with a value in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// From the root of the server.
    pub(crate) path: &'static str,
    /// Where the value stands, as a JSON pointer.
    pub(crate) pointer: &'static str,
}

/// Where a server tells how large the context of a model is, in tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContextSize {
    /// On a page.
    At(Page),
    /// In a list of models, under a member of the one that is meant.
    In { list: Page, member: &'static str },
}

/// Where a server counts tokens by its model's own vocabulary, from its root.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tokenizer {
    /// It takes texts and conversations alike.
    All { path: &'static str },
    /// It takes texts; a conversation is made one by the model's template first.
    Texts { path: &'static str, template: &'static str },
}

/// By whom a server was recognised, and by what.
pub(crate) fn recognise(evidence: Evidence<'_>) -> Option<(Provider, &'static str)> {
    Provider::ALL.iter().copied().find_map(|provider| {
        let by = provider.signs().seen_in(evidence).or_else(|| {
            let address = provider.base_url()?.split_once("://")?.1;
            let host = address.split(['/', ':']).next()?;
            (host != "localhost" && host == evidence.host).then_some("its address")
        })?;
        Some((provider, by))
    })
}

impl Provider {
    /// The page that only it has.
    pub(crate) fn page(self) -> Option<Page> {
        self.signs().page
    }

    /// Where it tells its version.
    pub(crate) fn version(self) -> Option<Page> {
        self.signs().version
    }

    /// Where it tells how large the context is, if the list of models does not.
    pub(crate) fn context_size(self) -> Option<ContextSize> {
        self.signs().context
    }

    /// Where it counts tokens.
    pub(crate) fn tokenizer(self) -> Option<Tokenizer> {
        self.signs().tokenizer
    }

    /// The table: what is not said is not known.
    fn signs(self) -> Signs {
        let none = Signs::default();
        let page = |path, pointer| Page { path, pointer };
        match self {
            Self::Azure => Signs { host_ending: ".openai.azure.com", ..none },
            Self::LiteLlm => {
                let version = page("/health/readiness", "/litellm_version");
                Signs { page: Some(version), version: Some(version), ..none }
            }
            Self::LlamaCpp => Signs {
                server: "llama.cpp",
                owner: "llamacpp",
                version: Some(page("/props", "/build_info")),
                context: Some(ContextSize::At(page(
                    "/props",
                    "/default_generation_settings/n_ctx",
                ))),
                page: Some(page("/props", "/default_generation_settings")),
                tokenizer: Some(Tokenizer::Texts {
                    path: "/tokenize",
                    template: "/apply-template",
                }),
                ..none
            },
            Self::LmStudio => {
                let models = page("/api/v0/models", "/data");
                let member = "loaded_context_length";
                Signs {
                    owner: "organization_owner",
                    page: Some(models),
                    context: Some(ContextSize::In { list: models, member }),
                    ..none
                }
            }
            Self::Ollama => {
                let version = page("/api/version", "/version");
                let list = page("/api/ps", "/models");
                Signs {
                    owner: "library",
                    page: Some(version),
                    version: Some(version),
                    context: Some(ContextSize::In { list, member: "context_length" }),
                    ..none
                }
            }
            Self::TextGenerationWebui => {
                Signs { page: Some(page("/v1/internal/model/info", "/model_name")), ..none }
            }
            // Many have a page of this name: it tells the version, and not whose.
            Self::Vllm => Signs {
                owner: "vllm",
                version: Some(page("/version", "/version")),
                tokenizer: Some(Tokenizer::All { path: "/tokenize" }),
                ..none
            },
            Self::DeepSeek
            | Self::Gemini
            | Self::Groq
            | Self::Mistral
            | Self::OpenAi
            | Self::OpenRouter => none,
        }
    }
}

/// An empty text is no sign.
#[derive(Clone, Copy, Debug, Default)]
struct Signs {
    /// How its `Server` header begins.
    server: &'static str,
    /// What its models are owned by.
    owner: &'static str,
    host_ending: &'static str,
    page: Option<Page>,
    version: Option<Page>,
    context: Option<ContextSize>,
    tokenizer: Option<Tokenizer>,
}

impl Signs {
    fn seen_in(&self, evidence: Evidence<'_>) -> Option<&'static str> {
        let server = evidence.headers.get(SERVER).and_then(|server| server.to_str().ok());
        let is_owner = |model: &Value| model["owned_by"] == self.owner;
        let mut models = evidence.models["data"].as_array().into_iter().flatten();
        if !self.server.is_empty() && server.is_some_and(|it| it.starts_with(self.server)) {
            Some("its Server header")
        } else if !self.owner.is_empty() && models.any(is_owner) {
            Some("the owner of its models")
        } else if !self.host_ending.is_empty() && evidence.host.ends_with(self.host_ending) {
            Some("its address")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(host: &str, server: &str, owner: &str, expected: Option<Provider>) {
        let mut headers = HeaderMap::new();
        headers.insert(SERVER, server.parse().unwrap());
        let models = json!({ "data": [{ "id": "any", "owned_by": owner }] });
        let seen = recognise(Evidence { host, headers: &headers, models: &models });
        assert_eq!(seen.map(|(provider, _)| provider), expected, "{host} {server} {owner}");
    }

    #[test]
    fn servers_are_told_apart() {
        check("localhost", "llama.cpp", "me", Some(Provider::LlamaCpp));
        check("10.0.0.7", "nginx", "llamacpp", Some(Provider::LlamaCpp));
        check("localhost", "uvicorn", "vllm", Some(Provider::Vllm));
        check("localhost", "", "library", Some(Provider::Ollama));
        check("localhost", "", "organization_owner", Some(Provider::LmStudio));
        check("openrouter.ai", "cloudflare", "", Some(Provider::OpenRouter));
        check("mine.openai.azure.com", "", "", Some(Provider::Azure));
        check("localhost", "nginx", "openai", None);
        check("localhost", "", "", None);
    }
}
