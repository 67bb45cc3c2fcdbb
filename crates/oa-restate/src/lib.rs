//! Durable agents.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod worker;

mod batch;
mod calls;
mod inbox;
mod object;
mod steps;

mod agents;
mod control;

mod contract;
mod event;
mod layout;
mod limits;
mod name;

pub use crate::contract::{
    Approve, BatchItem, BatchPrompts, Deny, ExternalResult, Fork, PendingCall, Prompt, Status,
    TurnReply, TurnStatus, WaitsFor,
};
pub use crate::event::{EventReader, EventSink, ReadEvent, SessionEvent};
pub use crate::limits::Limits;
pub use crate::worker::Worker;
