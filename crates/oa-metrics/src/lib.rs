//! OpenTelemetry metrics of an agent: how long turns, requests and tool calls take, and how many tokens they use.
//!
//! [`Metrics`] wraps a chat service, tools and the turns of an agent. The wrappers record into a meter of the crate
//! `opentelemetry`. This crate uses only the API: the program chooses an SDK and an exporter, and without them nothing
//! is recorded.
//!
//! ```
//! use oa_chat::{ChatRequest, Endpoint};
//! use oa_metrics::Metrics;
//! use oa_testkit::{MemoryServer, Reply};
//! use oa_types::Message;
//! use opentelemetry::metrics::MeterProvider;
//! use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
//! use tower::Service;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let exporter = InMemoryMetricExporter::default();
//! let reader = PeriodicReader::builder(exporter.clone()).build();
//! let provider = SdkMeterProvider::builder().with_reader(reader).build();
//!
//! let metrics = Metrics::new(&provider.meter("my-agent"));
//! let server = Endpoint::builder().base_url("http://localhost:8080/v1")
//! #   .transport(MemoryServer::new(Reply::text("Yes.").usage(9, 2)))
//!     .build()?;
//! let mut server = metrics.endpoint(server);
//! let request = ChatRequest::new("qwen3:8b", vec![Message::user("Is the sky blue?")]);
//! server.call(request).await?.message().await?;
//!
//! provider.force_flush()?;
//! assert_eq!(exporter.get_finished_metrics()?.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Instruments
//!
//! [`Instrument`] lists them, with units and bucket boundaries. The names are those of OpenTelemetry's conventions for
//! generative AI, which are still experimental.
//!
//! # Attributes
//!
//! | attribute | on | value |
//! | --- | --- | --- |
//! | `gen_ai.operation.name` | requests | `chat` |
//! | `gen_ai.provider.name` | requests | the provider's name in the conventions; `openai`, the protocol, for servers without a name |
//! | `gen_ai.request.model` | requests, turns | the requested model; for turns, the one that the program sets |
//! | `gen_ai.agent.name` | turns | the name of the agent, if the program sets one |
//! | `gen_ai.response.model` | requests | the model that answered, as the server names it |
//! | `server.address`, `server.port` | requests | the server, if it is known |
//! | `gen_ai.token.type` | tokens | `input` or `output` |
//! | `gen_ai.tool.name` | tool calls | the name of the tool |
//! | `gen_ai.tool.type` | tool calls | `function` |
//! | `error.type` | durations | for requests and turns, the kind of the error as [`ErrorKind::as_str`](oa_chat::ErrorKind::as_str) spells it, `interrupted` among them; for tools, see [`MeteredTool`]; `_OTHER` for an error of another library |
//!
//! Prompts, answers, arguments, results and keys are never recorded. The number of attribute values is bounded, even if
//! a server reports a new model in each answer: 64 targets of requests, 8 answering models for each, 64 agents and 256
//! tools are distinguished, with names of up to 128 bytes. All others are recorded as `_OTHER`.
//!
//! # When to use this crate directly
//!
//! Use it for chat services without an agent. For agents, use the facade `open-agent` with its feature `metrics`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod agent;
mod chat;
mod instrument;
mod labels;
mod measurement;
mod metrics;
mod recorder;
mod tool;

pub use crate::agent::MeteredAgent;
pub use crate::chat::{MeteredChat, MeteredFuture};
pub use crate::instrument::Instrument;
pub use crate::metrics::Metrics;
pub use crate::tool::MeteredTool;

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
