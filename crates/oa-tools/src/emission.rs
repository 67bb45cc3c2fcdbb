use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a running tool says before its result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Emission {
    /// Anything, under a name of the tool's own.
    Custom {
        /// The name.
        name: String,
        /// What is said.
        data: Value,
    },
    /// A line for a log.
    Log {
        /// How much it matters.
        level: LogLevel,
        /// The line.
        message: String,
    },
    /// How far the tool is.
    Progress(Progress),
    /// What the tool is doing now.
    Status(String),
}

/// How far a tool is: `done` of `total` steps of its own choice.
///
/// Made from two numbers, or from a fraction between 0 and 1, which becomes a percentage.
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
    /// How many steps are done.
    pub done: u64,
    /// How many there are, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What was just done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Progress {
    /// Creates a report of `done` of `total` steps.
    #[must_use]
    pub fn new(done: u64, total: Option<u64>) -> Self {
        Self { done, total, message: None }
    }

    /// Adds what was just done.
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

/// How much a line of a log matters.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogLevel {
    /// For whoever looks for a mistake.
    Debug,
    /// For whoever follows what happens.
    #[default]
    Info,
    /// Something is not as it should be.
    Warn,
    /// Something failed.
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

/// Takes what one call of a tool says while it runs.
///
/// Tools call it from any thread and do not wait for it: an emitter returns at once.
pub trait Emitter: Send + Sync {
    /// Takes one thing that was said.
    fn emit(&self, emission: Emission);
}

impl<F: Fn(Emission) + Send + Sync> Emitter for F {
    fn emit(&self, emission: Emission) {
        self(emission);
    }
}
