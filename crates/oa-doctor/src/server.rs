//! Requests to the server of an agent, outside of a conversation.

use oa_chat::{ChatRequest, Endpoint};
use oa_client::{AgentOptions, Error, Result};
use oa_types::Message;

/// Lists the models that the server offers, in its order.
///
/// The model in the options is ignored.
///
/// # Errors
///
/// `Connect`, `Timeout`, `Api`, `Config` for options with a
/// [`chat_service`](oa_client::AgentOptionsBuilder::chat_service), and `Stream` if the response is not a list of
/// models.
///
/// # Panics
///
/// When polled outside of a tokio runtime, or in one without time or I/O.
///
/// # Cancel safety
///
/// Dropping the future loses nothing: you can request the list again.
pub async fn list_models(options: &AgentOptions) -> Result<Vec<String>> {
    let endpoint = endpoint(options, "has no list of models")?;
    endpoint.list_models(options.chat_options().timeouts).await
}

/// Asks the server how many tokens a conversation has, with the system prompt and the tools of these options,
/// rendered by the model's template. Nothing is generated.
///
/// llama.cpp and vLLM support this; set [`provider`](oa_client::AgentOptionsBuilder::provider) to one of them. For
/// other servers, estimate with `oa_context::estimate_tokens`.
///
/// # Errors
///
/// `Config` if the provider is not set or does not count tokens, and for options with a
/// [`chat_service`](oa_client::AgentOptionsBuilder::chat_service); `Connect`, `Timeout`, `Api`, and `Stream` if the
/// response is not a count or longer than 4 MiB: it lists each token.
///
/// # Panics
///
/// When polled outside of a tokio runtime, or in one without time or I/O.
///
/// # Cancel safety
///
/// Dropping the future loses nothing: you can ask again.
///
/// ```
/// use oa_chat::Provider;
/// use oa_client::AgentOptions;
/// use oa_doctor::count_tokens;
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
    let chat = options.chat_options().clone();
    let endpoint = endpoint(options, "cannot count tokens")?;
    endpoint.count_tokens(&ChatRequest::from_options(chat, messages.to_vec())).await
}

/// Asks the server how many tokens a text alone has; otherwise like [`count_tokens`].
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
    let endpoint = endpoint(options, "cannot count tokens")?;
    endpoint.count_text_tokens(options.chat_options(), text).await
}

fn endpoint<'a>(options: &'a AgentOptions, lack: &str) -> Result<&'a Endpoint> {
    let endpoint = options.endpoint();
    endpoint.ok_or_else(|| Error::config(format!("your own chat service {lack}")))
}
