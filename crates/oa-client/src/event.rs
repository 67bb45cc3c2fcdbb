use std::sync::Arc;

use oa_aggregate::{Delta, Problem};
use oa_chat::Refusal;
use oa_context::PromptCut;
use oa_executor::ToolEvent;
use oa_types::{AssistantMessage, ContentBlock, FinishReason, Message, TextBlock, ThinkingBlock};
use serde_json::Value;

use crate::shortening::ContextShortened;

/// An event of a turn, returned by [`Client::next_event`](crate::Client::next_event).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// An answer of the model has ended and is in history.
    AnswerEnd(Arc<AssistantMessage>),
    /// An answer begins: the head of the response has arrived.
    AnswerStart,
    /// A block, as [`Client::receive`](crate::Client::receive) returns it: text and thinking as they are
    /// generated, calls, invalid calls, and results.
    Block(ContentBlock),
    /// A hook, a rule, the mode or the callback denied a call. Sent when that is decided, before any call of the
    /// answer starts; the error and the result that the model reads follow as blocks, in call order.
    CallDenied(Box<CallDenied>),
    /// The conversation was shortened before the next request, as [`context`](crate::AgentOptionsBuilder::context) allows.
    ContextShortened(ContextShortened),
    /// The server rejected the response format, with this message. The client falls back for this and later
    /// requests, as described at [`OutputMode::Auto`](crate::OutputMode::Auto).
    FormatRefused(String),
    /// The stream was malformed somewhere, and continued.
    Problem(Problem),
    /// The server seems to have silently cut the prompt of the answer that has just ended.
    PromptCut(PromptCut),
    /// A hook kept a [steered](crate::SteerHandle) message from entering, for this reason.
    SteerBlocked(String),
    /// A [steered](crate::SteerHandle) message has entered history, as hooks have left it.
    Steered(Message),
    /// Progress of tools: started, output, completed.
    Tool(ToolEvent),
    /// The server says that the model does not support tools, with its message: from now on calls are made in
    /// text; see [`ToolMode::Auto`](oa_chat::ToolMode::Auto).
    ToolsRefused(String),
    /// A fragment of a call that is not complete yet.
    ToolUseDelta(ToolUseDelta),
    /// The turn is over, or waits for results of calls.
    TurnEnd(FinishReason),
}

/// A call that will not run.
#[derive(Clone, Debug, PartialEq)]
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

/// A fragment of a call, as the server sent it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ToolUseDelta {
    /// The index of the call in the answer, from 0, in the order in which calls began.
    pub call: usize,
    /// The tool's name, in the first fragment if it is known then.
    pub name: Option<String>,
    /// More of the arguments: a fragment of JSON text.
    pub arguments: String,
}

impl From<Refusal> for AgentEvent {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Format(words) => Self::FormatRefused(words),
            Refusal::Tools(words) => Self::ToolsRefused(words),
            // One that is not known here yet.
            other => Self::ToolsRefused(format!("{other:?}")),
        }
    }
}

impl AgentEvent {
    /// Returns the event for a delta; text only if it is to be shown now.
    #[inline]
    pub(crate) fn of(delta: Delta<'_>, shows_text: bool) -> Option<Self> {
        let piece = |call, name: Option<&str>, arguments: &str| {
            let (name, arguments) = (name.map(str::to_owned), arguments.to_owned());
            Some(Self::ToolUseDelta(ToolUseDelta { call, name, arguments }))
        };
        match delta {
            Delta::CallArguments { call, fragment } => piece(call, None, fragment),
            Delta::CallStart { call, name } => piece(call, name, ""),
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
