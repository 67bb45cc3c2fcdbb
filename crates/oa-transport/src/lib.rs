//! HTTP/1.1 for chat completions: a pool of hyper connections as a tower service.
//!
//! [`Transport`] sends requests and hands out answers whose [bodies](ResponseBody) come as they
//! arrive. What many requests have in common is looked through once, as a [`RequestHead`]. Beside it
//! is what else stands between a client and a socket: an [`ApiKey`] that is never shown, and a
//! [`Watch`] that knows how long to wait for what.
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
//! # Who needs this crate alone
//!
//! Whoever talks HTTP to a local server and reads long streams of small chunks. To talk to a model,
//! take the `open-agent` facade.
//!
//! # What it does and what not
//!
//! HTTP/1.1 only (ALPN says `http/1.1`): that is what local servers speak, and a stream of tokens
//! gains nothing by HTTP/2. No redirects, no proxies, no decompression, no retries but
//! [one](Transport#a-connection-that-was-closed-in-the-meantime). It starts no tasks: a connection
//! is driven by whoever waits for the head of an answer or reads its body, which saves two switches
//! of tasks for each chunk. So while nobody polls nothing moves; a body that is not to be read is to
//! be dropped.
//!
//! The environment is not read, but for the feature `tls`: what the system trusts is found as
//! `rustls-native-certs` finds it, where `SSL_CERT_FILE` and `SSL_CERT_DIR` have a say.
//!
//! # Bounds
//!
//! The head of an answer may have 100 headers and 64 KiB. The body is unbounded and never collected:
//! at most one read of the socket is held.
//!
//! # Features
//!
//! Off by default: `tls` adds `https`, by rustls with ring. Without it an `https` URI is an error of
//! kind [`TlsMissing`](ErrorKind::TlsMissing).
//!
//! # Stability
//!
//! The names and kinds here. Texts of errors are for people, and so are their sources, which come
//! from private dependencies: hyper appears in no signature.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod service;

mod body;
mod head;
mod request;

mod key;
mod timeout;

mod connect;
mod connection;
mod pool;
mod relay;
mod stream;

mod error;
mod peer;
#[cfg(feature = "tls")]
mod tls;

pub use crate::body::ResponseBody;
pub use crate::error::{Error, ErrorKind};
pub use crate::head::RequestHead;
pub use crate::key::ApiKey;
pub use crate::request::RequestBody;
pub use crate::service::{Builder, ResponseFuture, Transport};
pub use crate::timeout::{TimeoutKind, Timeouts, Watch};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
