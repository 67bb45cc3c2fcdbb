//! Prompts with structured output.

use std::sync::Arc;

use oa_output::ResponseFormat;
use oa_types::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Client;
use crate::structured::SendFor;

impl Client {
    /// Sends a prompt, text or a user [`Message`], and returns a value of type `T`; await it for the whole answer.
    ///
    /// The type's schema is sent for this turn only, as the response format or as the parameters of an output tool (see
    /// [`OutputMode`](crate::OutputMode)). If an answer does not match, the model sees the errors, with paths, and
    /// retries: 3 attempts in all unless [`tries`](crate::SendFor::tries) sets another number. All attempts belong to
    /// one turn, with one prompt for hooks and limits and one set of budgets. In auto mode, tools run as usual.
    ///
    /// An answer that is cut off by `max_tokens` counts as an attempt: the model is asked once to be brief. Bound the
    /// texts and lists in a schema (`maxLength`, `maxItems`) so that the longest possible answer fits.
    ///
    /// Text or a code fence may surround the JSON object, and thinking in `<think>` tags may precede it; a second
    /// `{` after the object makes it invalid. JSON is not repaired: text that is cut off or malformed is not an
    /// answer. The schema's defaults are added to a valid answer.
    ///
    /// History keeps the prompt and the accepted answer, as text in any mode. When the turn ends, invalid answers and
    /// their corrections are removed; if no answer was valid, the last one stays. Tool calls in between stay.
    ///
    /// Manual mode works unless the model calls tools. If it does, the turn fails with kind `Output`, the calls stay
    /// open, and you can add results and continue without a type.
    ///
    /// In auto mode, calls may have to wait for approval. This is an error of kind `Output`, too, and
    /// [`finish_reason`](Self::finish_reason) is `ApprovalPending`. Nothing is lost: the calls are in
    /// [`pending_approvals`](Self::pending_approvals) and in history, which can be saved with them. Call
    /// [`approve`](Self::approve) or [`deny`](Self::deny), then [`continue_turn`](Self::continue_turn) without a type:
    /// further answers are text. To approve calls during the turn, set
    /// [`can_use_tool`](crate::AgentOptionsBuilder::can_use_tool). Invalid answers stay in history until then.
    ///
    /// ```
    /// use oa_client::{AgentOptions, Client};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// # use oa_testkit::{MemoryServer, Reply};
    ///
    /// #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    /// struct Place {
    ///     city: String,
    ///     /// As of the last count.
    ///     people: Option<u32>,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), oa_client::Error> {
    /// # let model = MemoryServer::new(Reply::text(r#"{"city": "Oslo", "people": 717710}"#));
    /// # let options = AgentOptions::builder().model("any").transport(model).build()?;
    /// let mut client = Client::new(options)?;
    /// let answer = client.send_for::<Place>("What is the capital of Norway?").await?;
    /// assert_eq!(answer.value, Place { city: "Oslo".to_owned(), people: Some(717_710) });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `Output` if no answer matches: after the last attempt, after a second answer cut off by a token limit, and
    /// immediately if the model refuses, the turn reaches a limit, the model calls tools that are not run, or calls
    /// wait for approval or results. `Interrupted`. `Config` if the schema or the output tool cannot be sent. All
    /// errors of [`send`](Self::send) and [`receive`](Self::receive).
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send), when it is awaited.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before an answer begins removes the prompt. Dropping it later ends the turn as another
    /// prompt would: text that has arrived stays.
    #[cfg(feature = "schemars")]
    pub fn send_for<T>(&mut self, prompt: impl Into<Message>) -> SendFor<'_, T>
    where
        T: DeserializeOwned + schemars::JsonSchema + Send + 'static,
    {
        self.send_in(prompt.into(), ResponseFormat::of::<T>())
    }

    /// Sends a prompt and returns JSON that matches your own schema.
    ///
    /// The format is sent for this turn only. Await it for a [`Structured`](crate::Structured) of JSON. See
    /// `send_for` for the details; it takes the schema from a type (feature `schemars`).
    pub fn send_for_format(
        &mut self,
        prompt: impl Into<Message>,
        format: ResponseFormat,
    ) -> SendFor<'_, Value> {
        self.send_in(prompt.into(), format)
    }

    fn send_in<T>(&mut self, prompt: Message, format: ResponseFormat) -> SendFor<'_, T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let settings = Arc::clone(&self.options.0);
        let mode = settings.config.turn.mode;
        SendFor::new(Box::new(&mut *self.driver), mode, settings, prompt, format)
    }
}
