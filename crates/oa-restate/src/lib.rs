//! Agents whose turns survive crashes, on the durable execution engine [Restate](https://restate.dev).
//!
//! An [`AgentWorker`] performs the steps of turns. The engine records the outcome of each step: every request to the
//! model, every decision, every call. If a worker dies, another one continues after the last recorded outcome. No
//! request whose answer is recorded is repeated, and neither is any call whose result is recorded.
//!
//! Sessions are virtual objects. Their handlers are called over HTTP, at `INGRESS/Agent/SESSION/HANDLER`, or by
//! [`Sessions`]:
//!
//! | handler | input | |
//! | --- | --- | --- |
//! | `prompt` | [`SessionPrompt`] | runs a turn, and returns a [`TurnReply`]; prompts of one session run one after another. With the header `idempotency-key`, a retry returns the reply of the same turn |
//! | `history` | none | the messages of the finished turns |
//! | `status` | none | [`Status`]: the turn in progress, and the calls that wait for a decision or a result |
//! | `approve`, `deny` | [`Approve`], [`Deny`] | decides on a call that waits for approval; 404 if none does |
//! | `answer` | [`ExternalResult`] | supplies the result of a call whose tool is [external](oa_tools::ToolBuilder::external) |
//! | `interrupt` | none | ends the turn in progress; returns false if there is none |
//! | `steer` | [`SessionPrompt`] | adds a user's message to the turn in progress, or to the next one |
//! | `clear` | none | removes all messages |
//! | `fork` | [`Fork`] | copies messages of another session, and its agent, into an empty one |
//!
//! `INGRESS/AgentBatch/run` takes a [`BatchPrompts`] and returns a [`BatchItem`] for each prompt.
//!
//! # At least once
//!
//! If a worker dies during a call, the call runs again on another worker, because its result is not recorded. Tools
//! with side effects should use [`idempotency_key`](oa_tools::ToolContext::idempotency_key), which is the same in each
//! attempt. After an interrupt or a kill, the result of a call in progress says that it may have taken effect.
//!
//! # Errors of `prompt`
//!
//! | status | |
//! | --- | --- |
//! | 400 | the prompt is not a user's message of text, images and audio, or its structured output cannot be requested |
//! | 403 | a hook blocked it, or the limit of turns is reached |
//! | 404 | the worker has no agent of this name |
//! | 409 | an operator canceled the turn, the session belongs to another agent, it was written by a newer version, or another writer has changed the [stored](AgentWorker::session_store) session |
//! | 413 | the session is [full](Limits::session_bytes), the model's context is full, or a message or a decision is too large |
//! | 422 | no answer matches the requested [structured output](SessionPrompt::output) |
//! | 502, 504 | the model server failed, after the retries of the agent; the prompt is removed unless the answer had begun |
//!
//! # When to use this crate directly
//!
//! Most programs use it as the module `restate` of the facade `open-agent`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod sessions;
mod worker;

mod answer;
mod batch;
mod calls;
mod inbox;
mod object;
mod output;
mod state;
mod steps;
mod storage;

mod agents;
mod control;
mod converse;
mod engine;
mod place;
mod register;
mod tap;

mod contract;
mod event;
mod layout;
mod limits;
mod name;
mod warning;

pub use crate::contract::{
    Approve, BatchItem, BatchPrompts, Deny, ExternalResult, Fork, PendingCall, PromptOutput,
    SessionPrompt, Status, TurnReply, TurnStatus, WaitsFor,
};
pub use crate::event::{EventReader, EventSink, ReadEvent, SessionEvent};
pub use crate::limits::Limits;
pub use crate::register::{RegisterError, Registered};
pub use crate::sessions::{SessionError, Sessions};
pub use crate::warning::WorkerWarning;
pub use crate::worker::AgentWorker;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
