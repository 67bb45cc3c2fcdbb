//! Several model servers behind one agent: a chat service that uses whichever server can answer.
//!
//! A [`Router`] consists of endpoints and is itself such a service: a tower service from
//! [`ChatRequest`](oa_chat::ChatRequest) to [`AnswerStream`](oa_chat::AnswerStream), to be passed to
//! `chat_service`.
//!
//! ```
//! use oa_chat::Endpoint;
//! use oa_client::{AgentOptions, Client};
//! use oa_router::{Policy, Router, Server};
//! # use oa_testkit::{MemoryServer, Reply, Script};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> oa_chat::Result<()> {
//! # let (loading, ready) = (MemoryServer::new(Reply::error(503, "Loading model")), MemoryServer::new(Reply::text("Hello!")));
//! let gpu = Endpoint::builder().base_url("http://gpu:8000/v1").model("qwen3-32b")
//! #   .transport(loading)
//!     .build()?;
//! let laptop = Endpoint::builder().base_url("http://localhost:11434/v1").model("qwen3:8b")
//! #   .transport(ready)
//!     .build()?;
//! let router = Router::builder()
//!     .endpoint(Server::new(gpu).name("gpu").cap(8))
//!     .endpoint(Server::new(laptop).name("laptop").cap(1))
//!     .policy(Policy::Failover)
//!     .build()?;
//!
//! let options = AgentOptions::builder().model("qwen3").chat_service(router.clone()).build()?;
//! let mut client = Client::new(options)?;
//! assert_eq!(client.ask("Say hello.").await?.text, "Hello!"); // the gpu was loading its model
//!
//! let [gpu, laptop] = &router.status()[..] else { panic!("there are two") };
//! assert_eq!((gpu.failed, laptop.answered), (1, 1));
//! # Ok(())
//! # }
//! ```
//!
//! # When to use this crate directly
//!
//! Rarely: the facade re-exports it as the module `router`, with the feature of that name. [`Breaker`] is also useful
//! on its own.
//!
//! # Choice of server
//!
//! A request goes to a server that is healthy, has room, and has not failed this request:
//!
//! 1. the server that last answered the conversation, if remembered ([`sticky`](RouterBuilder::sticky)). If it
//!    is busy, the request waits for up to [`patience`](RouterBuilder::patience); if it is unhealthy, the
//!    request moves immediately;
//! 2. otherwise, the server chosen by the [`Policy`].
//!
//! If no server has room, the request waits in one queue for all servers, in order of arrival; freed capacity
//! goes immediately to the first request that can use it. A request occupies a slot from when it is sent until
//! its answer ends or is dropped.
//!
//! # Failover
//!
//! | server's response | try another | counts against its health |
//! | --- | --- | --- |
//! | no connection, a broken one, another protocol, silence longer than `first_token_timeout` | yes | yes |
//! | 408, 409, 425, 429, 5xx, an error without a status in the stream, an empty success | yes | yes |
//! | 401, 402: the router's key is rejected | yes | yes |
//! | 403, 404, redirects, a 500 about a template, a 400 or 422 that says so: no such model, or not capable | yes | no |
//! | other 4xx, context overflow, limits, `total_timeout`: caused by the request | no | no |
//! | anything after the first piece of the answer was delivered | no | yes, unless caused by the request |
//!
//! The status of an error reported in the stream is the one that it names, as in `{"error": {"code": 400}}`.
//!
//! There is no delay between servers. The agent's [`RetryConfig`](oa_chat::RetryConfig) wraps the whole router: when
//! all servers have failed, the agent waits until the first server is expected to be available, and tries again.
//!
//! # Health
//!
//! Each server has a circuit breaker: see [`Breaker`] for its rules and [`BreakerConfig`] for its times. If all
//! circuits are open, no server is used and the error says so.
//!
//! # Limits
//!
//! | what | default | set by |
//! | --- | --- | --- |
//! | servers | 64 at most | fixed |
//! | answers in progress at a server | no bound | [`cap`](RouterBuilder::cap), [`Server::cap`] |
//! | requests that wait | 256 | [`queue`](RouterBuilder::queue) |
//! | the time that a request waits | 300 seconds | [`longest_wait`](RouterBuilder::longest_wait) |
//! | conversations remembered | 4,096, none for [`Policy::Failover`] | [`sticky`](RouterBuilder::sticky) |
//! | the time that a conversation waits for its server | 2 seconds | [`patience`](RouterBuilder::patience) |
//! | failures in a row that open a circuit | 3 | [`BreakerConfig::failures`] |
//! | the time that a circuit is open, at first and at most | 1 and 30 seconds | [`BreakerConfig::open_for`], [`BreakerConfig::max_open`] |
//! | a `Retry-After` that is honored | 600 seconds | [`BreakerConfig::max_retry_after`] |
//! | requests at once after a trial | 2, and one more for each answer that begins, up to 32 | fixed |
//! | the excerpt of one server's error, and the number of servers named | 120 characters, 8 | fixed |
//!
//! # Design of the balancer
//!
//! [`Policy::LeastBusy`] is tower's [`balance::p2c`](tower::balance::p2c) over tower's
//! [`Load`](tower::load::Load); the load is the number of answers in progress, because an answer is not
//! complete when its head arrives. A `Balance` cannot be cloned and does not inspect requests. It is usually
//! shared with [`tower::buffer`](https://docs.rs/tower/0.5/tower/buffer/index.html), a task that handles
//! requests one at a time. That would need a background task with an owner; a request for a busy server would
//! block all requests behind it; one error would fail all of them; and it could not consider a conversation's
//! own server or the servers that already failed a request. So requests do not pass through the balancer. One
//! scheduler, behind a lock held for microseconds, tracks room, waiting requests and health. When several servers
//! could take a request, the balancer's discovery receives exactly these, and it picks one. Waiting is a future:
//! dropping it leaves the queue.
//!
//! # Stability
//!
//! Names, defaults and the tables above change only with an entry in the changelog. Messages may change at any time.

mod builder;
mod policy;
mod router;
mod server;
mod status;

mod dispatcher;
mod failures;
mod outcome;
mod routed_request;
mod shared;

mod affinity;
mod balancer;
mod breaker;
mod scheduler;
mod server_set;
mod slots;

pub use crate::breaker::{AttemptOutcome, Breaker, BreakerConfig, Health, Pass};
pub use crate::builder::RouterBuilder;
pub use crate::policy::Policy;
pub use crate::router::Router;
pub use crate::server::Server;
pub use crate::status::ServerStatus;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
