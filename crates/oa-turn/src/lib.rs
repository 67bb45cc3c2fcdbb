//! The agent loop as a state machine.
//!
//! [`Turn`] owns the conversation and returns the next action: send a request, show a call, decide on it, run
//! it, review its result, end. The driver performs the action and reports the outcome. There is no I/O, no clock
//! and no async inside, so the rules can be tested as invariants over any sequence of events. After every event,
//! the history is a conversation that a strict server accepts.
//!
//! There are three ways to drive it, over the same transitions:
//!
//! - [`drive`] runs the loop over an implementation of [`Perform`]: requests, decisions, calls and reviews are `async`
//!   methods, from data to data.
//! - [`Turn::next_step`] and [`Turn::take`] are the body of that loop: each [`Step`] and each [`StepOutcome`] can be
//!   sent to another process or kept in a journal.
//! - [`Turn::next_action`] with [`Turn::answer`], [`Turn::decide`] and similar methods borrow what they need, for
//!   drivers that show text while it is generated.
//!
//! A turn can be changed while it runs. [`Turn::steer`] queues messages that enter before the next request. With
//! [`Options::plan_steps`], the driver plans each request: another model, fewer tools, the end of the turn. With
//! [`Options::check_stop`], it decides after the calls of each step whether the turn ends there. Calls of
//! [external tools](Turn::set_external_tools) end the turn until their results are added. With [`Options::shorten`],
//! the driver can shorten the conversation before a request. With [`Options::review_answers`], it keeps, refuses or
//! blocks each answer without calls. [`Turn::checkpoint`] marks the moments at which the conversation is worth saving.
//!
//! A turn can outlive its process in two ways: replay its outcomes from a journal in the same order, or take a
//! [`TurnSnapshot`] and restore it. In both cases, [`Turn::call_key`] identifies a call wherever it runs.
//!
//! ```
//! use oa_turn::{Action, Answer, Decision, Options, Turn};
//! use oa_types::{Message, Outcome, ToolUseBlock};
//! use serde_json::json;
//!
//! let mut turn = Turn::new(Options::auto());
//! turn.submit(Message::user("What is 1 + 2?"))?;
//! assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
//! let call = ToolUseBlock::new("call_1", "add", json!({"a": 1, "b": 2}));
//! turn.answer(Answer::new(vec![call.clone().into()]));
//! assert_eq!(turn.next_action(), Some(Action::Show { block: call.into() }));
//! assert_eq!(turn.next_action(), Some(Action::Decide { call: 0 }));
//! turn.decide(0, Decision::Run(json!({"a": 1, "b": 2})));
//! assert_eq!(turn.next_action(), Some(Action::Run { calls: vec![0] }));
//! turn.finish_call(0, json!(3), Outcome::Ok);
//! assert_eq!(turn.next_action(), Some(Action::Review { call: 0 }));
//! turn.review(0, json!(3));
//! assert!(matches!(turn.next_action(), Some(Action::Show { .. })));
//! assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
//! # Ok::<(), oa_turn::Error>(())
//! ```
//!
//! # When to use this crate directly
//!
//! Use it to write your own agent loop. To run an agent, use the facade `open-agent`.

mod drive;
mod turn;

mod step;

mod action;
mod answer;
mod budget;
mod call;
mod conversation;
mod cut_by;
mod guard;
mod key;
mod options;
mod plan;
mod repair;
mod round;
mod shared_budget;
mod shorten;
mod steer_queue;
mod step_context;
pub mod stop_when;

mod error;

pub use crate::action::{Action, Decision};
pub use crate::answer::Answer;
pub use crate::budget::{BudgetLedger, BudgetLeft, Spent};
pub use crate::call::{Call, CallState, Fit};
pub use crate::cut_by::CutBy;
pub use crate::drive::{DriveError, Perform, drive};
pub use crate::error::{Error, ErrorKind};
pub use crate::key::CallKey;
pub use crate::options::{Mode, Options, SteerAfterEnd};
pub use crate::plan::StepPlan;
pub use crate::repair::repair;
pub use crate::shared_budget::{OuterBudget, SharedBudget};
pub use crate::shorten::{OverflowSizes, ReportedTokens, ShortenOutcome, ShortenStep};
pub use crate::steer_queue::SteerQueue;
pub use crate::step::{
    ApprovalOutcome, ApprovalStep, AskOutcome, AskStep, CallResult, DecideOutcome, DecideStep,
    PlanOutcome, PlanStep, PromptOutcome, PromptStep, ReviewAnswerOutcome, ReviewAnswerStep,
    ReviewOutcome, ReviewStep, RunOutcome, RunStep, Step, StepCall, StepOutcome, StopOutcome,
};
pub use crate::step_context::StepContext;
pub use crate::turn::{Checkpoint, Turn, TurnSnapshot};

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
