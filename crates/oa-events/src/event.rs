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
/// JSON Schema. Later versions may add types and members but do not remove any. The JSON omits only the
/// [full result](oa_executor::ExecutionResult::full_result) of a truncated call.
#[doc = include_str!("../schema/agent-event.md")]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// The end of an answer, which is now in history. If it has no calls, hooks may refuse it next.
    AnswerEnd(Arc<AssistantMessage>),
    /// A hook refused the answer that has just ended, for this reason. The model sees the reason and answers again. The
    /// refused answer is removed from history at the end of the turn.
    AnswerRetry(String),
    /// The start of an answer: the head of the response has arrived.
    AnswerStart,
    /// A block, as `Client::receive` returns it: pieces of text and thinking, calls, errors of calls, and results. A
    /// [`ToolUseError`](oa_types::ToolUseError) is either a malformed call, or comes right before the result of a call
    /// that failed or was denied.
    Block(ContentBlock),
    /// For the answer that has just ended, the server's cache held far fewer tokens of the prompt than before.
    CacheMiss(CacheMiss),
    /// A hook, a rule, the mode or the callback denied a call. Sent before any call of the answer starts; the error and
    /// the result that the model sees follow as blocks, in call order.
    CallDenied(Box<CallDenied>),
    /// The conversation was shortened before the next request, according to the agent's options. If the turn then fails
    /// with `ContextOverflow` before an answer, the conversation is restored.
    ContextShortened(ContextShortened),
    /// The server rejected the response format, or the tool choice of structured output, with this message. This and
    /// later requests fall back to a weaker one.
    FormatRefused(String),
    /// An event of a sub-agent, between the start and the completion of the call that runs it. A sub-agent that fails or
    /// is stopped has no [`TurnEnd`](Self::TurnEnd) of its own: it ends with its call, or with the outer agent's turn.
    Nested(Box<NestedEvent>),
    /// The stream was malformed, but continued.
    Problem(Problem),
    /// The server seems to have silently cut the prompt of the answer that has just ended.
    PromptCut(PromptCut),
    /// Progress of prompt processing before the answer begins. Sent if the agent requests it and the server reports it.
    PromptProgress(PromptProgress),
    /// A hook blocked a steered message, for this reason.
    SteerBlocked(String),
    /// A steered message was added to history, with any changes by hooks.
    Steered(Message),
    /// The server rejected the amount of thinking because the model has none, or always thinks, with this message. No
    /// amount is sent from now on.
    ThinkingRefused(String),
    /// Progress of tools: started, output, completed. Results are those that the tools returned; results that hooks
    /// have changed appear only in blocks.
    Tool(ToolEvent),
    /// The server rejected tools because the model does not support them, with this message. From now on the model
    /// writes its calls as text.
    ToolsRefused(String),
    /// The start or a fragment of a call that is not complete yet.
    ToolUseDelta(ToolUseDelta),
    /// The turn has ended, or waits for results of calls. Whatever was in progress has ended with it: after an
    /// interrupt, the end of a call or a sub-agent is not reported separately.
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
    /// The denied input, with which the call would have run.
    pub input: Value,
    /// The reason that the model sees.
    pub reason: String,
}

impl CallDenied {
    /// Creates the event for a denied call.
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
    /// The name of the sub-agent, which is the tool's name.
    pub agent: String,
    /// The event. It is itself nested if it comes from a sub-agent of this sub-agent.
    pub event: AgentEvent,
}

impl NestedEvent {
    /// Creates an event of the sub-agent that this call runs.
    #[must_use]
    pub fn new(call_id: impl Into<String>, agent: impl Into<String>, event: AgentEvent) -> Self {
        Self { call_id: call_id.into(), agent: agent.into(), event }
    }
}

/// A fragment of a call.
///
/// The first fragment of a call has its id and its name. It is sent once the name is known; any arguments received
/// before that follow as one fragment. A call whose name never arrives produces only a block, a
/// [`ToolUseError`](oa_types::ToolUseError).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolUseDelta {
    /// The index of the call in the answer, from 0, in the order in which calls began.
    pub call: usize,
    /// The id of the call, in the first fragment: the same as in history and in all later events. It is generated if
    /// the server has not sent one by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name, in the first fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A fragment of the arguments' JSON text, as the server sent it. Empty in the first fragment.
    pub arguments: String,
}

impl AgentEvent {
    /// Returns the event for a change to an answer. Text and thinking become events only if `shows_text` is true.
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
