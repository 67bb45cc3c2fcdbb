//! Agents on local and self-hosted models: LM Studio, Ollama, llama.cpp, vLLM, and gateways that speak
//! OpenAI's chat completions.
//!
//! ```
//! use std::io::Write as _;
//!
//! use open_agent::{AgentOptions, ContentBlock, query};
//! # use oa_testkit::{MemoryServer, Reply};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> open_agent::Result<()> {
//! let options = AgentOptions::builder()
//!     .model("qwen3:8b")
//!     .base_url("http://localhost:11434/v1")
//!     .system_prompt("You are brief.")
//! #   .transport(MemoryServer::new(Reply::text("Because of Rayleigh scattering.")))
//!     .build()?;
//!
//! let mut answer = query("Why is the sky blue?", &options).await?;
//! while let Some(block) = answer.next().await {
//!     if let ContentBlock::Text(text) = block? {
//!         print!("{}", text.text); // as it is generated
//!         std::io::stdout().flush().ok();
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Layers
//!
//! This crate only re-exports names. Each layer is a separate crate, and a module here: [`sse`] parses event streams,
//! [`aggregate`] turns chunks into deltas and complete tool calls, [`types`] has the shared types, [`transport`] speaks
//! HTTP, [`chat`] presents one server as a tower service, and [`client`] is the agent. [`tools`], [`hooks`],
//! [`executor`] and [`turn`] are the parts of the agent loop. [`fallback`] reads calls from text, [`context`] estimates
//! tokens and shortens conversations, and [`json`](mod@json) reads JSON while a model writes it.
//!
//! # Manual
//!
//! The page [`guide`] lists the pages of the manual by question. Start with [`guide::getting_started`].
//! [`guide::servers`] helps you choose a server and a model, and [`guide::testing`] shows how to test without either.
//! "QUIRKS row 12" in the documentation refers to a row of [`guide::quirks`].
//!
//! # Which crate
//!
//! Use this one: features that are off add no crates. Use another one
//!
//! | to | crate |
//! | --- | --- |
//! | parse event streams, without JSON | `oa-sse` |
//! | turn any server's chunks into deltas and complete calls, over your own transport | `oa-aggregate` |
//! | talk to one model server as a tower service, without an agent | `oa-chat` |
//! | run the agent loop over your own I/O, for example in a durable engine | `oa-turn` |
//! | run a batch of tool calls in your own loop | `oa-executor` |
//! | count tokens exactly | `oa-context`, with `tiktoken` or `tokenizers` |
//! | test against a scripted model server | `oa-testkit` |
//!
//! # Runtime
//!
//! Async functions need a tokio runtime with time and I/O enabled, and panic without one. `#[tokio::main]` enables
//! both; if you build a runtime yourself, call `enable_all()`. The modules [`sse`], [`aggregate`], [`turn`], [`hooks`],
//! [`tools`] and [`types`] need no runtime.
//!
//! # Features
//!
//! - `tracing` (default): spans with OpenTelemetry's names.
//! - `tls`: `https://` addresses of models, MCP servers and Restate, and PostgreSQL on other machines, with rustls.
//!   Local servers need only plain HTTP.
//! - `session`: stores conversations and logs of batches in text files; `session-sqlite`: in a database file;
//!   `session-postgres`: in PostgreSQL.
//! - `schemars`: tools and structured output for types that derive their schema.
//! - `jsonschema`: checks tool arguments against every keyword of JSON Schema, including patterns and formats.
//! - `macros`: functions as tools, with `#[tool]`.
//! - `router`: several servers behind one agent.
//! - `mcp`: tools from MCP servers, and your tools and agents as an MCP server.
//! - `metrics`: OpenTelemetry metrics of requests and tool calls.
//! - `serve`: agents over HTTP.
//! - `restate`: turns that survive crashes, on the engine Restate. Needs Rust 1.90.
//!
//! Exact token counters pull in many crates and megabytes, so they are not features here. Depend on `oa-context` with
//! its feature `tiktoken` or `tokenizers`; [`context`] then has them, too.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "mcp")]
pub use oa_agents::McpHost;
pub use oa_agents::{AgentService, AgentStream, AgentTool};
pub use oa_aggregate::{Problem, Quirks, ThinkTags};
#[cfg(feature = "session")]
pub use oa_batch::BatchLog;
pub use oa_batch::{BatchOptions, BatchProgress, RunningBatch, run_batch, run_batch_stream};
#[cfg(feature = "schemars")]
pub use oa_batch::{TypedBatch, TypedReply, run_batch_for, run_batch_stream_for};
pub use oa_chat::{
    AnswerDelta, AnswerOutcome, AnswerStream, ChatRequest, Endpoint, EndpointBuilder, Error,
    ErrorKind, Limits, OnBadChunk, Provider, Result, RetryConfig, ServerProfile, SystemRole,
    Thinking, Timeout, TimeoutKind, ToolMode, retry_with_backoff,
};
#[cfg(feature = "schemars")]
pub use oa_client::query_for;
pub use oa_client::{
    AgentEvent, AgentOptions, AgentOptionsBuilder, AgentSteps, BlockStream, CallDenied,
    CallbackOutput, Client, ClientStream, Compaction, HistoryMut, InterruptGuard, InterruptHandle,
    NestedEvent, OutputMode, ParentAgent, Partial, Reply, ResponseFormat, SendFor, SteerHandle,
    Structured, StructuredStream, ToolUseDelta, TurnMetadata, query, query_for_format, stop_when,
};
pub use oa_context::{
    CacheMiss, ChangedPart, ContextPolicy, ContextShortened, HowShortened, Overflow, PromptCut,
    TokenCounter, estimate_tokens, is_approaching_limit, truncate_messages,
};
pub use oa_doctor::{
    Doctor, Finding, Probe, Report, Verdict, count_text_tokens, count_tokens, doctor, list_models,
};
pub use oa_executor::{
    Batch, CallRate, ExecutionMode, ExecutionResult, ExecutorOptions, RetryPolicy, TimeoutPolicy,
    ToolCache, ToolEvent, ToolExecutor, TruncationPolicy,
};
pub use oa_hooks::{
    AnswerEvent, HOOK_ANSWER, HOOK_POST_TOOL_USE, HOOK_PRE_TOOL_USE, HOOK_USER_PROMPT_SUBMIT,
    HookDecision, HookError, Hooks, Permission, PermissionMode, PermissionRequest,
    PostToolUseEvent, PreToolUseEvent, ToolRule, UserPromptSubmitEvent,
};
#[cfg(feature = "macros")]
pub use oa_macros::tool;
#[cfg(feature = "metrics")]
pub use oa_metrics::Metrics;
pub use oa_terminal::TerminalPrompt;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use oa_tools::__private;
pub use oa_tools::{
    FnTool, LogLevel, Progress, Registry, Tool, ToolContext, ToolError, ToolSource, tool,
};
pub use oa_transport::RequestBody;
pub use oa_turn::{Checkpoint, SteerAfterEnd, StepContext};
pub use oa_types::wire::{ResultImages, ThinkingReplay, ToolChoice};
pub use oa_types::{
    AssistantMessage, AudioBlock, Backoff, ContentBlock, Cost, FinishReason, ImageBlock,
    ImageDetail, Message, MessageRole, Outcome, Price, PromptProgress, TextBlock, ThinkingBlock,
    ToolResultBlock, ToolUseBlock, ToolUseError, Usage,
};
#[doc(no_inline)]
pub use serde_json::{Value, json};

