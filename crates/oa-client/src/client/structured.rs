//! Prompts whose answers are to be of a type.

use std::sync::Arc;

use oa_types::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Client;
use crate::response_format::ResponseFormat;
use crate::structured::{Held, SendFor};

impl Client {
    /// Sends a prompt whose answer is to be of a type, and reads that; awaited it is the answer.
    ///
    /// The type's schema goes out with the prompt, for this turn alone: as the form of the answer, or as
    /// that of an output tool (see [`OutputMode`](crate::OutputMode)). An answer that does not fit is told
    /// what is wrong, by path, and the model answers again: 3 times in all unless
    /// [`tries`](crate::SendFor::tries) says otherwise. Those tries are one turn, with one prompt for
    /// hooks and limits, and one set of budgets. In auto mode tools are run as for any prompt.
    ///
    /// An answer that `max_tokens` cuts off is one of these tries: the model is told once to be brief. Bound the
    /// texts and lists of a schema (`maxLength`, `maxItems`) so that its longest answer fits.
    ///
    /// An answer may have words or a code fence around its JSON object, and thinking in `<think>` tags before
    /// it; a second `{` behind the object makes it none. JSON is not mended: text that was cut off or
    /// is not quite JSON is no answer. What fits is completed with the defaults of the schema.
    ///
    /// In history the prompt stands with the answer that was taken, as text in any mode. Answers that did not
    /// fit, and what was said about them, are taken out when the turn is over; the last one stays if
    /// there was none better. What tools were called in between stays.
    ///
    /// In manual mode it works as long as the model calls no tools; if it does, that is an error of kind
    /// `Output`, the calls stay open, and the caller may answer them and go on without a type.
    ///
    /// In auto mode calls may come to wait for permission. That is an error of kind `Output` too, which says
    /// so, and [`finish_reason`](Self::finish_reason) is `ApprovalPending`. Nothing is lost: the calls stand in
    /// [`pending_approvals`](Self::pending_approvals) and in history, which can be saved with them, and
    /// [`approve`](Self::approve) or [`deny`](Self::deny) and then [`continue_turn`](Self::continue_turn) go on
    /// without a type: what the model says then is text. To have the person asked while the turn runs,
    /// set [`can_use_tool`](crate::AgentOptionsBuilder::can_use_tool). As long as calls are open, answers that did
    /// not fit stay in history.
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
    /// `Output` if no answer fits: after the last try, after the second answer that a limit of tokens cuts off, at
    /// once if the model refuses or a limit of the turn is reached, if it calls tools that are not run, and if
    /// calls wait for permission. `Interrupted`.
    /// `Config` if the schema or the output tool cannot be sent. All that [`send`](Self::send) and
    /// [`receive`](Self::receive) tell of.
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send), when it is awaited.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before an answer begins takes the prompt back. Later it ends the turn as
    /// sending another prompt would: what had arrived as text stays.
    #[cfg(feature = "schemars")]
    pub fn send_for<T>(&mut self, prompt: &str) -> SendFor<'_, T>
    where
        T: DeserializeOwned + schemars::JsonSchema + Send + 'static,
    {
        self.send_in(Message::user(prompt), ResponseFormat::of::<T>())
    }

    /// Sends a prompt whose answer is to fit a schema of your own, which is JSON then.
    ///
    /// The format goes out with the prompt, for this turn alone. Awaited it is the answer: a
    /// [`Structured`](crate::Structured) of any JSON. All else is told at `send_for`, which takes the
    /// schema from a type (feature `schemars`).
    pub fn send_for_format(&mut self, prompt: &str, format: ResponseFormat) -> SendFor<'_, Value> {
        self.send_in(Message::user(prompt), format)
    }

    fn send_in<T>(&mut self, prompt: Message, format: ResponseFormat) -> SendFor<'_, T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let settings = Arc::clone(&self.options.0);
        let mode = settings.config.turn.mode;
        SendFor::new(Held::Client(&mut self.driver), mode, settings, prompt, format)
    }
}
