//! The inputs and outputs of handlers, as JSON.

use oa_output::{OutputMode, ResponseFormat};
use oa_turn::{BudgetLeft, Spent};
use oa_types::{FinishReason, ImageBlock, Message};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The input of `Agent/KEY/prompt`: `{"message": "Hello"}`, or a whole message with images or audio.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionPrompt {
    /// The message. A string is a user's message.
    #[serde(deserialize_with = "message")]
    pub message: Message,
    /// The agent of the session: a [named agent](crate::AgentWorker::agent) of the worker, or by default its main
    /// agent. The first prompt sets it, and later prompts must name the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The structured output to request: the reply then has a [value](TurnReply::value).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<PromptOutput>>,
    /// The remaining budgets of the outer turn.
    #[serde(default, skip_serializing_if = "BudgetLeft::is_unlimited")]
    pub left: BudgetLeft,
    /// The agents that this one runs within, outermost first; an empty name is the worker's main agent. Calls also
    /// need their [permission](oa_client::AgentOptions::within).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<String>,
    /// True for the turn of a sub-agent: the reply then tells of a failure, because an error would lose what was spent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) is_call: bool,
}

/// Structured output of a turn: `{"name": "place", "schema": {"type": "object", ...}}`.
///
/// As in a client, the model reads the validation errors and tries again within the same turn. When the turn is over,
/// invalid answers are removed from history. Without a valid answer, `prompt` returns 422.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PromptOutput {
    /// The name and the schema.
    #[serde(flatten)]
    pub format: ResponseFormat,
    /// The mode in which it is requested from the model.
    #[serde(default)]
    pub mode: OutputMode,
    /// The name of the output tool; `final_answer` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The maximum number of attempts; 3 by default.
    #[serde(default = "three")]
    pub tries: u32,
}

/// The output of `prompt`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TurnReply {
    /// The number of the turn in its session, from 1.
    pub turn: u64,
    /// The reason why the turn ended.
    pub reason: FinishReason,
    /// The text of the last answer; empty if there is none.
    pub text: String,
    /// The value, if the prompt requested [structured output](SessionPrompt::output). It is missing if the turn was
    /// interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The number of attempts at the value.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u32,
    /// The amount of its budgets that the turn has spent.
    #[serde(default, skip_serializing_if = "Spent::is_zero")]
    pub spent: Spent,
    /// The failure of a sub-agent's turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

/// The output of `Agent/KEY/status`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The number of prompts so far.
    pub prompts: u64,
    /// The messages of the finished turns.
    pub messages: u64,
    /// The size of the finished turns, in bytes of JSON.
    pub bytes: u64,
    /// The agent of the session; `None` is the worker's main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The turn in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnStatus>,
    /// The calls that wait for a decision or a result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingCall>,
}

/// A turn in progress.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TurnStatus {
    /// The number of the turn in its session, from 1.
    pub turn: u64,
    /// The id of its invocation, for the engine's own tools.
    pub invocation: String,
    /// The requests to the model so far.
    pub requests: u64,
}

/// A call that waits for a decision or a result.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PendingCall {
    /// The id of the call, for `approve`, `deny` and `answer`.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The input that the call would run with.
    pub input: Value,
    /// The operation that it waits for.
    pub waits_for: WaitsFor,
    /// The id of the engine's durable promise.
    pub awakeable: String,
}

/// The operation that a call waits for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitsFor {
    /// `approve` or `deny`.
    Approval,
    /// `answer`.
    Result,
}

/// The input of `Agent/KEY/approve`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Approve {
    /// The id of the call.
    pub id: String,
    /// A replacement for the input of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

/// The input of `Agent/KEY/deny`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Deny {
    /// The id of the call.
    pub id: String,
    /// The reason, which the model reads.
    pub reason: String,
}

/// The input of `Agent/KEY/answer`: the result of a call whose tool is external.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExternalResult {
    /// The id of the call.
    pub id: String,
    /// The result, or the error.
    pub content: Value,
    /// True if it is an error.
    #[serde(default)]
    pub is_error: bool,
    /// The images that the model sees with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageBlock>,
}

/// The input of `Agent/KEY/fork`, which fills an empty session from another one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Fork {
    /// The session to copy.
    pub from: String,
    /// The number of messages to copy from the beginning; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<usize>,
}

/// The input of `AgentBatch/run`: many prompts, each in its own session.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BatchPrompts {
    /// The name of the batch. The session of the first prompt is `NAME/0`. Another batch of the same name continues
    /// these sessions.
    pub name: String,
    /// The prompts.
    pub prompts: Vec<String>,
    /// The number of concurrent turns, at most 256; 16 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<usize>,
    /// The structured output of each turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<PromptOutput>>,
}

/// One prompt of a finished batch.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BatchItem {
    /// The session, which can be continued.
    pub session: String,
    /// The reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<TurnReply>,
    /// The error of a turn that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The answer to a call that waits.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Given {
    Approved { input: Value },
    Denied { reason: String },
    Result(ExternalResult),
}

impl SessionPrompt {
    /// Creates a prompt.
    #[must_use]
    pub fn new(message: Message) -> Self {
        let left = BudgetLeft::default();
        Self { message, agent: None, output: None, left, within: Vec::new(), is_call: false }
    }

    /// Creates a prompt from a text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Message::user(text))
    }

    /// Requests structured output.
    #[must_use]
    pub fn with_output(mut self, output: impl Into<PromptOutput>) -> Self {
        self.output = Some(Box::new(output.into()));
        self
    }
}

impl From<ResponseFormat> for PromptOutput {
    fn from(format: ResponseFormat) -> Self {
        Self { format, mode: OutputMode::default(), tool: None, tries: three() }
    }
}

impl Approve {
    /// Approves a call with its own input.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), input: None }
    }
}

impl Deny {
    /// Denies a call; the model reads the reason.
    #[must_use]
    pub fn new(id: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { id: id.into(), reason: reason.into() }
    }
}

impl ExternalResult {
    /// Creates the result of a call.
    #[must_use]
    pub fn new(id: impl Into<String>, content: Value) -> Self {
        Self { id: id.into(), content, is_error: false, images: Vec::new() }
    }
}

impl Fork {
    /// Copies all messages of a session.
    #[must_use]
    pub fn new(from: impl Into<String>) -> Self {
        Self { from: from.into(), keep: None }
    }
}

impl BatchPrompts {
    /// Creates a batch.
    #[must_use]
    pub fn new(name: impl Into<String>, prompts: Vec<String>) -> Self {
        Self { name: name.into(), prompts, at_once: None, output: None }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn three() -> u32 {
    3
}

/// Reads a message, or a string as a user's message.
pub(crate) fn message<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Message, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Said {
        Text(String),
        Message(Message),
    }

    Ok(match Said::deserialize(deserializer)? {
        Said::Text(text) => Message::user(text),
        Said::Message(message) => message,
    })
}
