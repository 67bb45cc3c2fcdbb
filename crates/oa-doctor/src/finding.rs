use std::fmt;

use serde::Serialize;

/// One probe of a server and a model.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Probe {
    /// Tool calls when the model may choose.
    AutoCalls,
    /// The error for a malformed request.
    BadRequest,
    /// The size of the model's context.
    Context,
    /// Tool calls when one is required: valid arguments, streamed.
    ForcedCalls,
    /// The wait before the first token: keep-alive comments or silence.
    Idle,
    /// The model's entry in the server's list.
    Models,
    /// Several tool calls in one answer.
    ParallelCalls,
    /// The server: its address and its provider.
    Reach,
    /// Answers that match a JSON Schema.
    Schema,
    /// The time to the first token, and the rate of the others.
    Speed,
    /// Text that streams as it is generated.
    Streaming,
    /// The location of thinking in an answer.
    Thinking,
    /// A limit on the length of an answer, and the name of its member.
    TokenLimit,
    /// A history with a call and its result.
    ToolResults,
    /// The error for a model that does not exist.
    UnknownModel,
    /// Token counts, and where they are reported.
    Usage,
}

impl Probe {
    /// All probes, in the order in which they run.
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

    /// Returns the name, in words.
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

/// The outcome of a probe.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// It works.
    Ok,
    /// It could not be determined.
    Unknown,
    /// It works, with a caveat.
    Warn,
    /// It does not work.
    Fail,
}

impl Verdict {
    /// Returns the verdict as a word.
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

/// The result of one probe.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The probe.
    pub probe: Probe,
    /// The outcome.
    pub verdict: Verdict,
    /// The observation.
    pub seen: String,
    /// Advice, if there is something to do.
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
