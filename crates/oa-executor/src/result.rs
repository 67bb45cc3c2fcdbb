use std::sync::Arc;
use std::time::Duration;

use oa_types::{Message, Outcome, ToolResultBlock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything about one call that has ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExecutionResult {
    /// The id of the call.
    pub call_id: String,
    /// The name that was called.
    pub tool_name: String,
    /// The arguments that ran, with defaults; as given if they do not fit or the call was cancelled before it began.
    pub input: Value,
    /// How it ended.
    pub outcome: Outcome,
    /// What the model sees: the result, perhaps truncated, or `{"error", "tool", "available"?, "reason"?}`.
    pub result: Value,
    /// Whether `result` is only the beginning.
    pub truncated: bool,
    /// The whole result, if `result` is only its beginning. Stays in the process: events that are written
    /// out go without it.
    #[serde(skip)]
    pub full_result: Option<Arc<Value>>,
    /// How long it ran, pauses between attempts included; in whole microseconds.
    #[serde(rename = "duration_us", with = "micros")]
    pub duration: Duration,
    /// How often the tool was started: 0 if it was not run, or answered from the cache.
    pub attempts: u32,
    /// Whether the result comes from the cache.
    pub cached: bool,
    /// How many of its emissions were dropped because the reader was too slow.
    pub dropped_events: u64,
}

impl ExecutionResult {
    /// Returns whether the model is told that the call failed: every outcome but
    /// [`Ok`](Outcome::Ok).
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.outcome.is_error()
    }

    /// Returns the whole result, truncated or not.
    #[must_use]
    pub fn full(&self) -> &Value {
        self.full_result.as_deref().unwrap_or(&self.result)
    }

    /// Returns the block that answers the call.
    #[must_use]
    pub fn to_block(&self) -> ToolResultBlock {
        let mut block = ToolResultBlock::new(&*self.call_id, self.result.clone());
        block.is_error = self.is_error();
        block.name = Some((*self.tool_name).into());
        block
    }

    /// Returns the message that answers the call.
    #[must_use]
    pub fn to_message(&self) -> Message {
        Message::tool(self.to_block())
    }
}

pub(crate) mod micros {
    //! Durations as whole microseconds.

    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }

    /// Cuts off what is not written.
    pub(crate) fn whole(duration: Duration) -> Duration {
        Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}
