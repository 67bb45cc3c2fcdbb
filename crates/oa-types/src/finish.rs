use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// The reason why an answer or a turn ended.
///
/// Servers send arbitrary words here (QUIRKS rows 49 and 50), so unknown words are kept as
/// [`Other`](Self::Other).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FinishReason {
    /// Tool calls are waiting for approval.
    ApprovalPending,
    /// The server's content filter stopped the answer.
    ContentFilter,
    /// The caller interrupted it.
    Interrupted,
    /// The answer reached its token limit.
    Length,
    /// The cost limit for one prompt was reached.
    MaxRunCost,
    /// The time limit for one prompt was reached.
    MaxRunTime,
    /// The token limit for one prompt was reached.
    MaxRunTokens,
    /// The limit on tool calls for one prompt was reached.
    MaxToolCalls,
    /// The model asked for tools after the last allowed iteration.
    MaxToolIterations,
    /// The model refused to answer.
    Refusal,
    /// The model repeated the same call with the same result too often.
    RepeatedToolCall,
    /// The model finished its answer.
    Stop,
    /// A condition of the caller ended the turn after a step.
    Stopped,
    /// The model called tools and waits for their results.
    ToolCalls,
    /// The server sent no reason; the answer may be incomplete.
    #[default]
    Unspecified,
    /// Calls of external tools wait for their results.
    WaitsForResults,
    /// Any other word from a server.
    Other(Box<str>),
}

impl FinishReason {
    /// Converts a server's word, in upper or lower case; `"null"` and `"None"` are no reason. Reasons that only the client
    /// produces, such as `interrupted`, become [`Other`](Self::Other).
    #[must_use]
    pub fn from_server(word: &str) -> Self {
        let known = |word: &str| match word {
            "" | "null" | "None" => Some(Self::Unspecified),
            "content_filter" => Some(Self::ContentFilter),
            "length" => Some(Self::Length),
            "refusal" => Some(Self::Refusal),
            "stop" => Some(Self::Stop),
            "tool_calls" => Some(Self::ToolCalls),
            _ => None,
        };
        known(word)
            .or_else(|| known(&word.to_ascii_lowercase()))
            .unwrap_or_else(|| Self::Other(word.into()))
    }

    /// Returns the reason as a word, in the server's spelling where it came from one.
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
            Self::Stopped => "stopped",
            Self::ToolCalls => "tool_calls",
            Self::Unspecified => "unspecified",
            Self::WaitsForResults => "waits_for_results",
            Self::Other(word) => word,
        }
    }

    /// Returns true if a limit set by the caller ended the turn: iterations, calls, tokens, cost, time or
    /// repetition.
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

    /// Returns true if the model finished its answer, in any server's spelling (QUIRKS row 50). Without a reason the
    /// answer may have broken off.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Stop => true,
            Self::Other(word) => {
                is_one_of(word, &["end", "end_turn", "eos_token", "stop_sequence"])
            }
            _ => false,
        }
    }

    /// Returns true if a content filter stopped the answer, in any server's spelling (QUIRKS row 50).
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        match self {
            Self::ContentFilter => true,
            Self::Other(word) => {
                let words = [
                    "blocklist",
                    "prohibited_content",
                    "recitation",
                    "safety",
                    "sensitive",
                    "spii",
                ];
                is_one_of(word, &words) || word.starts_with("content_filter: ")
            }
            _ => false,
        }
    }

    /// Returns true if the answer has tool calls, in any server's spelling (QUIRKS row 50).
    #[must_use]
    pub fn is_tool_calls(&self) -> bool {
        match self {
            Self::ToolCalls => true,
            Self::Other(word) => is_one_of(word, &["function_call", "tool_use"]),
            _ => false,
        }
    }

    /// Returns true if the server could not read a call that the model wrote (QUIRKS row 128).
    #[must_use]
    pub fn is_malformed_call(&self) -> bool {
        match self {
            Self::Other(word) => word.to_ascii_lowercase().contains("malformed_function_call"),
            _ => false,
        }
    }

    /// Returns true if the server gave up, in any server's spelling (QUIRKS row 106).
    #[doc(hidden)]
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Other(word) => {
                let words = [
                    "abort",
                    "canceled",
                    "cancelled",
                    "capacity",
                    "error",
                    "insufficient_system_resource",
                    "network_error",
                    "timeout",
                ];
                is_one_of(word, &words)
            }
            _ => false,
        }
    }

    /// Returns true if a token limit cut the answer off, in any server's spelling.
    #[must_use]
    pub fn is_length(&self) -> bool {
        match self {
            Self::Length => true,
            Self::Other(word) => {
                is_one_of(word, &["max_tokens", "model_context_window_exceeded", "model_length"])
            }
            _ => false,
        }
    }
}

/// Gateways pass on the words of other APIs in their own case.
fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Parses a word returned by [`as_str`](FinishReason::as_str).
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
            "stopped" => Self::Stopped,
            "tool_calls" => Self::ToolCalls,
            "waits_for_results" => Self::WaitsForResults,
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

/// Serialized as a word that deserializes to the same reason. A server's word that equals the name of another reason
/// gets the prefix `other:`.
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
