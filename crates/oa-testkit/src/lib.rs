//! A scripted OpenAI-compatible model server, for testing agents and their clients.
//!
//! A test writes a [`Script`] of [`Reply`]s and gives it to a server: [`MemoryServer`] is a [`tower::Service`] in place
//! of an HTTP client, and [`SocketServer`] listens on a loopback socket. Both play the same scripts, piece by piece,
//! and misbehave like real servers: they split streams anywhere, delay, stall, close too early, and reset connections.
//! Afterwards, they return the [requests](Request), and panic with a full report if the script was not played as
//! written.
//!
//! Everything is deterministic: the same script produces the same bytes, no clock is read, and randomness has a
//! seed.
//!
//! # Examples
//!
//! An agent's first turn, in memory:
//!
//! ```
//! use bytes::Bytes;
//! use http_body_util::{BodyExt, Full};
//! use oa_testkit::{MemoryServer, Reply, Request, Script};
//! use serde_json::json;
//! use tower::Service;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut server = MemoryServer::new(
//!     Script::new()
//!         .expect("asks for a stream", Request::is_stream)
//!         .reply(Reply::new().say("I'll look.").call("add", json!({"a": 1, "b": 2})))
//!         .reply(Reply::error(503, "Loading model").header("retry-after", "1")),
//! );
//!
//! let ask = || {
//!     let body = json!({"model": "any", "stream": true, "messages": []}).to_string();
//!     http::Request::post("http://model/v1/chat/completions").body(Full::new(Bytes::from(body)))
//! };
//! let response = server.call(ask()?).await?;
//! let stream = response.into_body().collect().await?.to_bytes();
//! assert!(stream.starts_with(b"data: {"));
//! assert!(stream.ends_with(b"data: [DONE]\n\n"));
//!
//! assert_eq!(server.call(ask()?).await?.status(), 503);
//! assert_eq!(server.requests().len(), 2);
//! server.verify();
//! # Ok(())
//! # }
//! ```
//!
//! To use responses of a real server, a [`Cassette`] around any transport records them in a reviewable file and
//! replays them without the server.
//!
//! # Features
//!
//! None.
//!
//! # Stability
//!
//! Names are stable. The exact bytes of a generated answer may change in a minor release; for fixed bytes, play a
//! recording with [`Reply::sse`]. Later releases will read cassettes of version 1. Reports, the messages of cassette
//! misses, and `Debug` output may change.

mod script;

mod reply;
mod speech;

mod chop;
mod requests;
mod strict;

mod memory;
mod socket;

mod cassette;

mod act;
mod http1;
mod stage;
mod story;
mod wire;

pub use crate::cassette::{
    Cassette, CassetteBuilder, CassetteError, CassetteErrorKind, CassetteMode, Taped, TapedBody,
    TapedFuture,
};
pub use crate::chop::Cut;
pub use crate::memory::{MemoryBody, MemoryFuture, MemoryServer};
pub use crate::reply::{Framing, Reply};
pub use crate::requests::Request;
pub use crate::script::Script;
pub use crate::socket::SocketServer;
pub use crate::strict::{Strict, Violation, Violations};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
