use std::sync::Arc;
use std::time::Duration;

use oa_types::{ImageBlock, Message, Outcome, ToolResultBlock, micros};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of one call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExecutionResult {
    /// The call id.
    pub call_id: String,
    /// The called name.
    pub tool_name: String,
    /// The arguments that ran, with defaults; as given if they are invalid or the call was canceled before it
    /// started.
    pub input: Value,
    /// The outcome.
    pub outcome: Outcome,
    /// The result for the model, possibly truncated, or `{"error", "tool", "available"?, "reason"?}`.
    pub result: Value,
    /// The images that a successful call attached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageBlock>,
    /// True if `result` is truncated. Images are never cut.
    pub truncated: bool,
    /// The full result, if `result` is truncated. Not serialized.
    #[serde(skip)]
    pub full_result: Option<Arc<Value>>,
    /// The run time in whole microseconds, including delays between attempts.
    #[serde(rename = "duration_us", with = "micros")]
    pub duration: Duration,
    /// The number of attempts: 0 if the call was not run or was answered from the cache.
    pub attempts: u32,
    /// True if the result is from the cache.
    pub cached: bool,
    /// The number of this call's emissions that were dropped because the reader was too slow.
    pub dropped_events: u64,
}

impl ExecutionResult {
    /// Returns true for every outcome but [`Ok`](Outcome::Ok): the model sees that the call failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.outcome.is_error()
    }

    /// Returns the full result, truncated or not.
    #[must_use]
    pub fn full(&self) -> &Value {
        self.full_result.as_deref().unwrap_or(&self.result)
    }

    /// Returns the tool result block for the call.
    #[must_use]
    pub fn to_block(&self) -> ToolResultBlock {
        let mut block = ToolResultBlock::new(&*self.call_id, self.result.clone());
        block.is_error = self.is_error();
        block.name = Some((*self.tool_name).into());
        block.images.clone_from(&self.images);
        block
    }

    /// Returns the tool message for the call.
    #[must_use]
    pub fn to_message(&self) -> Message {
        Message::tool(self.to_block())
    }
}
