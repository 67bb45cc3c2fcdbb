use std::fmt;

use serde::{Deserialize, Serialize};

/// The outcome of a tool call.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// A hook or permission rule refused it.
    Blocked,
    /// It was canceled before it finished. If it had started, it may have taken effect.
    Cancelled,
    /// The tool returned an error.
    Failed,
    /// The arguments do not match the tool's schema; the tool was not run.
    InvalidInput,
    /// The call could not be parsed: it was cut off, or its arguments are not a JSON object.
    Malformed,
    /// It was allowed but not run: a limit was reached, no result was supplied, or a call it depends on failed.
    NotRun,
    /// The tool succeeded.
    Ok,
    /// The tool panicked.
    Panicked,
    /// The tool or the whole run timed out.
    TimedOut,
    /// It had started, and its result was lost: the process that ran it has ended. It may have taken effect, in
    /// whole or in part.
    Unknown,
    /// No tool has this name.
    UnknownTool,
}

impl Outcome {
    /// Returns true if the tool succeeded.
    #[must_use]
    pub fn is_ok(self) -> bool {
        self == Self::Ok
    }

    /// Returns true for every outcome but [`Ok`](Self::Ok): the model sees that the call failed.
    #[must_use]
    pub fn is_error(self) -> bool {
        !self.is_ok()
    }

    /// Returns the outcome as a word, as used in events and logs.
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
