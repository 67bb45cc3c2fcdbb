use oa_types::{ContentBlock, FinishReason, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The next thing to do in a turn. Calls are named by their place in [`Turn::calls`](crate::Turn::calls).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Send the history; then [`answer`](crate::Turn::answer) or [`fail`](crate::Turn::fail).
    Request {
        /// True if tools are offered.
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
    /// Show this to the caller: a call or what was wrong with it, a result, or the final text.
    Show {
        /// The block to show.
        block: ContentBlock,
    },
    /// Find out whether a prompt may be sent, and in what words; then
    /// [`accept_prompt`](crate::Turn::accept_prompt) or [`fail`](crate::Turn::fail). Only after
    /// [`prompt`](crate::Turn::prompt).
    Submit {
        /// The prompt as the caller gave it.
        prompt: Message,
    },
    /// The turn is over, or waits for the caller to answer calls.
    End {
        /// The reason of the end.
        reason: FinishReason,
    },
}

/// A decision about a call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// Somebody is asked whether it may run with this input, and the turn waits for
    /// [`approve`](crate::Turn::approve) with its budgets as they are. Calls behind it are decided meanwhile.
    /// In auto mode alone.
    Ask(Value),
    /// It is not run; this is its result, an error that the model reads.
    Refuse(Value),
    /// It runs, with this input.
    Run(Value),
    /// Nobody can say yet whether it may run with this input: the turn ends, until
    /// [`approve`](crate::Turn::approve) tells. In auto mode alone.
    Wait(Value),
}
