//! The type of a batch's values.

use std::sync::Arc;

use oa_client::{Client, Error, ErrorKind, OutputMode, Reply, ResponseFormat, Result};
use oa_types::Message;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A schema and checks, without the type itself: the parts of a batch do not depend on it.
#[derive(Clone)]
pub(crate) struct OutputType {
    format: ResponseFormat,
    /// The first one reads the type.
    checks: Vec<Arc<Check>>,
    pub(crate) tries: Option<u32>,
    pub(crate) mode: OutputMode,
    pub(crate) tool: Option<String>,
}

type Check = dyn Fn(&Value) -> Result<(), String> + Send + Sync;

impl OutputType {
    pub(crate) fn of<T: DeserializeOwned + JsonSchema>() -> Self {
        let format = ResponseFormat::of::<T>();
        let reads: Arc<Check> = Arc::new(|value| value_of::<T>(value).map(drop));
        Self { format, checks: vec![reads], tries: None, mode: OutputMode::default(), tool: None }
    }

    pub(crate) fn add_check<T: DeserializeOwned>(
        &mut self,
        check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.checks.push(Arc::new(move |value| check(&value_of(value)?)));
    }

    /// Asks for a value, and returns it as the text of the reply, so that a log can keep it.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        client: &mut Client,
        prompt: &Message,
    ) -> Result<Reply> {
        let output_type = Arc::clone(self);
        let mut asked = client
            .send_for_format(prompt.clone(), self.format.clone())
            .mode(self.mode)
            .check(move |value| output_type.check(value));
        if let Some(tries) = self.tries {
            asked = asked.tries(tries);
        }
        if let Some(tool) = &self.tool {
            asked = asked.tool_name(tool);
        }
        let answer = asked.await?;
        let mut reply = Reply::new(answer.value.to_string(), answer.finish_reason);
        (reply.message, reply.usage) = (answer.message, answer.usage);
        reply.turn_usage = answer.turn_usage;
        reply.sub_agents = client.turn_metadata().sub_agents;
        Ok(reply)
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        self.checks.iter().try_for_each(|check| check(value))
    }

    /// Returns an error for a reply from the log that is not a value of the type, or that a check refuses.
    #[cfg(feature = "log")]
    pub(crate) fn accept(&self, reply: Reply) -> Result<Reply> {
        let value = read::<Value>(&reply.text);
        // The checks are foreign code.
        let is_value = value
            .is_some_and(|value| matches!(oa_contain::contain(|| self.check(&value)), Ok(Ok(()))));
        if is_value { Ok(reply) } else { Err(foreign()) }
    }
}

fn value_of<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    oa_client::read_value(value).map_err(|error| error.to_string())
}

/// Reads a value by way of JSON, as [`value_of`] does: a type may read JSON and text differently.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    value_of(&serde_json::from_str(text).ok()?).ok()
}

/// Without the details, which would quote the reply.
pub(crate) fn foreign() -> Error {
    let message = "the log's reply to this prompt is not a value of the type, or a check refuses it: use a new log";
    Error::new(ErrorKind::InvalidInput, message)
}
