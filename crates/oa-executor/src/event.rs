use std::sync::Arc;
use std::time::Duration;

use oa_tools::{Emission, LogLevel, Progress};
use oa_types::{Message, flattened, micros};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metrics::BatchMetrics;
use crate::result::ExecutionResult;

/// An event of a batch.
///
/// Each call has exactly one start and later one completion, even if it is not run (see
/// [`attempts`](ExecutionResult::attempts)). Emissions of its tool lie between the two. One [`End`](Self::End)
/// comes last.
///
/// In JSON, an event is an object with a `type`: see [`to_json`](Self::to_json).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolEvent {
    /// `tool_call_start`: a call starts.
    CallStart(CallStart),
    /// `tool_progress`: a progress report.
    Progress(ToolProgress),
    /// `tool_status`: the tool's current activity.
    Status(ToolStatus),
    /// `tool_log`: a log line.
    Log(ToolLog),
    /// `tool_<name>`: custom data from a tool.
    Custom(Box<ToolCustom>),
    /// `tool_retry`: a tool failed and will be run again.
    Retry(ToolRetry),
    /// `tool_call_complete`: a call has ended.
    CallComplete(Arc<ExecutionResult>),
    /// `tool_metrics`: the metrics of the batch, if enabled.
    Metrics(Box<BatchMetrics>),
    /// `tools_end`: the batch has ended.
    End(ToolsEnd),
}

impl ToolEvent {
    /// Returns the id of the call, for events about a call.
    #[must_use]
    pub fn call_id(&self) -> Option<&str> {
        Some(match self {
            Self::CallStart(event) => &event.call_id,
            Self::Progress(event) => &event.call_id,
            Self::Status(event) => &event.call_id,
            Self::Log(event) => &event.call_id,
            Self::Custom(event) => &event.call_id,
            Self::Retry(event) => &event.call_id,
            Self::CallComplete(result) => &result.call_id,
            Self::Metrics(_) | Self::End(_) => return None,
        })
    }

    /// Returns the event type, such as `tool_call_start`.
    #[must_use]
    pub fn event_type(&self) -> &str {
        match self {
            Self::CallStart(_) => "tool_call_start",
            Self::Progress(_) => "tool_progress",
            Self::Status(_) => "tool_status",
            Self::Log(_) => "tool_log",
            Self::Custom(event) => &event.event_type,
            Self::Retry(_) => "tool_retry",
            Self::CallComplete(_) => "tool_call_complete",
            Self::Metrics(_) => "tool_metrics",
            Self::End(_) => "tools_end",
        }
    }

    pub(crate) fn emitted(call_id: String, tool_name: String, emission: Emission) -> Self {
        match emission {
            Emission::Custom { name, data } => {
                Self::Custom(ToolCustom::new(call_id, tool_name, &name, data).into())
            }
            Emission::Log { level, message } => {
                Self::Log(ToolLog { call_id, tool_name, level, message })
            }
            Emission::Progress(progress) => {
                Self::Progress(ToolProgress { call_id, tool_name, progress })
            }
            Emission::Status(status) => Self::Status(ToolStatus { call_id, tool_name, status }),
            other => {
                let data = Value::String(format!("{other:?}"));
                Self::Custom(ToolCustom::new(call_id, tool_name, "unknown", data).into())
            }
        }
    }
}

/// A call starts.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallStart {
    /// The call id.
    pub call_id: String,
    /// The called name.
    pub tool_name: String,
    /// The arguments that run, with defaults; as given if they are invalid or the call is canceled before it
    /// starts.
    pub input: Value,
}

/// A progress report.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolProgress {
    /// The call id.
    pub call_id: String,
    /// The called name.
    pub tool_name: String,
    /// The progress.
    #[serde(flatten)]
    pub progress: Progress,
}

/// The current activity of a tool.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolStatus {
    /// The call id.
    pub call_id: String,
    /// The called name.
    pub tool_name: String,
    /// The activity.
    pub status: String,
}

/// A log line from a tool.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolLog {
    /// The call id.
    pub call_id: String,
    /// The called name.
    pub tool_name: String,
    /// The severity.
    pub level: LogLevel,
    /// The message.
    pub message: String,
}

/// Custom data from a tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolCustom {
    /// The call id.
    pub call_id: String,
    /// The called name.
    pub tool_name: String,
    /// The data, nested at most 100 levels deep.
    pub data: Value,
    pub(crate) event_type: String,
}

/// The prefix of custom event types.
pub(crate) const CUSTOM: &str = "tool_";
/// The longest name of a custom event, in characters.
const NAME: usize = 64;
/// Names reserved for built-in events.
const TAKEN: &[&str] =
    &["call_complete", "call_start", "log", "metrics", "progress", "retry", "status"];

impl ToolCustom {
    /// Creates an event of type `tool_<name>`.
    ///
    /// Characters other than letters, digits, `_` and `-` become `_`, a name of a built-in event gets the prefix
    /// `custom_`, and an empty name becomes `custom`. Data that is nested more than 100 levels deep becomes a text with
    /// the same JSON, as in a result, so that every event can be written and read.
    #[must_use]
    pub fn new(
        call_id: impl Into<String>,
        tool_name: impl Into<String>,
        name: &str,
        data: Value,
    ) -> Self {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let clean = |c: char| if is_allowed(c) { c } else { '_' };
        let name: String = name.chars().take(NAME).map(clean).collect();
        let custom = match &*name {
            "" => "custom",
            name if TAKEN.contains(&name) => "custom_",
            _ => "",
        };
        let event_type = format!("{CUSTOM}{custom}{name}");
        let data = flattened(data);
        Self { call_id: call_id.into(), tool_name: tool_name.into(), data, event_type }
    }

    /// Returns the name, without `tool_`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.event_type[CUSTOM.len()..]
    }
}

/// A tool failed and will run again.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolRetry {
    /// The call id.
    pub call_id: String,
    /// The called name.
    pub tool_name: String,
    /// The number of the failed attempt, starting at 1.
    pub attempt: u32,
    /// The error.
    pub error: String,
    /// The delay before the next attempt.
    #[serde(rename = "delay_us", with = "micros")]
    pub delay: Duration,
}

/// The batch has ended.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolsEnd {
    /// One message per call, in call order, ready to append to the conversation.
    pub tool_messages: Vec<Message>,
    /// One result per call, in call order.
    pub execution_results: Vec<Arc<ExecutionResult>>,
}
