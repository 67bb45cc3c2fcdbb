//! A bounded log of a conversation's events, which any number of readers can read at their own pace.
//!
//! [`EventLog::push`] numbers a [`ConversationEvent`]; [`EventLog::read`] returns the event with a given number, or
//! says that it was dropped. Runs are numbered by their start time, and events are numbered across runs, so an
//! [`EventId`] identifies an event permanently: a reader that reconnects continues [after](EventLog::after) the last
//! event that it has seen.
//!
//! [`SubAgents`] collects what the sub-agents of a run have done, because the messages of the conversation do not
//! contain it.
//!
//! [`ShownResult`], [`activity`], [`notice`] and [`state_change`] read from events what front ends show.
//!
//! # When to use this crate directly
//!
//! To show an agent's conversations over your own transport. `oa-serve` shows them over HTTP.

mod event;
mod log;
mod shown;
mod sub_agents;

pub use event::{
    CallAnswer, ConversationEvent, EventId, FailureKind, RunEvent, RunState, WaitingCall,
    WaitingKind,
};
pub use log::{EventLog, Next};
pub use shown::{ShownResult, activity, notice, state_change};
pub use sub_agents::{SubAgent, SubAgents};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
