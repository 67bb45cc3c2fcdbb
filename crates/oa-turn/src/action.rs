use oa_types::{ContentBlock, FinishReason};
use serde_json::{Map, Value};

/// What is to be done next. Calls are named by their place in [`Turn::calls`](crate::Turn::calls).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Send the history; then [`answer`](crate::Turn::answer) or [`fail`](crate::Turn::fail).
    Request {
        /// Whether tools are offered.
        tools: bool,
    },
    /// Find out whether a call may run; then [`decide`](crate::Turn::decide).
    Decide {
        /// Which call.
        call: usize,
    },
    /// Run these calls; then [`finish_call`](crate::Turn::finish_call) for each, in any order.
    Run {
        /// Which calls, in call order.
        calls: Vec<usize>,
    },
    /// Let a result be looked at; then [`review`](crate::Turn::review) with what it is to be.
    Review {
        /// Whose result.
        call: usize,
    },
    /// The turn is over, or waits for the caller to answer calls.
    End {
        /// Why.
        reason: FinishReason,
    },
}

/// What came of a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// Text, thinking and calls, in order.
    pub blocks: Vec<ContentBlock>,
    /// Why it ended, in the server's word.
    pub finish_reason: FinishReason,
    /// What the server wants back with the message.
    pub extra: Map<String, Value>,
}

impl Answer {
    /// An answer of these blocks.
    #[must_use]
    pub fn new(blocks: Vec<ContentBlock>) -> Self {
        Self { blocks, finish_reason: FinishReason::Unspecified, extra: Map::new() }
    }
}

/// What was decided about a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// It is not run; this is its result, an error that the model reads.
    Refuse(Value),
    /// It runs, with this input.
    Run(Value),
}
