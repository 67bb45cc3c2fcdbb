//! Hooks for agents: closures that run before and after a tool call, before a prompt is sent, and on a finished answer,
//! and that may block or change what they see.
//!
//! [`Hooks`] holds them in order and runs them with `pre_tool_use`, `post_tool_use`, `user_prompt_submit` and
//! `answer`. The first decision wins, and a hook that fails (error, panic, timeout) never counts as consent.
//! [`HookDecision`] is generic over its event, so a decision that does not fit the event does not compile.
//!
//! [`Permissions`] decide which tools may be called with which arguments, using lists, rules, a mode and a callback.
//!
//! # When to use this crate directly
//!
//! To add gates to your own agent loop. To run an agent, use the facade `open-agent` and pass the hooks to its
//! options.
//!
//! ```
//! # use std::{pin::pin, task::{Context, Poll, Waker}};
//! use oa_hooks::{Change, History, HookDecision, Hooks, PreToolUseEvent, HookOutcome};
//! use serde_json::json;
//!
//! let hooks = Hooks::new()
//!     .add_pre_tool_use(|event| async move {
//!         println!("{} is called with {}", event.tool_name, event.tool_input);
//!         None // no opinion, like `Some(HookDecision::allow())`
//!     })
//!     .add_pre_tool_use(|event| async move {
//!         let path = event.tool_input["path"].as_str()?;
//!         if path.starts_with('/') {
//!             return Some(HookDecision::block("only relative paths"));
//!         }
//!         let inside = json!({ "path": format!("sandbox/{path}") });
//!         Some(HookDecision::modify_input(inside, "kept in the sandbox"))
//!     })
//!     .for_tools(["read", "write"]);
//!
//! # let check = async {
//! let event = PreToolUseEvent::new("read", json!({"path": "a.txt"}), "call_1", History::default());
//! // The second argument is the clock for hooks with a timeout, such as `tokio::time::sleep`.
//! match hooks.pre_tool_use(event, |_| std::future::pending()).await? {
//!     HookOutcome::Allow => println!("runs as it is"),
//!     HookOutcome::Block { reason } => println!("does not run: {reason}"),
//!     HookOutcome::Modify(Change { value, reason }) => println!("runs with {value}: {reason}"),
//! }
//! # Ok::<(), oa_hooks::Error>(())
//! # };
//! # let polled = pin!(check).poll(&mut Context::from_waker(Waker::noop()));
//! # assert!(matches!(polled, Poll::Ready(Ok(()))));
//! ```
//!
//! # Failing hooks
//!
//! | | before a tool | after a tool | before a prompt | on an answer |
//! | --- | --- | --- | --- | --- |
//! | `Err` of a fallible hook (`try_add_*`) | an error | an error, the result stays | an error | an error |
//! | panic | the call is blocked | an error, the result stays | an error | an error |
//! | timeout | an error | an error, the result stays | an error | an error |
//!
//! # Not included
//!
//! No clock, runtime or tasks: timeouts are declared here and measured by the caller.

mod event;

mod decision;

mod dispatch;
mod handler;
mod hooks;

mod nested;
mod permission;
mod permissions;
mod rule;

mod error;

pub use oa_types::{History, Message, MessageRole, Outcome, ToolSpec};

pub use crate::decision::{
    AnswerDecision, Blockable, Change, ChangedResult, HookDecision, HookEvent, HookOutcome,
};
pub use crate::error::{Error, ErrorKind, HookError};
pub use crate::event::{
    AnswerEvent, HOOK_ANSWER, HOOK_POST_TOOL_USE, HOOK_PRE_TOOL_USE, HOOK_USER_PROMPT_SUBMIT,
    PostToolUseEvent, PreToolUseEvent, UserPromptSubmitEvent,
};
pub use crate::hooks::Hooks;
pub use crate::permission::{Permission, PermissionRequest};
pub use crate::permissions::{CATEGORY_READ, PermissionMode, Permissions};
pub use crate::rule::ToolRule;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
