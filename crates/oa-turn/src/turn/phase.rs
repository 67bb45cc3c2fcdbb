use oa_types::{FinishReason, Message};
use serde::{Deserialize, Serialize};

/// The phase of the turn in progress, with the state that belongs to that phase alone.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Phase {
    /// No turn is in progress. In manual mode, calls may be open.
    Idle { rest: Rest },
    /// A prompt awaits review and is not in history yet.
    Prompting { prompt: Box<Message>, handed: bool, rest: Rest },
    /// Results are reviewed, then a request follows.
    Continuing { prompt: Option<usize> },
    /// The first steered message awaits review, before the next request. `ended` is the reason for which the turn was
    /// about to end before it.
    Steering {
        handed: bool,
        prompt: Option<usize>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<FinishReason>,
    },
    /// The calls of a step are over, and its end may be the end of the turn.
    Checking { handed: bool },
    /// The conversation may be shortened before the next request. `is_overflow` is true if the server has refused it
    /// as too long.
    Shortening { handed: bool, prompt: Option<usize>, is_overflow: bool },
    /// The next request is being planned.
    Planning { handed: bool, prompt: Option<usize> },
    /// The turn waits for an answer. `prompt` is the index of the prompt in history until the answer begins: until
    /// then, a failure removes the prompt.
    Requesting { sent: bool, prompt: Option<usize> },
    /// The calls of an answer are decided, run and reviewed. `continues` is true if the caller, in manual mode, asked
    /// to continue once the last of them is answered. `hands_out` is true once external calls were handed out
    /// while others wait for permission.
    Calling {
        started: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        hands_out: bool,
        continues: bool,
        reason: FinishReason,
    },
    /// An answer without calls awaits review. `place` is its index in history, or the length of history if the answer
    /// was empty.
    Answered { reason: FinishReason, place: usize, handed: bool },
    /// The end has not been reported yet.
    Ending { reason: FinishReason, rest: Rest },
}

/// The state of a conversation without a turn in progress.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rest {
    /// Calls wait for permission; then the turn can be continued with them.
    Approval,
    /// Only a prompt or a request to continue begins a turn.
    #[default]
    Done,
    /// The turn continues by itself once the last open call is answered.
    Results,
}

impl Phase {
    pub(super) const IDLE: Self = Self::Idle { rest: Rest::Done };

    pub(super) fn calling(reason: FinishReason) -> Self {
        Self::Calling { started: false, hands_out: false, continues: false, reason }
    }

    pub(super) fn ending(reason: FinishReason) -> Self {
        Self::Ending { reason, rest: Rest::Done }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle { .. })
    }

    /// Returns true if calls wait for permission, and nothing else can begin before they are decided.
    pub(super) fn awaits_approval(&self) -> bool {
        matches!(
            self,
            Self::Ending { rest: Rest::Approval, .. }
                | Self::Idle { rest: Rest::Approval }
                | Self::Prompting { rest: Rest::Approval, .. }
        )
    }

    /// Returns the index of a prompt whose answer has not begun.
    pub(super) fn prompt(&self) -> Option<usize> {
        match self {
            Self::Continuing { prompt }
            | Self::Planning { prompt, .. }
            | Self::Requesting { prompt, .. }
            | Self::Shortening { prompt, .. }
            | Self::Steering { prompt, .. } => *prompt,
            _ => None,
        }
    }
}
