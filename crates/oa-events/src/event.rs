use std::sync::Arc;

use oa_aggregate::{Delta, Problem};
use oa_context::{CacheMiss, ContextShortened, PromptCut};
use oa_executor::ToolEvent;
use oa_types::{
    AssistantMessage, ContentBlock, FinishReason, Message, PromptProgress, TextBlock, ThinkingBlock,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event of a turn, as `oa-client` returns it from `Client::next_event`.
///
/// # JSON
///
/// An event is an object with a `type`, and `data` if it has any. `crates/oa-events/schema/agent-event.json` is the
/// JSON Schema. Later versions may add types and members; those that are here stay. The only thing that is not in
/// JSON is the [full result](oa_executor::ExecutionResult::full_result) of a truncated call.
#[doc = include_str!("../schema/agent-event.md")]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// An answer of the model has ended and is in history. If it has no calls, hooks may refuse it next.
    AnswerEnd(Arc<AssistantMessage>),
    /// A hook refused the answer that has just ended, for this reason; the model reads it and answers again. The
    /// refused answer leaves history when the turn is over.
    AnswerRetry(String),
    /// An answer begins: the head of the response has arrived.
    AnswerStart,
    /// A block, as `Client::receive` returns it: text and thinking as they are
    /// generated, calls, invalid calls, and results.
    Block(ContentBlock),
    /// The server had far fewer tokens of the prompt in its cache than before, for the answer that has just ended.
    CacheMiss(CacheMiss),
    /// A hook, a rule, the mode or the callback denied a call. Sent when that is decided, before any call of the
    /// answer starts; the error and the result that the model reads follow as blocks, in call order.
    CallDenied(Box<CallDenied>),
    /// The conversation was shortened before the next request, as the options of the agent allow.
    ContextShortened(ContextShortened),
    /// The server rejected the response format, with this message. This and later requests fall back to a weaker one.
    FormatRefused(String),
    /// An event of a sub-agent, between the start and the completion of the call that runs it.
    Nested(Box<NestedEvent>),
    /// The stream was malformed somewhere, and continued.
    Problem(Problem),
    /// The server seems to have silently cut the prompt of the answer that has just ended.
    PromptCut(PromptCut),
    /// The server reads the prompt, before the answer begins. Sent if the agent asks for it, and the server tells.
    PromptProgress(PromptProgress),
    /// A hook kept a steered message from entering, for this reason.
    SteerBlocked(String),
    /// A message that was steered into the turn has entered history, as hooks have left it.
    Steered(Message),
    /// Progress of tools: started, output, completed.
    Tool(ToolEvent),
    /// The server says that the model does not support tools, with its message: from now on calls are made in text.
    ToolsRefused(String),
    /// The start of a call, or a fragment of one that is not complete yet.
    ToolUseDelta(ToolUseDelta),
    /// The turn is over, or waits for results of calls.
    TurnEnd(FinishReason),
}

/// A call that will not run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallDenied {
    /// The id of the call.
    pub call_id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The denied input: the one that would have run.
    pub input: Value,
    /// The reason, as the model reads it.
    pub reason: String,
}

impl CallDenied {
    /// Creates the event of a call that was denied.
    #[must_use]
    pub fn new(
        call_id: impl Into<String>,
        tool_name: impl Into<String>,
        input: Value,
        reason: impl Into<String>,
    ) -> Self {
        let (call_id, tool_name) = (call_id.into(), tool_name.into());
        Self { call_id, tool_name, input, reason: reason.into() }
    }
}

/// An event of a sub-agent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NestedEvent {
    /// The id of the call that runs the sub-agent.
    pub call_id: String,
    /// The name of the sub-agent: that of the tool.
    pub agent: String,
    /// The event. Of a sub-agent of the sub-agent, it is nested again.
    pub event: AgentEvent,
}

impl NestedEvent {
    /// Creates an event of the sub-agent that a call runs.
    #[must_use]
    pub fn new(call_id: impl Into<String>, agent: impl Into<String>, event: AgentEvent) -> Self {
        Self { call_id: call_id.into(), agent: agent.into(), event }
    }
}

/// A fragment of a call.
///
/// The first one of a call has its id and its name, and is sent once the name is known; fragments that arrived before
/// follow as one. A call whose name never arrives is seen only as a block, a
/// [`ToolUseError`](oa_types::ToolUseError).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolUseDelta {
    /// The index of the call in the answer, from 0, in the order in which calls began.
    pub call: usize,
    /// The id of the call, in the first fragment: the same as in history and in all later events. It is made up if
    /// the server has sent none by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name, in the first fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the arguments as the server sent them: a fragment of JSON text. Empty in the first fragment.
    pub arguments: String,
}

impl AgentEvent {
    /// Returns the event for a change to an answer; text and thinking only if `shows_text` is true.
    #[inline]
    #[must_use]
    pub fn from_delta(delta: Delta<'_>, shows_text: bool) -> Option<Self> {
        let piece = |call, id: Option<&str>, name: Option<&str>, arguments: &str| {
            let (id, name) = (id.map(str::to_owned), name.map(str::to_owned));
            Some(Self::ToolUseDelta(ToolUseDelta {
                call,
                id,
                name,
                arguments: arguments.to_owned(),
            }))
        };
        match delta {
            Delta::CallArguments { call, fragment } => piece(call, None, None, fragment),
            Delta::CallStart { call, id, name } => piece(call, Some(id), Some(name), ""),
            Delta::PromptProgress(progress) => Some(Self::PromptProgress(progress)),
            Delta::Problem(problem) => Some(Self::Problem(problem.clone())),
            delta if shows_text => block(delta).map(Self::Block),
            _ => None,
        }
    }
}

/// Returns a piece of text or thinking as a block.
#[inline]
fn block(delta: Delta<'_>) -> Option<ContentBlock> {
    match delta {
        Delta::Text(text) | Delta::Refusal(text) => Some(TextBlock::new(text).into()),
        Delta::Thinking(thinking) => Some(ThinkingBlock::new(thinking).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
