use std::sync::Arc;

use oa_types::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::driver::Driver;
use crate::error::Result;
use crate::options::AgentOptions;
use crate::response_format::ResponseFormat;
use crate::stream::BlockStream;
use crate::structured::{Held, SendFor};

/// Asks once and streams the answer; nothing is remembered and no tool is run.
///
/// Hooks are asked before the prompt is sent, and before each call is handed out.
///
/// Resolves when the head of the answer is there, so that errors of the server come from here.
///
/// # Errors
///
/// `InvalidInput` for an empty prompt, `Config` without a model, `Blocked` and `Hook` if a hook does not
/// let the prompt pass, `Connect`, `Timeout`, `Api`, `ContextOverflow`, `Stream`.
///
/// # Panics
///
/// When it is polled outside of a tokio runtime, or in one without time or I/O.
///
/// # Cancel safety
///
/// Dropping the future closes the connection, and the server stops.
pub async fn query(prompt: &str, options: &AgentOptions) -> Result<BlockStream> {
    let mut driver = Driver::new(Arc::clone(&options.0), oa_turn::Options::default());
    driver.submit(Message::user(prompt)).await?;
    Ok(BlockStream::new(driver))
}

/// Asks once for an answer of a type; nothing is remembered and no tool is run.
///
/// Awaited it is the answer. Without a conversation it is what
/// [`Client::send_for`](crate::Client::send_for) is in manual mode: an answer that does not fit is asked for
/// again, and calls of tools are an error.
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
pub fn query_for<T>(prompt: &str, options: &AgentOptions) -> SendFor<'static, T>
where
    T: DeserializeOwned + schemars::JsonSchema + Send + 'static,
{
    ask_in(prompt, options, ResponseFormat::of::<T>())
}

/// Asks once for an answer that fits a schema of your own, which is JSON then; otherwise as `query_for`,
/// which takes the schema from a type (feature `schemars`).
pub fn query_for_format(
    prompt: &str,
    options: &AgentOptions,
    format: ResponseFormat,
) -> SendFor<'static, Value> {
    ask_in(prompt, options, format)
}

fn ask_in<T>(prompt: &str, options: &AgentOptions, format: ResponseFormat) -> SendFor<'static, T>
where
    T: DeserializeOwned + Send + 'static,
{
    let settings = Arc::clone(&options.0);
    let turn = oa_turn::Options::default();
    let mode = turn.mode;
    let driver = Held::Own(Driver::new(Arc::clone(&settings), turn));
    SendFor::new(driver, mode, settings, Message::user(prompt), format)
}