#[doc(inline)]
pub use oa_aggregate as aggregate;
#[doc(inline)]
pub use oa_chat as chat;
#[doc(inline)]
pub use oa_client as client;
#[doc(inline)]
pub use oa_context as context;
#[doc(inline)]
pub use oa_events as events;
#[doc(inline)]
pub use oa_executor as executor;
#[doc(inline)]
pub use oa_fallback as fallback;
#[doc(inline)]
pub use oa_hooks as hooks;
#[doc(inline)]
pub use oa_json as json;
#[cfg(feature = "mcp")]
#[doc(inline)]
pub use oa_mcp as mcp;
#[cfg(feature = "metrics")]
#[doc(inline)]
pub use oa_metrics as metrics;
#[doc(inline)]
pub use oa_output as output;
#[doc(inline)]
pub use oa_redact as redact;
#[cfg(feature = "restate")]
#[doc(inline)]
pub use oa_restate as restate;
#[cfg(feature = "router")]
#[doc(inline)]
pub use oa_router as router;
#[cfg(feature = "serve")]
#[doc(inline)]
pub use oa_serve as serve;
#[cfg(feature = "session")]
#[doc(inline)]
pub use oa_session as session;
#[cfg(feature = "session-postgres")]
#[doc(inline)]
pub use oa_session_postgres as session_postgres;
#[cfg(feature = "session-sqlite")]
#[doc(inline)]
pub use oa_session_sqlite as session_sqlite;
#[doc(inline)]
pub use oa_sse as sse;
#[doc(inline)]
pub use oa_tools as tools;
#[doc(inline)]
pub use oa_transport as transport;
#[doc(inline)]
pub use oa_turn as turn;
#[doc(inline)]
pub use oa_types as types;

