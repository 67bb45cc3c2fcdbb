use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// Why an answer, or a turn, ended.
///
/// Servers say what they like here (QUIRKS rows 49 and 50), so that this is an open list: a word that
/// is not known is kept as it came.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FinishReason {
    /// Calls wait until somebody permits them.
    ApprovalPending,
    /// The server's content filter stopped it.
    ContentFilter,
    /// It was interrupted by the caller.
    Interrupted,
    /// It reached the token limit.
    Length,
    /// The money for one prompt was used up.
    MaxRunCost,
    /// The time for one prompt was up.
    MaxRunTime,
    /// The tokens for one prompt were used up.
    MaxRunTokens,
    /// The tool calls for one prompt were used up.
    MaxToolCalls,
    /// The model asked for tools again after the last round that was allowed.
    MaxToolIterations,
    /// The model refused to answer.
    Refusal,
    /// The model made the same call again and again, with the same result.
    RepeatedToolCall,
    /// The model said all it had to say.
    Stop,
    /// The model waits for tools.
    ToolCalls,
    /// The server did not say: the answer may be incomplete.
    #[default]
    Unspecified,
    /// Any other word of a server.
    Other(Box<str>),
}

impl FinishReason {
    /// What a server says. The reasons of which only the caller's side knows are no words of a server: there
    /// they are [`Other`](Self::Other).
    #[must_use]
    pub fn from_server(word: &str) -> Self {
        match word {
            "" => Self::Unspecified,
            "content_filter" => Self::ContentFilter,
            "length" => Self::Length,
            "refusal" => Self::Refusal,
            "stop" => Self::Stop,
            "tool_calls" => Self::ToolCalls,
            other => Self::Other(other.into()),
        }
    }

    /// Returns the reason as a word, in a server's spelling where it comes from one.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::ApprovalPending => "approval_pending",
            Self::ContentFilter => "content_filter",
            Self::Interrupted => "interrupted",
            Self::Length => "length",
            Self::MaxRunCost => "max_run_cost",
            Self::MaxRunTime => "max_run_time",
            Self::MaxRunTokens => "max_run_tokens",
            Self::MaxToolCalls => "max_tool_calls",
            Self::MaxToolIterations => "max_tool_iterations",
            Self::Refusal => "refusal",
            Self::RepeatedToolCall => "repeated_tool_call",
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Unspecified => "unspecified",
            Self::Other(word) => word,
        }
    }

    /// Returns whether a limit of the caller's ended the turn: of rounds, calls, tokens, money, time or repetition.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::MaxRunCost
                | Self::MaxRunTime
                | Self::MaxRunTokens
                | Self::MaxToolCalls
                | Self::MaxToolIterations
                | Self::RepeatedToolCall
        )
    }

    /// Whether the answer was cut off by a token limit, in any server's spelling.
    #[must_use]
    pub fn is_length(&self) -> bool {
        match self {
            Self::Length => true,
            Self::Other(word) => matches!(&**word, "max_tokens" | "model_length"),
            _ => false,
        }
    }
}

/// Of a word that [`as_str`](FinishReason::as_str) returned.
impl From<&str> for FinishReason {
    fn from(word: &str) -> Self {
        match word {
            "" | "unspecified" => Self::Unspecified,
            "approval_pending" => Self::ApprovalPending,
            "content_filter" => Self::ContentFilter,
            "interrupted" => Self::Interrupted,
            "length" => Self::Length,
            "max_run_cost" => Self::MaxRunCost,
            "max_run_time" => Self::MaxRunTime,
            "max_run_tokens" => Self::MaxRunTokens,
            "max_tool_calls" => Self::MaxToolCalls,
            "max_tool_iterations" => Self::MaxToolIterations,
            "refusal" => Self::Refusal,
            "repeated_tool_call" => Self::RepeatedToolCall,
            "stop" => Self::Stop,
            "tool_calls" => Self::ToolCalls,
            other => Self::Other(other.into()),
        }
    }
}

impl FromStr for FinishReason {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(word.into())
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// As a word. Each reason is read as the same: a server's word that is spelled like a reason of another kind is
/// written behind `other:`.
impl Serialize for FinishReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Other(word) if word.starts_with(OTHER) || Self::from(&**word) != *self => {
                serializer.collect_str(&format_args!("{OTHER}{word}"))
            }
            _ => serializer.serialize_str(self.as_str()),
        }
    }
}

impl<'de> Deserialize<'de> for FinishReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(match word.strip_prefix(OTHER) {
            Some(word) => Self::Other(word.into()),
            None => Self::from(&*word),
        })
    }
}

const OTHER: &str = "other:";
