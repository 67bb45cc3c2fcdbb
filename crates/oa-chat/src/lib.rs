//! One chat-completions server as a tower service from [`ChatRequest`] to [`AnswerStream`].
//!
//! An [`Endpoint`] is such a service. It knows the quirks of its [`Provider`], writes the request, falls back when the
//! server rejects part of it, and reads the response. [`Retry`] is a layer around it, a router chooses among several,
//! and anything that implements `Service<ChatRequest, Response = AnswerStream>` can replace it.
//!
//! ```
//! use oa_chat::{ChatRequest, Endpoint};
//! use oa_testkit::{MemoryServer, Reply};
//! use oa_types::Message;
//! use tower::Service;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> oa_chat::Result<()> {
//! let mut server = Endpoint::builder()
//!     .base_url("http://localhost:8080/v1")
//! #   .transport(MemoryServer::new(Reply::text("Because of Rayleigh scattering.")))
//!     .build()?;
//! let request = ChatRequest::new("qwen3:8b", vec![Message::user("Why is the sky blue?")]);
//! let answer = server.call(request).await?;
//! assert_eq!(answer.message().await?.text(), "Because of Rayleigh scattering.");
//! # Ok(())
//! # }
//! ```
//!
//! # Your own model
//!
//! A function can be a chat service. It answers with [`AnswerStream::from_deltas`]:
//!
//! ```
//! use futures_util::stream;
//! use oa_chat::{AnswerDelta, AnswerStream, ChatRequest, Error};
//! use oa_types::Message;
//! use tower::{Service, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> oa_chat::Result<()> {
//! let mut parrot = service_fn(|request: ChatRequest| async move {
//!     let last = request.messages().last().map(Message::text).unwrap_or_default();
//!     let words: Vec<_> = last.split_inclusive(' ').map(AnswerDelta::text).collect();
//!     let deltas = stream::iter(words.into_iter().map(Ok::<_, Error>));
//!     Ok::<_, Error>(AnswerStream::from_deltas(deltas))
//! });
//! let request = ChatRequest::new("parrot", vec![Message::user("Polly wants a cracker.")]);
//! assert_eq!(parrot.call(request).await?.message().await?.text(), "Polly wants a cracker.");
//! # Ok(())
//! # }
//! ```
//!
//! # Middleware
//!
//! A layer can change a request and observe the outcome of its answer:
//!
//! ```
//! use oa_chat::{AnyChat, ChatRequest, Endpoint};
//! use oa_testkit::{MemoryServer, Reply};
//! use oa_types::Message;
//! use tower::{Service, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> oa_chat::Result<()> {
//! # let server = MemoryServer::new(Reply::text("Yes."));
//! let endpoint = Endpoint::builder().base_url("http://gpu:8000/v1")
//! #   .transport(server.clone())
//!     .build()?;
//! let mut small = service_fn(move |request: ChatRequest| {
//!     let mut endpoint = endpoint.clone();
//!     // Short conversations go to the small model.
//!     let request = match request.messages().len() {
//!         0..10 => request.with_model("qwen3:4b"),
//!         _ => request,
//!     };
//!     async move {
//!         let mut answer = endpoint.call(request).await?;
//!         answer.on_end(|outcome| println!("{}: {:?}", outcome.model, outcome.usage));
//!         Ok::<_, oa_chat::Error>(answer)
//!     }
//! });
//! small.call(ChatRequest::new("qwen3:30b", vec![Message::user("Is it?")])).await?.message().await?;
//! # assert_eq!(server.requests()[0].json()["model"], "qwen3:4b");
//! # Ok(())
//! # }
//! ```
//!
//! # When to use this crate directly
//!
//! Use it to write middleware, a router or your own model. To run an agent, use the facade `open-agent`. If you already
//! have the bytes of a body and want deltas and blocks, use [`Pipeline`].
//!
//! # Features
//!
//! `tls` adds https with rustls; local servers speak plain HTTP. `session` converts errors of session stores to [`Error`].

#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
mod answer_outcome;
mod any_chat;
mod body;
mod closing;
mod conversation;
mod deltas;
mod destination;
mod dialect;
mod endpoint;
mod envelope;
mod error;
mod exchange;
mod fetch;
mod headers;
mod inspect;
mod learned;
mod models;
mod negotiation;
mod options;
mod pipeline;
mod prepared;
mod provider;
mod quotation;
mod request;
mod retry;
mod retry_budget;
mod retry_config;
mod scan;
mod server_address;
mod server_profile;
mod server_traits;
mod service;
mod source;
mod tokenize;
mod transcript;
mod wire_format;

pub use oa_output::{FormatFallback, FormatRequest};
pub use oa_transport::{RequestBody, TimeoutKind};
pub use oa_types::Timeout;
pub use oa_types::wire::{Thinking, ThinkingField};

pub use crate::answer::{AnswerStream, Concluded};
pub use crate::answer_outcome::AnswerOutcome;
pub use crate::any_chat::AnyChat;
pub use crate::closing::Closing;
pub use crate::conversation::Conversation;
pub use crate::deltas::AnswerDelta;
pub use crate::dialect::ToolMode;
pub use crate::endpoint::{Endpoint, EndpointBuilder};
pub use crate::error::{Error, ErrorKind, Result};
pub use crate::inspect::{RawChat, RawResponse, Target};
pub use crate::models::model_names;
pub use crate::negotiation::Refusal;
pub use crate::options::{ChatOptions, Limits, SystemRole};
pub use crate::pipeline::{OnBadChunk, Pipeline, PipelineError, PipelineOptions};
pub use crate::prepared::PreparedOptions;
pub use crate::provider::{
    DEFAULT_BASE_URL, Provider, base_url_from_environment, model_from_environment,
};
pub use crate::request::ChatRequest;
pub use crate::retry::Retry;
pub use crate::retry_config::{RetryConfig, retry_with_backoff};
pub use crate::server_address::ServerAddress;
pub use crate::server_profile::ServerProfile;
pub use crate::server_traits::ServerTraits;
pub use crate::service::BoxFuture;

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
