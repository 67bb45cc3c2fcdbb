use oa_types::{FinishReason, Message};
use serde::{Deserialize, Serialize};

/// The phase of the turn in progress, with everything that is true in that phase alone.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Phase {
    /// Nothing is in progress; in manual mode calls may be open.
    Idle { rest: Rest },
    /// A prompt that is not in history yet is at its gate.
    Prompting { prompt: Box<Message>, handed: bool, rest: Rest },
    /// Results are looked at, then a request follows.
    Continuing { prompt: Option<usize> },
    /// An answer is waited for. `prompt` is the place of the prompt in history, as long as the answer has
    /// not begun: until then a failure takes the prompt back.
    Requesting { sent: bool, prompt: Option<usize> },
    /// The calls of an answer are decided, run and looked at. `continues`: the caller of manual mode has
    /// said that the turn goes on once the last of them is answered.
    Calling { started: bool, continues: bool, reason: FinishReason },
    /// The end is still to be told.
    Ending { reason: FinishReason, rest: Rest },
}

/// The state of a conversation in which nothing is in progress.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rest {
    /// Calls wait for somebody's permission, and then the turn can go on with them.
    Approval,
    /// Only a prompt or the wish to go on begins a turn.
    #[default]
    Done,
    /// The turn goes on by itself once the last open call is answered.
    Results,
}

impl Phase {
    pub(super) const IDLE: Self = Self::Idle { rest: Rest::Done };

    pub(super) fn ending(reason: FinishReason) -> Self {
        Self::Ending { reason, rest: Rest::Done }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle { .. })
    }

    /// Returns whether calls wait for permission, and nothing else can begin before they are decided.
    pub(super) fn awaits_approval(&self) -> bool {
        matches!(
            self,
            Self::Ending { rest: Rest::Approval, .. }
                | Self::Idle { rest: Rest::Approval }
                | Self::Prompting { rest: Rest::Approval, .. }
        )
    }

    /// Returns the place of a prompt whose answer has not begun.
    pub(super) fn prompt(&self) -> Option<usize> {
        match self {
            Self::Continuing { prompt } | Self::Requesting { prompt, .. } => *prompt,
            _ => None,
        }
    }
}
