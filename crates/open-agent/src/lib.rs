//! Agents on local and self-hosted models: LM Studio, Ollama, llama.cpp, vLLM, and gateways that speak
//! OpenAI's chat completions.
//!
//! ```
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
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Layers
//!
//! The facade is a list of names. Each layer is a crate that can be taken alone, and a module here:
//! [`sse`] parses event streams, [`aggregate`] turns chunks into deltas and whole tool calls,
//! [`types`] has the shared words, [`transport`] speaks HTTP, [`client`] composes them. [`tools`],
//! [`hooks`], [`executor`] and [`turn`] are the parts of an agent's loop; [`fallback`] has calls in text for
//! models that have no tools, [`context`] says how many tokens a conversation is, and what to leave out, and
//! [`json`](mod@json) reads JSON while a model writes it.
//!
//! The manual has three pages: [`guide::limits`], what a server can make a program hold; [`guide::quirks`], what
//! servers do differently and what is done about it (the "QUIRKS rows" of all crates' documentation); and
//! [`guide::testing`], how agents are tested.
//!
//! # Runtime
//!
//! Everything async runs on tokio, on one thread or several, with time and I/O enabled: `#[tokio::main]` has both,
//! and a runtime of your own takes `enable_all()`. Outside of a runtime the async functions panic. The modules [`sse`],
//! [`aggregate`], [`turn`], [`hooks`], [`tools`] and [`types`] need none.
//!
//! # Features
//!
//! `tls` (on by default) adds https by rustls. Plain HTTP is all that a local server needs. `tracing` (on by
//! default) adds spans, named as OpenTelemetry has it. `session` keeps conversations in text files, `session-sqlite` in a
//! database. `schemars` adds tools over types that derive their schema, and answers of such
//! types: `Client::send_for`. `router` has several servers behind one agent.
//!
//! Counters that know a model's vocabulary bring many crates and megabytes along, so none of them is a feature here.
//! Name `oa-context` beside this crate, with its feature `tiktoken` or `tokenizers`: then [`context`] has them too.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub use oa_aggregate::ThinkTags;
pub use oa_chat::{
    AnswerDelta, AnswerOutcome, AnswerStream, ChatRequest, Endpoint, EndpointBuilder, Error,
    ErrorKind, Limits, OnBadChunk, Provider, Result, RetryConfig, ServerProfile, SystemRole,
    Thinking, Timeout, ToolMode, retry_with_backoff,
};
#[cfg(feature = "schemars")]
pub use oa_client::query_for;
pub use oa_client::{
    AgentEvent, AgentOptions, AgentOptionsBuilder, AgentService, AgentStream, AgentTool,
    BlockStream, CallDenied, Client, ClientStream, Compaction, HistoryMut, InterruptHandle,
    OutputMode, Partial, PromptCut, Reply, ResponseFormat, SendFor, Structured, StructuredStream,
    TerminalPrompt, TurnMetadata, count_text_tokens, count_tokens, list_models, query,
    query_for_format,
};
pub use oa_context::{
    ContextPolicy, Overflow, TokenCounter, estimate_tokens, is_approaching_limit, truncate_messages,
};
pub use oa_doctor::{Doctor, Finding, Probe, Report, Verdict, doctor};
pub use oa_executor::{
    Batch, CallRate, ExecutionMode, ExecutorOptions, ToolEvent, ToolExecutor, TruncationPolicy,
};
pub use oa_hooks::{
    HOOK_POST_TOOL_USE, HOOK_PRE_TOOL_USE, HOOK_USER_PROMPT_SUBMIT, HookDecision, HookError, Hooks,
    Permission, PermissionMode, PermissionRequest, PostToolUseEvent, PreToolUseEvent, ToolRule,
    UserPromptSubmitEvent,
};
pub use oa_tools::{FnTool, Progress, Registry, Tool, ToolContext, ToolError, tool};
pub use oa_transport::RequestBody;
pub use oa_types::wire::ToolChoice;
pub use oa_types::{
    AssistantMessage, ContentBlock, Cost, FinishReason, ImageBlock, ImageDetail, Message,
    MessageRole, Price, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, ToolUseError,
    Usage,
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
pub use oa_executor as executor;
#[doc(inline)]
pub use oa_fallback as fallback;
#[doc(inline)]
pub use oa_hooks as hooks;
#[doc(inline)]
pub use oa_json as json;
#[doc(inline)]
pub use oa_redact as redact;
#[cfg(feature = "router")]
#[doc(inline)]
pub use oa_router as router;
#[cfg(feature = "session")]
#[doc(inline)]
pub use oa_session as session;
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

/// Pages of a manual.
pub mod guide {
    #[doc = include_str!("guide/limits.md")]
    pub mod limits {}

    #[doc = include_str!("guide/quirks.md")]
    pub mod quirks {}

    #[doc = include_str!("guide/testing.md")]
    pub mod testing {}
}

/// Compiles the example of this crate's own page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Page;

/// Compiles the examples of the README, which take two features.
#[cfg(all(doctest, feature = "schemars", feature = "session"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
