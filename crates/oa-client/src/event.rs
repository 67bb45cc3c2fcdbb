use std::sync::Arc;

use oa_aggregate::{Delta, Problem};
use oa_chat::Refusal;
use oa_executor::ToolEvent;
use oa_types::{AssistantMessage, ContentBlock, FinishReason, TextBlock, ThinkingBlock};
use serde_json::Value;

/// Anything that happens in a turn: what [`Client::next_event`](crate::Client::next_event) returns.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// An answer of the model has ended, and stands in history.
    AnswerEnd(Arc<AssistantMessage>),
    /// An answer begins: the head of the response is there.
    AnswerStart,
    /// A block, as [`Client::receive`](crate::Client::receive) returns it: text and thinking as they are
    /// generated, calls, invalid calls, and results.
    Block(ContentBlock),
    /// A call was denied by a hook, a rule, the mode or whoever was asked. It comes when that is decided, before any
    /// call of the answer starts; the error and the result that the model reads follow as blocks, in call order.
    CallDenied(Box<CallDenied>),
    /// The server does not take the form that an answer is to have, in these words: it was asked once more,
    /// and is from now on, for any JSON object or in words alone, as
    /// [`OutputMode::Auto`](crate::OutputMode::Auto) has it.
    FormatRefused(String),
    /// Something in the stream was wrong, and the stream went on.
    Problem(Problem),
    /// The server seems to have cut the prompt of the answer that has just ended, without saying so.
    PromptCut(PromptCut),
    /// Progress of tools: started, output, completed.
    Tool(ToolEvent),
    /// The server says that the model has no tools, in these words: from now on calls are text, as
    /// [`ToolMode::Auto`](crate::ToolMode::Auto) has it.
    ToolsRefused(String),
    /// A piece of a call that is not complete yet.
    ToolUseDelta(ToolUseDelta),
    /// The turn is over, or waits for the caller to answer calls.
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
    /// The input that was denied: the one that would have run.
    pub input: Value,
    /// Why it was denied, as the model reads it.
    pub reason: String,
}

/// A prompt that the model has not seen all of: the server reports far fewer tokens than were sent (QUIRKS
/// row 101).
///
/// Some servers leave out of a prompt what does not fit into the model's context, and answer as if nothing
/// had happened: the model then has never seen its tools, or the system prompt. Have the server load the model
/// with more context, or shorten what is sent.
///
/// # What can be told, and what not
///
/// A prompt counts as cut when the server reports less than half of an estimate that leaves out pictures, and
/// takes tools for half of what they are, because templates write them in many ways. A cut that leaves more
/// than half of a prompt is not seen, nor one by a server that counts what it was sent rather than what the
/// model has read, or that reports no usage.
///
/// Some servers count only what was not in their prompt cache. What they say was cached is added to
/// what they report. Where they say nothing of it, nothing is told as long as the report may be what is new since
/// the last answer, or all of a conversation whose tools and system prompt were cached. Of such a server a
/// long prompt that begins like one of another conversation can still look cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PromptCut {
    /// About how many tokens were sent, at least.
    pub estimated: u64,
    /// How many the server says that it has read, with those that it had in its cache.
    pub reported: u64,
}

/// A piece of a call, as the server sent it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ToolUseDelta {
    /// Which call of the answer, counted from 0 in the order in which they began.
    pub call: usize,
    /// The tool's name, with the first piece if it is known then.
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
