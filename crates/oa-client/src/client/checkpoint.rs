//! Checkpoints of a client's turn.

use std::future::poll_fn;

use oa_turn::Checkpoint;

use super::Client;
use crate::error::Result;

impl Client {
    /// Continues the turn up to its next checkpoint and returns it; `None` if the turn is over. A checkpoint is a point
    /// at which the conversation is worth saving: after the last result of a step, once hooks have seen it, and before
    /// the turn ends or waits for the caller. [`history`](Self::history) is then complete, except for open calls if the
    /// turn [waits](Checkpoint::waits) for them.
    ///
    /// A program that saves its history at each checkpoint loses at most one answer of the model when it dies, and the
    /// results of the step in progress. `SavedSession::follow` in `oa-session` does this (feature `session`).
    ///
    /// Events on the way are kept, even after an error: [`next_event`](Self::next_event) and [`receive`](Self::receive)
    /// return them afterwards. They take memory until they are read or the next prompt drops them.
    ///
    /// ```
    /// use oa_client::{AgentOptions, Client};
    /// # use oa_testkit::{MemoryServer, Reply};
    /// # use oa_tools::tool;
    /// # use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), oa_client::Error> {
    /// # let model = MemoryServer::new([Reply::new().call("look", json!({})), Reply::text("Rain.")]);
    /// # let look = tool("look", "Looks outside").build(|_| async { Ok(json!("drops")) });
    /// # let options = AgentOptions::builder().model("any").tool(look).auto_execute_tools(true);
    /// # let mut client = Client::new(options.transport(model).build()?)?;
    /// client.send("What is the weather?").await?;
    /// let mut saved = Vec::new();
    /// while let Some(checkpoint) = client.next_checkpoint().await? {
    ///     saved.push((checkpoint.messages, client.history().to_vec()));
    /// }
    /// assert_eq!(saved.len(), 2); // after the result, and after the answer
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    ///
    /// # Panics
    ///
    /// As [`receive`](Self::receive).
    ///
    /// # Cancel safety
    ///
    /// As [`receive`](Self::receive): dropping the future loses nothing.
    pub async fn next_checkpoint(&mut self) -> Result<Option<Checkpoint>> {
        let reached = poll_fn(|cx| self.driver.poll_checkpoint(cx)).await;
        self.adopt(reached)
    }
}
