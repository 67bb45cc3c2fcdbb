use std::sync::Arc;

use oa_aggregate::{Delta, Problem};
use oa_executor::ToolEvent;
use oa_types::{AssistantMessage, ContentBlock, FinishReason};

use crate::stream::block;

/// Anything that happens in a turn: what [`Client::next_event`](crate::Client::next_event) returns.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// An answer of the model has ended, and stands in history.
    AnswerEnd(Arc<AssistantMessage>),
    /// An answer begins: the head of the response is there.
    AnswerStart,
    /// What [`Client::receive`](crate::Client::receive) returns: text and thinking as they are
    /// generated, calls, what was wrong with them, and their results.
    Block(ContentBlock),
    /// Something in the stream was wrong, and the stream went on.
    Problem(Problem),
    /// What happens while tools run: starts, what they say, completions.
    Tool(ToolEvent),
    /// The server says that the model has no tools, in these words: from now on calls are text, as
    /// [`ToolMode::Auto`](crate::ToolMode::Auto) has it.
    ToolsRefused(String),
    /// A piece of a call that is not complete yet.
    ToolUseDelta(ToolUseDelta),
    /// The turn is over, or waits for the caller to answer calls.
    TurnEnd(FinishReason),
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

impl AgentEvent {
    /// What a change of the answer is to whoever watches; text only if it is to be shown now.
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
