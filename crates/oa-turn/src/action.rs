use oa_types::{ContentBlock, FinishReason, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The next action in a turn. Calls are identified by their index in [`Turn::calls`](crate::Turn::calls).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Send the history; then call [`answer`](crate::Turn::answer) or [`fail`](crate::Turn::fail).
    Request {
        /// True if the request offers tools.
        tools: bool,
    },
    /// Decide whether a call may run; then call [`decide`](crate::Turn::decide).
    Decide {
        /// The index of the call.
        call: usize,
    },
    /// Plan the next request; then call [`plan`](crate::Turn::plan). Returned only if
    /// [`plan_steps`](crate::Options::plan_steps) is set.
    Plan {
        /// The number of the request in its turn, from 1.
        step: u32,
    },
    /// Decide whether the turn ends after the calls of a step; then call [`take`](crate::Turn::take) with
    /// [`StepOutcome::CheckStop`](crate::StepOutcome::CheckStop). [`stop_check`](crate::Turn::stop_check) has the data.
    /// Returned only if [`check_stop`](crate::Options::check_stop) is set.
    CheckStop {
        /// The number of the step in its turn, from 1; 0 if its calls have waited and the turn was continued with
        /// them.
        step: u32,
    },
    /// Run these calls; then call [`finish_call`](crate::Turn::finish_call) for each, in any order. Those of external
    /// tools do not run: call [`await_result`](crate::Turn::await_result) for each that may still be handed out, and
    /// `finish_call` with an error for the others. While some calls wait for permission, only external ones are
    /// returned.
    Run {
        /// The indexes of the calls, in call order.
        calls: Vec<usize>,
    },
    /// Review a result; then call [`review`](crate::Turn::review) with its final content.
    Review {
        /// The index of the call.
        call: usize,
    },
    /// Review an answer without calls before the turn ends with it; [`answer_review`](crate::Turn::answer_review)
    /// returns it. Then call [`keep_answer`](crate::Turn::keep_answer), [`retry_answer`](crate::Turn::retry_answer) or
    /// [`block_answer`](crate::Turn::block_answer). Returned only if
    /// [`review_answers`](crate::Options::review_answers) is set.
    ReviewAnswer,
    /// Shorten the conversation if it is too long for the model; then call [`take`](crate::Turn::take) with
    /// [`StepOutcome::Shorten`](crate::StepOutcome::Shorten). [`shorten_step`](crate::Turn::shorten_step) has the data.
    /// Returned only if [`shorten`](crate::Options::shorten) is set.
    Shorten {
        /// True if the server has rejected the conversation as too long.
        is_overflow: bool,
    },
    /// Show a block to the caller: a call or its error, a result, or the final text.
    Show {
        /// The block to show.
        block: ContentBlock,
    },
    /// Decide whether a prompt may be sent, and with what text. Then call
    /// [`accept_prompt`](crate::Turn::accept_prompt); or, to refuse, [`fail`](crate::Turn::fail) for a prompt and
    /// [`refuse_steered`](crate::Turn::refuse_steered) for a steered message. Returned only after
    /// [`prompt`](crate::Turn::prompt) and [`steer`](crate::Turn::steer).
    Submit {
        /// The message as the caller gave it.
        prompt: Message,
        /// True if the message was steered into a turn in progress.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        steered: bool,
    },
    /// The turn has ended, or waits for the caller to answer calls.
    End {
        /// The reason for the end.
        reason: FinishReason,
    },
}

/// A decision on a call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// Ask for permission to run the call with this input. The turn waits for [`approve`](crate::Turn::approve) and
    /// keeps its budgets; later calls are decided in the meantime. Auto mode only.
    Ask(Value),
    /// Do not run the call. The value is its result, an error that the model reads.
    Refuse(Value),
    /// Run the call with this input.
    Run(Value),
    /// Postpone the decision on running the call with this input. The turn ends, and can be continued after
    /// [`approve`](crate::Turn::approve). Auto mode only.
    Wait(Value),
}
