//! Runs a model's tool calls: in parallel, with limits, as a stream of events.
//!
//! [`ToolExecutor::execute_batch_streaming`] takes calls and returns a stream of [`ToolEvent`]: each call's start, its
//! tool's emissions, its completion, and one `tools_end` with the messages for the conversation in call order. If a
//! call fails (unknown tool, invalid arguments, error, panic, timeout), the failure is that call's result, which the
//! model can read, and the batch continues.
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
//! # When to use this crate directly
//!
//! To run tools in your own agent loop. To write an agent, use the `open-agent` facade.
//!
//! # Not included
//!
//! No hooks or permissions: it runs every call that it is given. No background tasks unless
//! [`Placement::Spawned`] is set: tools run while the stream is polled and are dropped with it.
//!
//! # Policies
//!
//! | what | type | default |
//! | --- | --- | --- |
//! | parallelism | [`ExecutionMode`], `max_parallel`, [exclusive](oa_tools::Tool::is_exclusive) tools | 8 at once |
//! | parallel calls of one tool | its [`max_parallel`](oa_tools::Tool::max_parallel) | no limit |
//! | calls per minute | [`CallRate`] | no limit |
//! | result size for the model | [`TruncationPolicy`] | 10,000 characters |
//! | timeouts | [`TimeoutPolicy`] | none |
//! | retries | [`RetryPolicy`] | none |
//! | cached results | [`ToolCache`] | none |
//! | skipped calls | [`SkipPolicy`] | none |
//! | order of calls | [`Dependencies`] | none |
//! | limits of a run | [`RunCaps`] with a [`Run`] | none |

mod executor;
mod stream;

mod batch;
mod options;

mod attempt;
mod ended;
mod queue;
mod running;
mod schedule;

mod cache;
mod caps;
mod dependencies;
mod interrupt;
mod rate;
mod retry;
mod run_guard;
mod run_signal;
mod skip;
mod timeout;
mod truncation;

mod reader;
mod store;

mod callbacks;
mod event;
mod metrics;
mod result;
mod wire;

pub use oa_types::Outcome;

pub use crate::batch::Batch;
pub use crate::cache::ToolCache;
pub use crate::callbacks::{Callbacks, Observed};
pub use crate::caps::{Run, RunCaps};
pub use crate::dependencies::Dependencies;
pub use crate::event::{
    CallStart, ToolCustom, ToolEvent, ToolLog, ToolProgress, ToolRetry, ToolStatus, ToolsEnd,
};
pub use crate::executor::ToolExecutor;
pub use crate::interrupt::{InterruptGuard, InterruptHandle};
pub use crate::metrics::BatchMetrics;
pub use crate::options::{ExecutionMode, ExecutorOptions, Placement};
pub use crate::rate::CallRate;
pub use crate::reader::read_result;
pub use crate::result::ExecutionResult;
pub use crate::retry::RetryPolicy;
pub use crate::run_guard::RunGuard;
pub use crate::run_signal::RunSignal;
pub use crate::skip::SkipPolicy;
pub use crate::store::{READ_RESULT, ResultStore};
pub use crate::stream::BatchStream;
pub use crate::timeout::TimeoutPolicy;
pub use crate::truncation::TruncationPolicy;
pub use oa_types::{Error, ErrorKind};

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
