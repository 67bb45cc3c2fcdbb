use std::fmt;

use serde::{Deserialize, Serialize};

/// The outcome of a tool call.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// A hook or a permission did not let it run.
    Blocked,
    /// It was cancelled before it had answered. If it had started, it may have taken effect.
    Cancelled,
    /// The tool ran and returned an error.
    Failed,
    /// The arguments do not fit the tool's schema; it was not run.
    InvalidInput,
    /// The call could not be read: it was cut off, or its arguments are no JSON object.
    Malformed,
    /// It was allowed and yet not run: a limit was reached, nobody answered it, or a call it needs
    /// failed.
    NotRun,
    /// The tool ran and answered.
    Ok,
    /// The tool panicked.
    Panicked,
    /// The tool, or the whole run, took too long.
    TimedOut,
    /// It had started, and its result was lost: the process that ran it has ended. It may have taken effect, in
    /// whole or in part.
    Unknown,
    /// There is no such tool.
    UnknownTool,
}

impl Outcome {
    /// Returns whether the tool ran and answered.
    #[must_use]
    pub fn is_ok(self) -> bool {
        self == Self::Ok
    }

    /// Returns whether the model is told that the call failed: every outcome but [`Ok`](Self::Ok).
    #[must_use]
    pub fn is_error(self) -> bool {
        !self.is_ok()
    }

    /// Returns the outcome as a word, as it is in events and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::InvalidInput => "invalid_input",
            Self::Malformed => "malformed",
            Self::NotRun => "not_run",
            Self::Ok => "ok",
            Self::Panicked => "panicked",
            Self::TimedOut => "timed_out",
            Self::Unknown => "unknown",
            Self::UnknownTool => "unknown_tool",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
