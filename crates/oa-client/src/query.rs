use std::sync::Arc;

use oa_output::ResponseFormat;
use oa_types::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::driver::Driver;
use crate::error::Result;
use crate::options::AgentOptions;
use crate::stream::BlockStream;
use crate::structured::SendFor;

/// Sends one prompt, text or a user [`Message`], and streams the answer; keeps no history and runs no tools.
///
/// Hooks see the prompt before it is sent, and each call before it is returned.
///
/// Resolves when the head of the answer arrives, so server errors are returned here.
///
/// # Errors
///
/// `InvalidInput` for an empty prompt or a message that is not a user message, `Config` without a model, `Blocked` or
/// `Hook` if a hook stops the prompt, `Connect`, `Timeout`, `Api`, `ContextOverflow`, `Stream`.
///
/// # Panics
///
/// When polled outside of a tokio runtime, or in one without time or I/O.
///
/// # Cancel safety
///
/// Dropping the future closes the connection, and the server stops generating.
pub async fn query(prompt: impl Into<Message>, options: &AgentOptions) -> Result<BlockStream> {
    let turn = options.0.config.single_turn();
    let mut driver = Driver::new(Arc::clone(&options.0), turn);
    driver.submit(prompt.into()).await?;
    Ok(BlockStream::new(driver))
}

/// Sends one prompt and returns a value of type `T`; keeps no history and runs no tools.
///
/// Await it for the whole answer. It works like [`Client::send_for`](crate::Client::send_for) in manual mode, with the
/// same errors, but without a conversation: an answer that does not match is retried, and a tool call is an error.
/// Dropping the future closes the connection, and the server stops generating.
///
/// # Panics
///
/// As [`query`], when it is awaited.
///
/// ```
/// use oa_client::{AgentOptions, query_for};
/// # use oa_testkit::{MemoryServer, Reply};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), oa_client::Error> {
/// # let model = MemoryServer::new(Reply::text(r#"{"value": [2, 3, 5]}"#));
/// # let options = AgentOptions::builder().model("any").transport(model).build()?;
/// let primes = query_for::<Vec<u32>>("Three primes, please.", &options).await?;
/// assert_eq!(primes.value, [2, 3, 5]);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "schemars")]
pub fn query_for<T>(prompt: impl Into<Message>, options: &AgentOptions) -> SendFor<'static, T>
where
    T: DeserializeOwned + schemars::JsonSchema + Send + 'static,
{
    ask_in(prompt.into(), options, ResponseFormat::of::<T>())
}

/// Sends one prompt and returns JSON that matches your own schema; otherwise like `query_for`, which takes the
/// schema from a type (feature `schemars`).
pub fn query_for_format(
    prompt: impl Into<Message>,
    options: &AgentOptions,
    format: ResponseFormat,
) -> SendFor<'static, Value> {
    ask_in(prompt.into(), options, format)
}

fn ask_in<T>(prompt: Message, options: &AgentOptions, format: ResponseFormat) -> SendFor<'static, T>
where
    T: DeserializeOwned + Send + 'static,
{
    let settings = Arc::clone(&options.0);
    let turn = settings.config.single_turn();
    let mode = turn.mode;
    let driver = Driver::new(Arc::clone(&settings), turn);
    SendFor::new(Box::new(driver), mode, settings, prompt, format)
}
