use std::sync::Arc;

use oa_types::Message;

use crate::driver::Driver;
use crate::error::Result;
use crate::options::AgentOptions;
use crate::stream::BlockStream;

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
/// # Cancel safety
///
/// Dropping the future closes the connection, and the server stops.
pub async fn query(prompt: &str, options: &AgentOptions) -> Result<BlockStream> {
    let driver = Driver::new(Arc::clone(&options.0), oa_turn::Options::default());
    // Boxed from the start, so that a future of the caller's does not hold it.
    let mut driver = Box::new(driver);
    driver.submit(Message::user(prompt)).await?;
    Ok(BlockStream::new(driver))
}
