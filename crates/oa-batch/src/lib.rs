//! Sends thousands of prompts through one agent.
//!
//! [`run_batch`] takes prompts from an iterator, [`run_batch_stream`] from a stream. Each prompt is a separate
//! conversation with the agent's tools, hooks and limits. The replies are returned as a stream of
//! `(index, Result<Reply>)`.
//!
//! ```
//! use oa_batch::{BatchOptions, run_batch};
//! use oa_client::AgentOptions;
//! # use oa_testkit::{MemoryServer, Reply, Script};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> oa_client::Result<()> {
//! # let model = MemoryServer::new(Script::new().otherwise(Reply::text("positive")));
//! let agent = AgentOptions::builder()
//!     .model("qwen3:4b")
//!     .system_prompt("Say whether the review is positive or negative.")
//! #   .transport(model)
//!     .build()?;
//!
//! let reviews = ["Works well.", "Would buy again."];
//! let mut batch = run_batch(reviews, BatchOptions::new(agent).concurrency(4))?;
//! while let Some((index, reply)) = batch.next().await {
//!     match reply {
//!         Ok(reply) => println!("{}: {}", reviews[index], reply.text),
//!         Err(error) => eprintln!("{}: failed: {error}", reviews[index]),
//!     }
//! }
//! assert_eq!(batch.progress().done, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Several servers
//!
//! Give the agent an `oa_router::Router` as its `chat_service`, and set a concurrency that keeps all servers busy.
//!
//! # Retries
//!
//! First, the agent retries each request on its own. If a prompt still fails with a temporary error, the prompt is
//! retried after a delay, up to [`max_retries`](BatchOptions::max_retries) times. All prompts share the
//! [`retry_budget`](BatchOptions::retry_budget). While every prompt fails, new attempts begin at growing intervals, so
//! a server that is down for a while does not use up the budget. Once the budget is empty, failures are final, and the
//! rest of the batch runs without these pauses.
//!
//! A retry continues the conversation: completed rounds of tool calls do not run again.
//!
//! # Resume
//!
//! With a `BatchLog` (feature `log`), each reply is on disk before it is yielded. If you run the same batch with the
//! same log again, it yields the logged replies from the file and sends only the other prompts.
//!
//! # When to use this crate directly
//!
//! Rarely: the facade `open-agent` re-exports its names, together with everything else that an agent needs. `BatchLog`
//! is there with the feature `session`, and `run_batch_for`, a batch of typed answers, with the feature `schemars`.
//!
//! # Limits
//!
//! | what | default | set by |
//! | --- | --- | --- |
//! | conversations at once | 8 | [`concurrency`](BatchOptions::concurrency) |
//! | prompts held beyond those: waiting for a retry, for the log, or for their turn in input order | 64 | [`window`](BatchOptions::window) |
//! | retries of the batch | 100 | [`retry_budget`](BatchOptions::retry_budget) |
//! | retries of one prompt | 3 | [`max_retries`](BatchOptions::max_retries) |
//! | a delay that a server asks for | 10 minutes | fixed |
//! | a line of the log | 256 MiB | fixed |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod batch;
mod options;
mod progress;

mod attempt;
mod jobs;
mod prompts;
mod scheduler;

#[cfg(feature = "schemars")]
mod output_type;
#[cfg(feature = "schemars")]
mod typed;

#[cfg(feature = "log")]
mod log;

pub use crate::batch::{RunningBatch, run_batch, run_batch_stream};
#[cfg(feature = "log")]
pub use crate::log::BatchLog;
pub use crate::options::BatchOptions;
pub use crate::progress::BatchProgress;
#[cfg(feature = "schemars")]
pub use crate::typed::{TypedBatch, TypedReply, run_batch_for, run_batch_stream_for};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
