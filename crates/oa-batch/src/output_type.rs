//! The type of a batch's values.

use oa_client::{Client, Error, ErrorKind, Reply, ResponseFormat, Result};
use oa_types::Message;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A schema and a check, without the type itself: the parts of a batch do not depend on it.
pub(crate) struct OutputType {
    format: ResponseFormat,
    check: fn(&Value) -> Result<(), String>,
}

impl OutputType {
    pub(crate) fn of<T: DeserializeOwned + JsonSchema>() -> Self {
        Self { format: ResponseFormat::of::<T>(), check: check::<T> }
    }

    /// Asks for a value, and returns it as the text of the reply, so that a log can keep it.
    pub(crate) async fn ask(&self, client: &mut Client, prompt: &Message) -> Result<Reply> {
        let asked = client.send_for_format(prompt.clone(), self.format.clone());
        let answer = asked.check(self.check).await?;
        let mut reply = Reply::new(answer.value.to_string(), answer.finish_reason);
        (reply.message, reply.usage) = (answer.message, answer.usage);
        reply.turn_usage = answer.turn_usage;
        reply.sub_agents = client.turn_metadata().sub_agents;
        Ok(reply)
    }

    /// Returns an error for a reply from the log that is not a value of the type.
    #[cfg(feature = "log")]
    pub(crate) fn accept(&self, reply: Reply) -> Result<Reply> {
        let is_value = read::<Value>(&reply.text).is_some_and(|value| (self.check)(&value).is_ok());
        if is_value { Ok(reply) } else { Err(foreign()) }
    }
}

fn check<T: DeserializeOwned>(value: &Value) -> Result<(), String> {
    T::deserialize(value).map(drop).map_err(|error| error.to_string())
}

/// Reads a value by way of JSON, as [`check`] does: a type may read JSON and text differently.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str::<Value>(text).and_then(T::deserialize).ok()
}

/// Without the details, which would quote the reply.
pub(crate) fn foreign() -> Error {
    let message = "the log's reply to this prompt is not a value of the type: use a new log";
    Error::new(ErrorKind::InvalidInput, message)
}
