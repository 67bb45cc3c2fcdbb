//! Hooks of an agent: closures that are asked before a tool runs, after it has answered, and before a
//! prompt is sent, and that may block or change what is to come.
//!
//! [`Hooks`] holds them in order, and its `pre_tool_use`, `post_tool_use` and `user_prompt_submit` ask
//! them: the first decision wins, and whoever cannot decide (an error, a panic, a timeout) does not
//! count as agreeing. [`HookDecision`] is generic over its event, so that a decision which makes no
//! sense there does not compile.
//!
//! [`Permissions`] say which tools may be used, and with what: by lists, rules and modes, and by asking.
//!
//! # Who needs this crate alone
//!
//! Whoever has a loop of their own and wants its gates in this form. To run an agent, take the facade
//! `open-agent` and give the hooks to its options.
//!
//! ```
//! # use std::{pin::pin, task::{Context, Poll, Waker}};
//! use oa_hooks::{Change, History, HookDecision, Hooks, PreToolUseEvent, Verdict};
//! use serde_json::json;
//!
//! let hooks = Hooks::new()
//!     .add_pre_tool_use(|event| async move {
//!         println!("{} is called with {}", event.tool_name, event.tool_input);
//!         None // passes, and so does `Some(HookDecision::allow())`
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
//! // The second argument stands in for a clock, for hooks with a timeout: `tokio::time::sleep`, say.
//! match hooks.pre_tool_use(event, |_| std::future::pending()).await? {
//!     Verdict::Allow => println!("runs as it is"),
//!     Verdict::Block { reason } => println!("does not run: {reason}"),
//!     Verdict::Modify(Change { value, reason }) => println!("runs with {value}: {reason}"),
//! }
//! # Ok::<(), oa_hooks::Error>(())
//! # };
//! # let polled = pin!(check).poll(&mut Context::from_waker(Waker::noop()));
//! # assert!(matches!(polled, Poll::Ready(Ok(()))));
//! ```
//!
//! # What happens when a hook fails
//!
//! | | before a tool | after a tool | before a prompt |
//! | --- | --- | --- | --- |
//! | `Err` of a fallible hook (`try_add_*`) | an error | an error, the result stays | an error |
//! | panic | the call is blocked | an error, the result stays | an error |
//! | timeout | an error | an error, the result stays | an error |
//!
//! # Not in it
//!
//! No clock, no runtime, no task: a timeout is marked here and measured by whoever asks.

mod event;

mod decision;

mod dispatch;
mod handler;
mod hooks;

mod permission;
mod permissions;
mod rule;

mod error;

pub use oa_types::{History, Message, MessageRole, Outcome};

pub use crate::decision::{Blockable, Change, HookDecision, HookEvent, Verdict};
pub use crate::error::{Error, ErrorKind, HookError};
pub use crate::event::{
    HOOK_POST_TOOL_USE, HOOK_PRE_TOOL_USE, HOOK_USER_PROMPT_SUBMIT, PostToolUseEvent,
    PreToolUseEvent, UserPromptSubmitEvent,
};

pub use crate::hooks::Hooks;
pub use crate::permission::{Permission, PermissionRequest};
pub use crate::permissions::{CATEGORY_READ, PermissionMode, Permissions};
pub use crate::rule::ToolRule;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
