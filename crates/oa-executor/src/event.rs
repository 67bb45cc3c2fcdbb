use std::sync::Arc;
use std::time::Duration;

use oa_tools::{Emission, LogLevel, Progress};
use oa_types::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metrics::BatchMetrics;
use crate::result::{ExecutionResult, micros};

/// Something that happened in a batch.
///
/// Each call has exactly one start and, later, exactly one completion, also when it is not run: its
/// [`attempts`](ExecutionResult::attempts) tell. What a tool emits lies between the two. One
/// [`End`](Self::End) comes last.
///
/// As JSON an event is an object with a `type`: see [`to_json`](Self::to_json).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolEvent {
    /// `tool_call_start`: a call is taken up.
    CallStart(CallStart),
    /// `tool_progress`: how far a tool is.
    Progress(ToolProgress),
    /// `tool_status`: what a tool is doing.
    Status(ToolStatus),
    /// `tool_log`: a line of a tool's log.
    Log(ToolLog),
    /// `tool_<name>`: anything else that a tool says.
    Custom(Box<ToolCustom>),
    /// `tool_retry`: a tool failed and will be run again.
    Retry(ToolRetry),
    /// `tool_call_complete`: a call has ended.
    CallComplete(Arc<ExecutionResult>),
    /// `tool_metrics`: what the batch took, if asked for.
    Metrics(Box<BatchMetrics>),
    /// `tools_end`: the batch has ended.
    End(ToolsEnd),
}

impl ToolEvent {
    /// Returns the id of the call that it is about.
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

    /// Returns the type's name: `tool_call_start` and so on.
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

/// A call is taken up.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallStart {
    /// The id of the call.
    pub call_id: String,
    /// The name that is called.
    pub tool_name: String,
    /// The arguments that run, with defaults; as given if they do not fit or the call is cancelled before it
    /// begins.
    pub input: Value,
}

/// How far a tool is.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolProgress {
    /// The id of the call.
    pub call_id: String,
    /// The name that was called.
    pub tool_name: String,
    /// How far it is.
    #[serde(flatten)]
    pub progress: Progress,
}

/// What a tool is doing.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolStatus {
    /// The id of the call.
    pub call_id: String,
    /// The name that was called.
    pub tool_name: String,
    /// What it is doing.
    pub status: String,
}

/// A line of a tool's log.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolLog {
    /// The id of the call.
    pub call_id: String,
    /// The name that was called.
    pub tool_name: String,
    /// How much it matters.
    pub level: LogLevel,
    /// The line.
    pub message: String,
}

/// Anything that a tool says under a name of its own.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolCustom {
    /// The id of the call.
    pub call_id: String,
    /// The name that was called.
    pub tool_name: String,
    /// What is said.
    pub data: Value,
    pub(crate) event_type: String,
}

/// What custom events are called by, before their name.
pub(crate) const CUSTOM: &str = "tool_";
/// The longest name of a custom event, in characters.
const NAME: usize = 64;
/// Names that would be mistaken for events of our own.
const TAKEN: &[&str] =
    &["call_complete", "call_start", "log", "metrics", "progress", "retry", "status"];

impl ToolCustom {
    /// Creates an event of type `tool_<name>`.
    ///
    /// What is no letter, digit, `_` or `-` in the name becomes `_`, and a name of an event of our own
    /// gets `custom_` before it.
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
        let custom = if TAKEN.contains(&&*name) { "custom_" } else { "" };
        let event_type = format!("{CUSTOM}{custom}{name}");
        Self { call_id: call_id.into(), tool_name: tool_name.into(), data, event_type }
    }

    /// Returns the name, without `tool_`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.event_type[CUSTOM.len()..]
    }
}

/// A tool failed and will be run again.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolRetry {
    /// The id of the call.
    pub call_id: String,
    /// The name that was called.
    pub tool_name: String,
    /// The number of the attempt that failed, from 1.
    pub attempt: u32,
    /// Why it failed.
    pub error: String,
    /// The pause before the next.
    #[serde(rename = "delay_us", with = "micros")]
    pub delay: Duration,
}

/// The batch has ended.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolsEnd {
    /// One message for each call, in the order of the calls, ready for the conversation.
    pub tool_messages: Vec<Message>,
    /// What is known of each call, in the order of the calls.
    pub execution_results: Vec<Arc<ExecutionResult>>,
}
