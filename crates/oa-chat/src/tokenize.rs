//! Tokens as the server itself counts them.

use std::borrow::Cow;

use http::Request;
use oa_transport::{RequestBody, Watch};
use oa_turn::repair;
use oa_types::Message;
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::envelope::Wanted;
use crate::error::{Error, Result};
use crate::options::AgentOptions;
use crate::provider::{Provider, Tokenizer};
use crate::service::{collect, send};
use crate::settings::Settings;
use crate::transcript::Transcript;

/// Asks the server how many tokens a conversation is: with the system prompt and the tools of these options,
/// in the model's template, as it would be sent. Nothing is generated.
///
/// llama.cpp and vLLM can be asked; [`provider`](crate::AgentOptionsBuilder::provider) has to say that it is one
/// of them. Without such a server there is an estimate: `oa_context::estimate_tokens`.
///
/// # Errors
///
/// `Config` for a server that counts no tokens, or of which it is not known, and for options with a
/// [`chat_service`](crate::AgentOptionsBuilder::chat_service); `Connect`, `Timeout`, `Api`, and `Stream` if the
/// answer is no count or longer than 1 MiB: it lists each token.
///
/// # Panics
///
/// When it is polled outside of a tokio runtime, or in one without time or I/O.
///
/// # Cancel safety
///
/// Nothing is lost: it can be asked for again.
///
/// ```
/// use oa_client::{AgentOptions, Provider, count_tokens};
/// # use oa_testkit::{MemoryServer, Reply, Script};
/// # use oa_types::Message;
/// # use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oa_client::Result<()> {
/// # let reply = Reply::json(200, json!({"count": 11, "tokens": vec![0; 11]}));
/// # let server = MemoryServer::new(Script::new().post("/tokenize", reply));
/// let options = AgentOptions::builder()
///     .model("any")
///     .provider(Provider::Vllm)
/// #   .transport(server)
///     .build()?;
/// assert_eq!(count_tokens(&options, &[Message::user("How are you?")]).await?, 11);
/// # Ok(())
/// # }
/// ```
pub async fn count_tokens(options: &AgentOptions, messages: &[Message]) -> Result<u64> {
    let settings = options.settings();
    let (endpoint, tokenizer) = asked(settings)?;
    match tokenizer {
        Tokenizer::All { path } => count(&post(settings, endpoint, path, messages, None).await?),
        Tokenizer::Texts { path, template } => {
            let templated = post(settings, endpoint, template, messages, None).await?;
            let prompt = templated["prompt"].as_str();
            let prompt = prompt.ok_or_else(|| strange("no prompt"))?;
            // The template's own words are tokens, and what begins every prompt is one.
            let body = json!({ "content": prompt, "add_special": true, "parse_special": true });
            count(&post(settings, endpoint, path, &[], Some(body)).await?)
        }
    }
}

/// Asks the server how many tokens a text alone is; otherwise as [`count_tokens`].
///
/// # Errors
///
/// As [`count_tokens`].
///
/// # Panics
///
/// As [`count_tokens`].
///
/// # Cancel safety
///
/// As [`count_tokens`].
pub async fn count_text_tokens(options: &AgentOptions, text: &str) -> Result<u64> {
    let settings = options.settings();
    let (endpoint, tokenizer) = asked(settings)?;
    let (path, body) = match tokenizer {
        Tokenizer::All { path } => {
            let model = settings.model_at(&endpoint.0);
            (path, json!({ "model": model, "prompt": text, "add_special_tokens": false }))
        }
        Tokenizer::Texts { path, .. } => (path, json!({ "content": text, "add_special": false })),
    };
    count(&post(settings, endpoint, path, &[], Some(body)).await?)
}

/// Whom to ask, and how.
fn asked(settings: &Settings) -> Result<(&Endpoint, Tokenizer)> {
    let Some(endpoint) = settings.endpoint() else {
        return Err(Error::config("a chat service of your own counts no tokens"));
    };
    let tokenizer = endpoint.provider().and_then(Provider::tokenizer);
    let tokenizer = tokenizer.ok_or_else(|| {
        Error::config(match endpoint.provider() {
            Some(provider) => format!("{} counts no tokens", provider.name()),
            None => "counting tokens needs a provider: each is asked in its own way".to_owned(),
        })
    })?;
    Ok((endpoint, tokenizer))
}

/// Sends what a chat request with these messages would say, or another body, to another place.
async fn post(
    settings: &Settings,
    endpoint: &Endpoint,
    path: &str,
    messages: &[Message],
    body: Option<Value>,
) -> Result<Value> {
    let mut request = chat(settings, endpoint, messages)?;
    *request.uri_mut() = endpoint.0.at_root(path)?;
    if let Some(body) = body {
        *request.body_mut() = RequestBody::new(body.to_string());
    }
    let mut watch = Watch::new(settings.timeouts);
    let response = send(endpoint, request, &mut watch).await?;
    let body = collect(response.into_body(), &mut watch).await;
    let body = body.map_err(|error| error.masked(&endpoint.0.secrets))?;
    serde_json::from_slice(&body).map_err(|_| Error::stream("no JSON", body.len() as u64))
}

fn chat(
    settings: &Settings,
    endpoint: &Endpoint,
    messages: &[Message],
) -> Result<Request<RequestBody>> {
    let spoken = settings.spoken(&endpoint.0);
    let asking = settings.asking(&endpoint.0);
    let manner = settings.manner(&endpoint.0, spoken, asking);
    let messages = &repair(messages.to_vec());
    let instructions = manner.instructions(messages).map(Cow::into_owned);
    let (segments, last) = Transcript::of(manner, messages).bytes();
    let envelope = settings.envelope(endpoint, spoken.is_some(), asking)?;
    let wanted = Wanted { tools: true, usage: false };
    Ok(envelope.chat(instructions.as_deref(), &segments, &last, wanted))
}

/// The count in an answer, or how many tokens it lists.
fn count(answer: &Value) -> Result<u64> {
    let listed = || Some(answer["tokens"].as_array()?.len() as u64);
    answer["count"].as_u64().or_else(listed).ok_or_else(|| strange("no count of tokens"))
}

fn strange(what: &str) -> Error {
    Error::stream(format!("the answer has {what}"), 0)
}
