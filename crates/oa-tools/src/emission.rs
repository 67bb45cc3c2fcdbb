use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Output of a running tool, before its result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Emission {
    /// Custom data under a name chosen by the tool.
    Custom {
        /// The name.
        name: String,
        /// The data.
        data: Value,
    },
    /// A log line.
    Log {
        /// The severity.
        level: LogLevel,
        /// The message.
        message: String,
    },
    /// A progress report.
    Progress(Progress),
    /// The current activity.
    Status(String),
}

/// Progress of a tool: `done` of `total` steps, in units of its choice.
///
/// Converts from two numbers, or from a fraction between 0 and 1, which becomes a percentage.
///
/// ```
/// use oa_tools::Progress;
///
/// assert_eq!(Progress::from((3, 8)), Progress::new(3, Some(8)));
/// assert_eq!(Progress::from(0.5), Progress::new(50, Some(100)));
/// ```
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// The number of finished steps.
    pub done: u64,
    /// The number of all steps, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// A description of the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Progress {
    /// Creates a report of `done` out of `total` steps.
    #[must_use]
    pub fn new(done: u64, total: Option<u64>) -> Self {
        Self { done, total, message: None }
    }

    /// Sets a description of the last step.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

impl From<(u64, u64)> for Progress {
    fn from((done, total): (u64, u64)) -> Self {
        Self::new(done, Some(total))
    }
}

impl From<f64> for Progress {
    fn from(fraction: f64) -> Self {
        // NaN casts to 0.
        Self::new((fraction.clamp(0.0, 1.0) * 100.0).round() as u64, Some(100))
    }
}

/// The severity of a log line.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Normal operation.
    #[default]
    Info,
    /// A potential problem.
    Warn,
    /// A failure.
    Error,
}

impl LogLevel {
    /// Returns the level's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Error => "error",
            Self::Info => "info",
            Self::Warn => "warn",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Receives the output of one running tool call.
///
/// Tools call it from any thread and do not wait for it, so it must return quickly.
pub trait Emitter: Send + Sync {
    /// Receives one piece of output.
    fn emit(&self, emission: Emission);
}

impl<F: Fn(Emission) + Send + Sync> Emitter for F {
    fn emit(&self, emission: Emission) {
        self(emission);
    }
}

/// Records everything that a tool emits, for tests of it. Clones share the record.
///
/// ```
/// use oa_tools::{Emission, Emissions, ToolContext};
///
/// let seen = Emissions::new();
/// let cx = ToolContext::new("call_1", "visit").with_emitter(seen.emitter());
/// cx.emit_status("on the way"); // or a tool does, in `tool.execute_with(input, cx)`
/// assert_eq!(seen.take(), [Emission::Status("on the way".to_owned())]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Emissions(Arc<Mutex<Vec<Emission>>>);

impl Emissions {
    /// Creates an empty record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the recorder for [`ToolContext::with_emitter`](crate::ToolContext::with_emitter).
    #[must_use]
    pub fn emitter(&self) -> Arc<dyn Emitter> {
        Arc::new(self.clone())
    }

    /// Returns what was emitted since the last call, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Emission> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Emitter for Emissions {
    fn emit(&self, emission: Emission) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(emission);
    }
}