pub mod guide {
    #![doc = include_str!("guide/contents.md")]

    #[doc = include_str!("guide/agents.md")]
    pub mod agents {}

    #[cfg(feature = "session")]
    #[doc = include_str!("guide/approvals.md")]
    pub mod approvals {}

    #[cfg(feature = "session")]
    #[doc = include_str!("guide/batches.md")]
    pub mod batches {}

    #[doc = include_str!("guide/doctor.md")]
    pub mod doctor {}

    #[cfg(feature = "restate")]
    #[doc = include_str!("guide/durable.md")]
    pub mod durable {}

    #[doc = include_str!("guide/errors.md")]
    pub mod errors {}

    #[doc = include_str!("guide/events.md")]
    pub mod events {}

    #[doc = include_str!("guide/getting_started.md")]
    pub mod getting_started {}

    #[doc = include_str!("guide/hooks.md")]
    pub mod hooks {}

    #[doc = include_str!("guide/images.md")]
    pub mod images {}

    #[doc = include_str!("guide/interrupts.md")]
    pub mod interrupts {}

    #[doc = include_str!("guide/limits.md")]
    pub mod limits {}

    #[cfg(feature = "mcp")]
    #[doc = include_str!("guide/mcp.md")]
    pub mod mcp {}

    #[cfg(feature = "mcp")]
    #[doc = include_str!("guide/mcp_server.md")]
    pub mod mcp_server {}

    #[doc = include_str!("guide/model_settings.md")]
    pub mod model_settings {}

    #[doc = include_str!("guide/oa.md")]
    pub mod oa {}

    #[doc = include_str!("guide/observability.md")]
    pub mod observability {}

    #[doc = include_str!("guide/own_model.md")]
    pub mod own_model {}

    #[doc = include_str!("guide/performance.md")]
    pub mod performance {}

    #[cfg(feature = "serve")]
    #[doc = include_str!("guide/serve.md")]
    pub mod serve {}

    #[doc = include_str!("guide/quirks.md")]
    pub mod quirks {}

    #[doc = include_str!("guide/servers.md")]
    pub mod servers {}

    #[cfg(feature = "session")]
    #[doc = include_str!("guide/sessions.md")]
    pub mod sessions {}

    #[cfg(feature = "session-postgres")]
    #[doc = include_str!("guide/sessions_postgres.md")]
    pub mod sessions_postgres {}

    #[cfg(feature = "router")]
    #[doc = include_str!("guide/several_servers.md")]
    pub mod several_servers {}

    #[doc = include_str!("guide/small_contexts.md")]
    pub mod small_contexts {}

    #[doc = include_str!("guide/small_models.md")]
    pub mod small_models {}

    #[doc = include_str!("guide/steps.md")]
    pub mod steps {}

    #[cfg(feature = "schemars")]
    #[doc = include_str!("guide/structured_output.md")]
    pub mod structured_output {}

    #[doc = include_str!("guide/testing.md")]
    pub mod testing {}

    #[doc = include_str!("guide/thinking.md")]
    pub mod thinking {}

    #[doc = include_str!("guide/tools.md")]
    pub mod tools {}

    #[cfg(feature = "macros")]
    #[doc = include_str!("guide/typed_tools.md")]
    pub mod typed_tools {}
}

/// Compiles the example of this crate's own page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Page;

/// Compiles the example of the page of `oa-macros`, which names this crate.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../../oa-macros/README.md")]
struct Macros;

/// Compiles the examples of the README, which take two features.
#[cfg(all(doctest, feature = "schemars", feature = "session"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles what MIGRATING.md says.
#[cfg(doctest)]
#[doc = include_str!("../../../MIGRATING.md")]
struct Migrating;

/// Compiles the page for coding models.
#[cfg(all(doctest, feature = "schemars"))]
#[doc = include_str!("../llms.txt")]
struct Llms;
