//! Runs the tool calls of a model: in parallel, within bounds, everything an event.
//!
//! [`ToolExecutor::execute_batch_streaming`] takes calls and returns a stream of [`ToolEvent`]: each call's
//! start, what its tool emits while it runs, its completion, and one `tools_end` with messages for the
//! conversation in the order of the calls. There is no second return value. What goes wrong with a
//! call (an unknown tool, arguments that do not fit, an error, a panic, a timeout) is that call's
//! result, which the model can read; the batch goes on.
//!
//! ```
//! use oa_executor::{Batch, ToolExecutor};
//! use oa_tools::{Registry, tool};
//! use oa_types::ToolUseBlock;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut tools = Registry::new();
//! tools.add(
//!     tool("half", "Half a number")
//!         .param("n", "number")
//!         .build(|args| async move { Ok(json!(args["n"].as_f64().unwrap_or_default() / 2.0)) }),
//! )?;
//! let calls = vec![
//!     ToolUseBlock::new("c1", "half", json!({ "n": 7 })),
//!     ToolUseBlock::new("c2", "hafl", json!({ "n": 7 })),
//! ];
//! let end = ToolExecutor::new(tools).execute_batch_streaming(calls, Batch::new()).end().await;
//! let results = end.execution_results.iter().map(|result| &result.result);
//! assert!(results.eq([
//!     &json!(3.5),
//!     &json!({ "error": "there is no such tool", "tool": "hafl", "available": ["half"] }),
//! ]));
//! # Ok(())
//! # }
//! ```
//!
//! # Who needs this crate alone
//!
//! Whoever has a loop of their own. To write an agent, take the `open-agent` facade.
//!
//! # What is not in it
//!
//! No hooks and no permissions: it receives calls that are allowed. No background tasks unless
//! [`Placement::Spawned`] asks for them: tools run while the stream is polled, and are gone when it is dropped.
//!
//! # Policies
//!
//! | question | answer | default |
//! | --- | --- | --- |
//! | together or one by one | [`ExecutionMode`], `max_parallel`, [exclusive](oa_tools::Tool::is_exclusive) tools | 8 at once |
//! | how many calls of one tool at once | [`max_parallel`](oa_tools::Tool::max_parallel) of the tool | no limit |
//! | how many calls in a minute | [`CallRate`] | no limit |
//! | how much the model sees | [`TruncationPolicy`] | 10,000 characters |
//! | how long a tool may take | [`TimeoutPolicy`] | no limit |
//! | what is tried again | [`RetryPolicy`] | nothing |
//! | what is remembered | [`ToolCache`] | nothing |
//! | what is left out | [`SkipPolicy`] | nothing |
//! | what waits for what | [`Dependencies`] | nothing |
//! | what a run may take | [`RunCaps`] over a [`Run`] | no limit |

mod executor;
mod stream;

mod batch;
mod options;

mod attempt;
mod crew;
mod ended;
mod mailbox;
mod schedule;

mod cache;
mod caps;
mod dependencies;
mod rate;
mod retry;
mod skip;
mod timeout;
mod truncation;

mod callbacks;
mod event;
mod metrics;
mod result;
mod wire;

mod error;

pub use oa_types::Outcome;

pub use crate::batch::Batch;
pub use crate::cache::ToolCache;
pub use crate::callbacks::{Callbacks, Observed};
pub use crate::caps::{Run, RunCaps};
pub use crate::dependencies::Dependencies;
pub use crate::error::{Error, ErrorKind};
pub use crate::event::{
    CallStart, ToolCustom, ToolEvent, ToolLog, ToolProgress, ToolRetry, ToolStatus, ToolsEnd,
};
pub use crate::executor::ToolExecutor;
pub use crate::metrics::BatchMetrics;
pub use crate::options::{ExecutionMode, ExecutorOptions, Placement};
pub use crate::rate::CallRate;
pub use crate::result::ExecutionResult;
pub use crate::retry::RetryPolicy;
pub use crate::skip::SkipPolicy;
pub use crate::stream::BatchStream;
pub use crate::timeout::TimeoutPolicy;
pub use crate::truncation::TruncationPolicy;

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
