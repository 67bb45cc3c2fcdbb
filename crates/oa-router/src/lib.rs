//! Several model servers behind one agent: a chat service that asks whichever can answer.
//!
//! A [`Router`] is made of endpoints, and is what one of them is: a tower service from
//! [`ChatRequest`](oa_chat::ChatRequest) to [`AnswerStream`](oa_chat::AnswerStream), which
//! an agent's `chat_service` accepts.
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
//! # Who needs this crate alone
//!
//! Nobody who takes the facade: there it is the module `router`, behind the feature of that name.
//! [`Breaker`] is for those who have several of something else.
//!
//! # Who is asked
//!
//! A request goes to a server that is healthy, has room, and has not failed it yet:
//!
//! 1. the one that answered its conversation last, if that is remembered
//!    ([`sticky`](RouterBuilder::sticky)). If it is busy, the request waits for it for
//!    [`patience`](RouterBuilder::patience); if it is unhealthy, the request moves at once;
//! 2. else whichever the [`Policy`] says.
//!
//! If none has room it waits in one line for all, in the order of arrival; a place that comes free goes at
//! once to the first who can use it. A place is held from the sending of a request until its answer has
//! ended or was dropped.
//!
//! # When another one is asked
//!
//! | what a server does | the next one is asked | counts against its health |
//! | --- | --- | --- |
//! | no connection, a broken one, another protocol, silence beyond `first_token_timeout` | yes | yes |
//! | 408, 409, 425, 429, 5xx, an error reported in the stream, an empty success | yes | yes |
//! | 401, 402: its key is refused, whoever asks | yes | yes |
//! | 403, 404, redirects, a 500 about a template: it has no such model, or cannot do this | yes | no |
//! | other 4xx, a context overflow, limits, `total_timeout`: the request's own | no | no |
//! | anything after the first piece of the answer was handed out | no | yes, unless the request's own |
//!
//! That takes no time but that of the servers: there is no pause. The agent's
//! [`RetryConfig`](oa_chat::RetryConfig) is a layer around the whole: when all have failed, it is what
//! waits and asks again, and it is told when the first server can be asked again.
//!
//! # Health
//!
//! Each server has a circuit, see [`Breaker`] for its rules and [`BreakerConfig`] for its times. With all
//! circuits open nobody is asked, and the error says so.
//!
//! # Limits
//!
//! | what | default | set by |
//! | --- | --- | --- |
//! | servers | 64 at most | fixed |
//! | answers in progress at a server | no bound | [`cap`](RouterBuilder::cap), [`Server::cap`] |
//! | requests that wait | 256 | [`queue`](RouterBuilder::queue) |
//! | how long one waits | 300 seconds | [`longest_wait`](RouterBuilder::longest_wait) |
//! | conversations remembered | 4,096, none for [`Policy::Failover`] | [`sticky`](RouterBuilder::sticky) |
//! | how long a conversation waits for its server | 2 seconds | [`patience`](RouterBuilder::patience) |
//! | failures in a row that open a circuit | 3 | [`BreakerConfig::failures`] |
//! | how long it is open, the first time and at most | 1 and 30 seconds | [`BreakerConfig::open_for`], [`BreakerConfig::max_open`] |
//! | a `Retry-After` that is honoured | 600 seconds | [`BreakerConfig::max_retry_after`] |
//! | requests at once after a trial | 2, and one more for each answer that begins, up to 32 | fixed |
//! | words about one server in an error, and how many are named | 120 characters, 8 | fixed |
//!
//! # Why the balance stands where it stands
//!
//! [`Policy::LeastBusy`] is tower's [`balance::p2c`](tower::balance::p2c) over tower's
//! [`Load`](tower::load::Load); the load is the answers in progress, because one is not over when its head is
//! there. A `Balance` cannot be cloned and does not look at requests. The usual way to share it is
//! [`tower::buffer`](https://docs.rs/tower/0.5/tower/buffer/index.html): a task that takes requests one
//! after the other. That would be a task of ours that somebody has to
//! own; a request for a busy server at its head would hold up all behind it; an error of one becomes that
//! of all; and neither a conversation's own server nor those that have failed a request can be told to it.
//! So no request goes through the balance. Who has room, who waits and who is healthy stands on one board
//! behind a lock that is held for a few microseconds; where several servers could take a request, the balance
//! is told by its discovery that just these are there, and says which. Waiting is a future: dropping it
//! leaves the line.
//!
//! # Stability
//!
//! Names, defaults and the tables above change only with a line in the changelog. Texts are for people.

mod builder;
mod policy;
mod router;
mod server;
mod status;

mod desk;
mod failures;
mod journey;
mod judge;

mod board;
mod breaker;
mod choice;
mod memory;
mod seat;
mod set;

pub use crate::breaker::{Breaker, BreakerConfig, Health, Outcome, Pass};
pub use crate::builder::RouterBuilder;
pub use crate::policy::Policy;
pub use crate::router::Router;
pub use crate::server::Server;
pub use crate::status::ServerStatus;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
