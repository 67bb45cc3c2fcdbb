//! Token counts by the server's own tokenizer.

use oa_transport::{RequestBody, Watch};
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::envelope::Offer;
use crate::error::{Error, Result};
use crate::fetch::{ROOM, collect, send};
use crate::options::ChatOptions;
use crate::provider::Tokenizer;
use crate::request::ChatRequest;

impl Endpoint {
    /// Asks the server for the number of tokens in a request, including its system prompt and tools, rendered by the
    /// model's template. Nothing is generated.
    ///
    /// llama.cpp and vLLM support this; set the provider to one of them.
    ///
    /// # Errors
    ///
    /// `Config` if the provider is not set or does not count tokens; `Connect`, `Timeout`, `Api`; `Stream` if the
    /// response is not a count or is longer than 4 MiB (it lists every token).
    ///
    /// # Panics
    ///
    /// When polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: you can ask again.
    pub async fn count_tokens(&self, request: &ChatRequest) -> Result<u64> {
        match self.tokenizer()? {
            Tokenizer::All { path } => count(&self.post(path, request, None).await?),
            Tokenizer::Texts { path, template } => {
                let templated = self.post(template, request, None).await?;
                let prompt = templated["prompt"].as_str();
                let prompt = prompt.ok_or_else(|| strange("no prompt"))?;
                // Parse the template's special tokens, and count the one that begins every prompt.
                let body = json!({ "content": prompt, "add_special": true, "parse_special": true });
                count(&self.post(path, request, Some(body)).await?)
            }
        }
    }

    /// Asks the server for the number of tokens in a text; otherwise like [`count_tokens`](Self::count_tokens).
    ///
    /// # Errors
    ///
    /// As [`count_tokens`](Self::count_tokens).
    ///
    /// # Panics
    ///
    /// As [`count_tokens`](Self::count_tokens).
    ///
    /// # Cancel safety
    ///
    /// As [`count_tokens`](Self::count_tokens).
    pub async fn count_text_tokens(&self, options: &ChatOptions, text: &str) -> Result<u64> {
        let request = ChatRequest::from_options(options.clone(), Vec::new());
        let (path, body) = match self.tokenizer()? {
            Tokenizer::All { path } => {
                let model = request.options().model_at(&self.0);
                (path, json!({ "model": model, "prompt": text, "add_special_tokens": false }))
            }
            Tokenizer::Texts { path, .. } => {
                (path, json!({ "content": text, "add_special": false }))
            }
        };
        count(&self.post(path, &request, Some(body)).await?)
    }

    fn tokenizer(&self) -> Result<Tokenizer> {
        let why = "counting tokens requires a provider: each has its own endpoint";
        let provider = self.provider().ok_or_else(|| Error::config(why))?;
        let unable = || Error::config(format!("{provider} cannot count tokens"));
        provider.tokenizer().ok_or_else(unable)
    }

    /// Sends the request like a chat request, or sends another body, to another path of the server.
    async fn post(&self, path: &str, request: &ChatRequest, body: Option<Value>) -> Result<Value> {
        let options = request.options();
        let way = options.first_way(&self.0);
        let envelope = options.envelope(&self.0, way)?;
        let offer = Offer { tools: request.offers_tools(), usage: false };
        let body = match body {
            Some(body) => RequestBody::new(body.to_string()),
            None => request.body(options.wire_format(&self.0, way, offer.tools), &envelope, offer),
        };
        let mut http = envelope.chat_with(body);
        *http.uri_mut() = self.0.at_root(path)?;
        let mut watch = Watch::new(options.timeouts);
        let response = send(&self.0, http, &mut watch).await?;
        let body = collect(&self.0, response.into_body(), &mut watch).await?;
        body.read(|json| oa_json::read_within(json, ROOM), "the answer is not JSON")
    }
}

fn count(answer: &Value) -> Result<u64> {
    let listed = || Some(answer["tokens"].as_array()?.len() as u64);
    answer["count"].as_u64().or_else(listed).ok_or_else(|| strange("no count of tokens"))
}

fn strange(what: &str) -> Error {
    Error::stream(format!("the answer has {what}"), 0)
}
