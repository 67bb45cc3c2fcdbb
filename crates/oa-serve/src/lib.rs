//! An agent over HTTP: conversations with resumable event streams, approvals, results of external tools, and several
//! viewers.
//!
//! [`router`] returns an axum router to nest into an application, [`serve`] serves it on its own, and [`AgentServer`]
//! has the options for both. They support the [native interface](http_api), which the page at `/` uses, the AI SDK's UI
//! message stream at `/api/chat`, AG-UI at `/ag-ui`, and OpenAI's chat completions at `/v1`. By default, pages of other
//! origins are refused, and [`serve`] accepts only loopback addresses. Most programs use it as the module `serve` of
//! the facade `open-agent`.
//!
//! ```no_run
//! # // Serves until the process receives a shutdown signal.
//! use oa_client::AgentOptions;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = AgentOptions::builder().model("qwen3:8b").build()?;
//! oa_serve::serve(agent, "127.0.0.1:8080").await?;
//! # Ok(())
//! # }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod limits;
mod server;

mod ag_ui;
mod ai_sdk;
mod conversations;
mod fronts;
mod native;
mod openai;
mod page;

mod body;
mod connections;
mod guard;
mod lingering;
mod served;
mod stream;

mod conversation;
mod encoder;
mod error;
mod front;
mod front_session;
mod front_state;
mod history;
mod review;
mod run;
mod run_stream;
mod seat;
#[cfg(test)]
mod tests;

use std::io;

use axum::Router;
use oa_client::AgentOptions;
use tokio::net::ToSocketAddrs;

pub use crate::conversations::Conversations;
pub use crate::front_state::FrontState;
pub use crate::limits::ServeLimits;
pub use crate::server::AgentServer;

/// Returns the routes of an agent, with the default options of [`AgentServer`].
///
/// ```
/// use oa_client::AgentOptions;
///
/// # fn main() -> Result<(), oa_client::Error> {
/// let agent = AgentOptions::builder().model("qwen3:8b").build()?;
/// let app: axum::Router = axum::Router::new().nest_service("/agent", oa_serve::router(agent));
/// # Ok(())
/// # }
/// ```
pub fn router(agent: AgentOptions) -> Router {
    AgentServer::new(agent).router()
}

/// Serves an agent on an address until a shutdown signal, with the default options of [`AgentServer`].
///
/// # Errors
///
/// As [`AgentServer::serve`]: the address must be a loopback address, such as `127.0.0.1:8080`.
///
/// # Cancel safety
///
/// As [`AgentServer::serve`].
pub async fn serve(agent: AgentOptions, addr: impl ToSocketAddrs) -> io::Result<()> {
    AgentServer::new(agent).serve(addr).await
}

#[doc = include_str!("../docs/http-api.md")]
pub mod http_api {}

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
