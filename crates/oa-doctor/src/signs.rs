//! Signs by which a server is recognized, and pages where it reports more.

use http::HeaderMap;
use http::header::SERVER;
use oa_chat::Provider;
use serde_json::Value;

/// Responses of a server that help to recognize it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    /// The host of its address.
    pub(crate) host: &'a str,
    /// The headers of a response.
    pub(crate) headers: &'a HeaderMap,
    /// Its list of models.
    pub(crate) models: &'a Value,
}

/// A page with a value in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// The path from the root of the server.
    pub(crate) path: &'static str,
    /// The JSON pointer of the value.
    pub(crate) pointer: &'static str,
}

/// Where a server reports the context size of a model, in tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContextSize {
    /// On a page.
    At(Page),
    /// In a list of loaded models, in a member of the model's entry.
    In { list: Page, member: &'static str },
}

/// Returns the provider, and the sign by which it was recognized.
pub(crate) fn recognize(evidence: Evidence<'_>) -> Option<(Provider, &'static str)> {
    Provider::ALL.iter().copied().find_map(|provider| {
        let by = signs(provider).seen_in(evidence).or_else(|| {
            let address = provider.base_url()?.split_once("://")?.1;
            let host = address.split(['/', ':']).next()?;
            (host != "localhost" && host == evidence.host).then_some("its address")
        })?;
        Some((provider, by))
    })
}

/// Returns the signs of a provider; unknown ones are left out.
pub(crate) fn signs(provider: Provider) -> Signs {
    let none = Signs::default();
    let page = |path, pointer| Page { path, pointer };
    match provider {
        Provider::Azure => Signs { host_ending: ".openai.azure.com", ..none },
        Provider::LiteLlm => {
            let version = page("/health/readiness", "/litellm_version");
            Signs { page: Some(version), version: Some(version), ..none }
        }
        Provider::LlamaCpp => Signs {
            server: "llama.cpp",
            owner: "llamacpp",
            version: Some(page("/props", "/build_info")),
            context: Some(ContextSize::At(page("/props", "/default_generation_settings/n_ctx"))),
            page: Some(page("/props", "/default_generation_settings")),
            ..none
        },
        Provider::LmStudio => {
            let models = page("/api/v0/models", "/data");
            let member = "loaded_context_length";
            Signs {
                owner: "organization_owner",
                page: Some(models),
                context: Some(ContextSize::In { list: models, member }),
                ..none
            }
        }
        Provider::Ollama => {
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
        Provider::TextGenerationWebui => {
            Signs { page: Some(page("/v1/internal/model/info", "/model_name")), ..none }
        }
        // Many servers have a page of this name, which shows a version but not the server.
        Provider::Vllm => {
            Signs { owner: "vllm", version: Some(page("/version", "/version")), ..none }
        }
        // Hosted services are recognized by their address.
        _ => none,
    }
}

/// The signs of a provider. An empty text means that there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signs {
    /// The prefix of its `Server` header.
    server: &'static str,
    /// The owner that its list of models names.
    owner: &'static str,
    host_ending: &'static str,
    /// A page that no other server has.
    pub(crate) page: Option<Page>,
    /// Where it reports its version.
    pub(crate) version: Option<Page>,
    /// Where it reports the context size, if the list of models does not.
    pub(crate) context: Option<ContextSize>,
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
        let seen = recognize(Evidence { host, headers: &headers, models: &models });
        assert_eq!(seen.map(|(provider, _)| provider), expected, "{host} {server} {owner}");
    }

    #[test]
    fn servers_are_recognized_by_their_signs() {
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
