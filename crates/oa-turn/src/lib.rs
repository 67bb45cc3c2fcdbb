//! The agent loop as a state machine.
//!
//! [`Turn`] owns the conversation and says what is to be done next: send a request, decide about a
//! call, run calls, review a result, end. Whoever drives it does that and tells it what came of it; it
//! has no I/O, no clock and no async inside, so that its rules can be tested as laws over any order of
//! events. After each of them its history is a conversation that a strict server accepts.
//!
//! ```
//! use oa_turn::{Action, Answer, Decision, Options, Turn};
//! use oa_types::{Message, ToolUseBlock};
//! use serde_json::json;
//!
//! let mut turn = Turn::new(Options::auto());
//! turn.submit(Message::user("What is 1 + 2?"))?;
//! assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
//! turn.answer(Answer::new(vec![ToolUseBlock::new("call_1", "add", json!({"a": 1, "b": 2})).into()]));
//! assert_eq!(turn.next_action(), Some(Action::Decide { call: 0 }));
//! turn.decide(0, Decision::Run(json!({"a": 1, "b": 2})));
//! assert_eq!(turn.next_action(), Some(Action::Run { calls: vec![0] }));
//! turn.finish_call(0, json!(3), false);
//! assert_eq!(turn.next_action(), Some(Action::Review { call: 0 }));
//! turn.review(0, json!(3));
//! assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
//! # Ok::<(), oa_turn::Error>(())
//! ```
//!
//! # Who needs this crate alone
//!
//! Whoever drives a loop of their own. To run an agent, take the facade `open-agent`.

mod turn;

mod action;
mod call;
mod guard;
mod history;
mod options;

mod error;

pub use crate::action::{Action, Answer, Decision};
pub use crate::call::{Call, CallState};
pub use crate::error::{Error, ErrorKind};
pub use crate::history::{History, repair};
pub use crate::options::{Mode, Options};
pub use crate::turn::Turn;
