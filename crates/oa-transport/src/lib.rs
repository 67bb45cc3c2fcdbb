//! HTTP/1.1 for chat completions: a pool of hyper connections as a tower service.
//!
//! [`Transport`] sends requests and returns responses whose [bodies](ResponseBody) are read as they arrive. A
//! [`RequestHead`] is validated once and shared by many requests. Also included: an [`ApiKey`] that is never
//! printed, and a [`Watch`] that tracks the timeouts of a streamed answer.
//!
//! ```
//! use oa_transport::{RequestBody, Transport};
//! use tower::{Service, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = oa_testkit::SocketServer::start(oa_testkit::Reply::text("Hello")).await?;
//! # let url = format!("{}/chat/completions", server.base_url());
//! let mut transport = Transport::new();
//! let request = http::Request::post(url)
//!     .header("content-type", "application/json")
//!     .body(RequestBody::new(r#"{"model": "any", "messages": [], "stream": true}"#))?;
//! let response = transport.ready().await?.call(request).await?;
//! let mut body = response.into_body();
//! while let Some(chunk) = body.chunk().await? {
//!     assert!(chunk.starts_with(b"data: "));
//! }
//! assert_eq!(transport.idle_connections(), 1); // for the next request
//! # Ok(())
//! # }
//! ```
//!
//! # When to use this crate directly
//!
//! To send HTTP requests to a local server and read long streams of small chunks. To talk to a model, use the
//! `open-agent` facade.
//!
//! # Scope
//!
//! HTTP/1.1 only (ALPN says `http/1.1`): local servers speak nothing else, and a token stream gains nothing from
//! HTTP/2. No redirects, proxies, decompression, or retries except [one](Transport#stale-connections). No background
//! tasks: a connection is driven by the task that awaits the response or reads the body, which saves two task switches
//! per chunk. So nothing progresses unless polled; drop a body that you do not want to read.
//!
//! The environment is not read, except by the feature `tls`: `rustls-native-certs` finds the system's root
//! certificates and honors `SSL_CERT_FILE` and `SSL_CERT_DIR`.
//!
//! # Limits
//!
//! A response head may have up to 100 headers and 64 KiB. The body is unbounded but never collected: at most one read
//! of the socket is buffered. In a chunked body, the extensions of all chunks together may take up to 16 KiB, and so
//! may the trailers. A body with another transfer coding, such as `gzip, chunked`, is an error of kind
//! [`Protocol`](ErrorKind::Protocol) that names the coding.
//!
//! # Features
//!
//! Off by default: `tls` adds `https`, using rustls with ring. Without it, an `https` URI is an error of kind
//! [`TlsMissing`](ErrorKind::TlsMissing).
//!
//! # Stability
//!
//! Names and error kinds are stable. Error messages and sources are not; sources come from private
//! dependencies. No signature mentions hyper.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod service;

mod body;
mod coding;
mod head;
mod request;

mod key;
mod timeout;

mod connect;
mod connection;
mod pool;
mod relay;
mod stream;

mod date;
mod encryption;
mod error;
mod limits;
mod peer;
mod retry_after;
#[cfg(feature = "tls")]
mod tls;

pub use crate::body::ResponseBody;
pub use crate::error::{Error, ErrorKind};
pub use crate::head::RequestHead;
pub use crate::key::ApiKey;
pub use crate::request::RequestBody;
pub use crate::retry_after::retry_after;
pub use crate::service::{Builder, ResponseFuture, Transport};
pub use crate::timeout::{TimeoutKind, Timeouts, Watch};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
