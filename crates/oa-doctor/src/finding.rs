use std::fmt;

use serde::Serialize;

/// One thing that a doctor looks at.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Probe {
    /// Whether a tool is called where that is left to the model.
    AutoCalls,
    /// What is answered to a request that makes no sense.
    BadRequest,
    /// How large the model's context is.
    Context,
    /// Whether a tool is called where one must be, with valid arguments, and in a stream.
    ForcedCalls,
    /// What comes before the first token: comments that keep the connection alive, or silence.
    Idle,
    /// Whether the model is on the server's list.
    Models,
    /// Whether several tools are called in one answer.
    ParallelCalls,
    /// Whether there is a server, and which.
    Reach,
    /// Whether an answer keeps to a JSON Schema.
    Schema,
    /// How long the first token takes, and how fast the others come.
    Speed,
    /// Whether text comes as it is generated.
    Streaming,
    /// Where thinking stands.
    Thinking,
    /// Whether the longest answer can be set, and by which name.
    TokenLimit,
    /// Whether a history with a call and its result is taken.
    ToolResults,
    /// What is answered to a model that does not exist.
    UnknownModel,
    /// Whether tokens are counted, and where that is told.
    Usage,
}

impl Probe {
    /// All of them, in the order in which they are made.
    pub const ALL: &'static [Self] = &[
        Self::Reach,
        Self::Models,
        Self::Context,
        Self::Streaming,
        Self::Usage,
        Self::Thinking,
        Self::Idle,
        Self::Speed,
        Self::TokenLimit,
        Self::ForcedCalls,
        Self::AutoCalls,
        Self::ParallelCalls,
        Self::ToolResults,
        Self::Schema,
        Self::UnknownModel,
        Self::BadRequest,
    ];

    /// Returns its name, in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AutoCalls => "auto calls",
            Self::BadRequest => "bad request",
            Self::Context => "context",
            Self::ForcedCalls => "forced calls",
            Self::Idle => "idle",
            Self::Models => "models",
            Self::ParallelCalls => "parallel calls",
            Self::Reach => "reach",
            Self::Schema => "schema",
            Self::Speed => "speed",
            Self::Streaming => "streaming",
            Self::Thinking => "thinking",
            Self::TokenLimit => "token limit",
            Self::ToolResults => "tool results",
            Self::UnknownModel => "unknown model",
            Self::Usage => "usage",
        }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How things stand.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It could not be found out.
    Unknown,
    /// It works, with something to know about.
    Warn,
    /// It does not work.
    Fail,
}

impl Verdict {
    /// Returns it as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What one probe came to.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What was looked at.
    pub probe: Probe,
    /// How it stands.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// What to do about it, if there is something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    pub(crate) fn new(probe: Probe, verdict: Verdict, seen: impl Into<String>) -> Self {
        Self { probe, verdict, seen: seen.into(), advice: None }
    }

    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}
