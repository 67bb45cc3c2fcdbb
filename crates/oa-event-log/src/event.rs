//! The events of a conversation.

use std::fmt;
use std::str::FromStr;

use oa_events::AgentEvent;
use oa_types::{AudioBlock, ContentBlock, FinishReason, Message, ToolUseBlock, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The id of an event in a conversation: its run and its number.
///
/// Numbers continue across runs. Runs are numbered by their start time, so an id is never reused, not even by a later
/// process.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_structs, reason = "servers create and read every part of it")]
pub struct EventId {
    /// The number of the run.
    pub run: u64,
    /// The number of the event, across runs.
    pub number: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.run, self.number)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (run, number) = text.trim().split_once('-').ok_or(())?;
        Ok(Self { run: run.parse().map_err(drop)?, number: number.parse().map_err(drop)? })
    }
}

/// An event of a conversation, as sent to its viewers.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "servers create and read every part of it")]
pub enum ConversationEvent {
    /// An event of the turn.
    Agent(AgentEvent),
    /// A viewer answered a waiting call.
    Answered {
        /// The id of the call.
        call_id: String,
        /// The answer.
        answer: CallAnswer,
    },
    /// A viewer sent a prompt.
    Prompt {
        /// Its text.
        text: String,
        /// The URLs of its images and recordings. Those of recordings begin with `data:audio/`.
        images: Vec<String>,
    },
    /// A run began or ended.
    Run(RunEvent),
}

impl ConversationEvent {
    /// Returns the event that announces a prompt to viewers.
    #[must_use]
    pub fn of_prompt(prompt: &Message) -> Self {
        let media = prompt.content.iter().filter_map(|block| match block {
            ContentBlock::Image(image) => Some(image.url.clone()),
            ContentBlock::Audio(AudioBlock { data, format, .. }) => {
                Some(format!("data:audio/{format};base64,{data}"))
            }
            _ => None,
        });
        Self::Prompt { text: prompt.text(), images: media.collect() }
    }
}

/// An answer to a waiting call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "servers create and read every part of it")]
pub enum CallAnswer {
    /// The call may run.
    Approved {
        /// The input to run, if the user changed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
    },
    /// The call must not run.
    Denied {
        /// The reason, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The result of a tool that does not run on the server.
    Result {
        /// The result, for the model.
        content: Value,
        /// True if the call failed.
        #[serde(default)]
        is_error: bool,
    },
}

/// The start or the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "servers create and read every part of it")]
pub struct RunEvent {
    /// The number of the run.
    pub run: u64,
    /// Its beginning or its end.
    pub state: RunState,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The error that ended it, or kept it from being stored.
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The reason for its end.
    pub finish_reason: Option<FinishReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The tokens of its last answer.
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    /// The calls that wait for an answer.
    pub waiting: Vec<WaitingCall>,
    /// The error status of the model's server, for protocols that forward it.
    #[serde(skip)]
    pub status: Option<u16>,
    /// The nature of the error, for protocols whose clients repeat requests.
    #[serde(skip)]
    pub failure: FailureKind,
}

/// The nature of the error that ended a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "servers create and read every part of it")]
pub enum FailureKind {
    /// A hook blocked the prompt or the answer.
    Blocked,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// The same prompt would fail again.
    Lasting,
    /// The same prompt may succeed later.
    #[default]
    Passing,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "servers create and read every part of it")]
pub enum RunState {
    /// It has ended.
    Ended,
    /// It has failed.
    Failed,
    /// It has begun.
    #[default]
    Started,
}

/// A call that waits for an approval or for its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "servers create and read every part of it")]
pub struct WaitingCall {
    /// The id of the call.
    pub call_id: String,
    /// The name of the tool.
    pub name: String,
    /// The input that would run.
    pub input: Value,
    /// The kind of answer that it waits for.
    pub kind: WaitingKind,
    /// The purpose of the tool, from its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// The kind of answer that a call waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "servers create and read every part of it")]
pub enum WaitingKind {
    /// For an approval or a denial.
    Approval,
    /// For its result.
    Result,
}

impl WaitingCall {
    /// Creates the entry of a call, without a purpose.
    #[must_use]
    pub fn new(call: ToolUseBlock, kind: WaitingKind) -> Self {
        Self { call_id: call.id, name: call.name, input: call.input, kind, prompt: None }
    }
}
