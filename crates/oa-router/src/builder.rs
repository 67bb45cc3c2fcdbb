use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use oa_chat::{Error, Result, Timeout};

use crate::breaker::{Breaker, BreakerConfig};
use crate::dispatcher::Dispatcher;
use crate::policy::Policy;
use crate::router::Router;
use crate::scheduler::{Scheduler, Settings};
use crate::server::Server;
use crate::server_set::MAX_SERVERS;
use crate::shared::Shared;
use crate::slots::ServerSlots;

/// Practically forever, but safe to add to any time.
const FOREVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// A builder for [`Router`]. Mistakes are reported by [`build`](Self::build).
#[derive(Clone, Debug, Default)]
#[must_use = "builders do nothing unless built"]
pub struct RouterBuilder {
    servers: Vec<Server>,
    policy: Policy,
    cap: Option<usize>,
    queue: Option<usize>,
    longest_wait: Option<Timeout>,
    sticky: Option<Sticky>,
    patience: Option<Timeout>,
    breaker: BreakerConfig,
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Sticky {
    Never,
    To(usize),
}

impl Router {
    /// Returns a builder without servers.
    pub fn builder() -> RouterBuilder {
        RouterBuilder::default()
    }
}

impl RouterBuilder {
    /// Adds a server; at most 64. With [`Policy::Failover`] the order is the priority.
    pub fn endpoint(mut self, server: impl Into<Server>) -> Self {
        self.servers.push(server.into());
        self
    }

    /// Adds several servers.
    pub fn endpoints<I>(mut self, servers: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Server>,
    {
        self.servers.extend(servers.into_iter().map(Into::into));
        self
    }

    /// Sets the policy for choosing servers; [`Policy::Failover`] by default.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the default cap: the largest number of answers in progress at a server without its own
    /// [cap](Server::cap), at least 1. A request occupies a slot from when it is sent until its answer ends or
    /// is dropped. Unlimited by default. A default that every server overrides is an error at
    /// [`build`](Self::build).
    pub fn cap(mut self, answers: usize) -> Self {
        self.cap = Some(answers);
        self
    }

    /// Sets the largest number of requests waiting for a server with room; beyond it, requests fail with a
    /// retryable error of kind `Unavailable`. Requests are served in order of arrival, each by the first server
    /// that it can use. 256 by default; with 0 no request waits.
    pub fn queue(mut self, requests: usize) -> Self {
        self.queue = Some(requests);
        self
    }

    /// Sets the longest time that a request may wait for a server; after that, the request fails with an error of kind
    /// `Unavailable`. 300 seconds by default, enough for most models to load.
    ///
    /// The error is retryable, and each of the agent's retries may wait just as long again, at the end of the queue. To
    /// limit the whole wait, set the agent's `total_timeout`.
    pub fn longest_wait(mut self, wait: impl Into<Timeout>) -> Self {
        self.longest_wait = Some(wait.into());
        self
    }

    /// Sends a conversation to the server that answered it last and has its prompt cached, while that server is
    /// healthy. Remembers this many conversations, forgetting the least recently used. 4,096 by default with
    /// [`Policy::LeastBusy`]. Off by default with [`Policy::Failover`], so that all conversations return to the
    /// first server when it recovers. Requests without a conversation, whose
    /// [number](oa_chat::ChatRequest::conversation) is 0, go to any server.
    pub fn sticky(mut self, conversations: usize) -> Self {
        self.sticky = Some(Sticky::To(conversations));
        self
    }

    /// Lets the policy choose a server for each request of a conversation.
    pub fn not_sticky(mut self) -> Self {
        self.sticky = Some(Sticky::Never);
        self
    }

    /// Sets how long a conversation waits for a slot at its own server while other servers have room. After that, it
    /// moves to another server and stays there. The default is 2 seconds, about the time it takes to process a prompt
    /// of a few thousand tokens again. With 0, it does not wait.
    pub fn patience(mut self, wait: impl Into<Timeout>) -> Self {
        self.patience = Some(wait.into());
        self
    }

    /// Sets the circuit breaker settings.
    pub fn breaker(mut self, config: BreakerConfig) -> Self {
        self.breaker = config;
        self
    }

    /// Seeds the random choices of [`Policy::LeastBusy`], for reproducible simulations. Random by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Validates the settings and builds the router.
    ///
    /// # Errors
    ///
    /// `Config` for settings that are invalid or have no effect: no server or more than 64, duplicate names, a cap
    /// of 0, a default cap that every server overrides, stickiness to 0 conversations, patience without stickiness
    /// or without a queue, a longest wait of 0 or without a queue, a seed for a policy without random choices, an
    /// invalid breaker.
    pub fn build(self) -> Result<Router> {
        if let Some(fault) = self.fault() {
            return Err(Error::config(fault));
        }
        let default = (self.policy == Policy::LeastBusy).then_some(4_096);
        let settings = Settings {
            policy: self.policy,
            queue: self.queue.unwrap_or(256),
            longest_wait: at_most(self.longest_wait, Duration::from_secs(300)),
            sticky: match self.sticky {
                None => default,
                Some(Sticky::Never) => None,
                Some(Sticky::To(conversations)) => Some(conversations),
            },
            patience: at_most(self.patience, Duration::from_secs(2)),
        };
        let slots = |server: &Server| {
            ServerSlots::new(Breaker::new(self.breaker.clone()), server.cap.or(self.cap))
        };
        let servers = self.servers.iter().map(slots).collect();
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(()));
        let names = names(&self.servers);
        let services = self.servers.into_iter().map(|server| server.service).collect();
        let dispatcher = Arc::new(Dispatcher::new(Scheduler::new(settings, servers, seed)));
        Ok(Router(Arc::new(Shared { dispatcher, services, names })))
    }

    /// Returns the first mistake, if any.
    fn fault(&self) -> Option<String> {
        let servers = &self.servers;
        let named = |at: usize| servers[at].name.as_ref();
        let twice = (0..servers.len())
            .find(|at| named(*at).is_some() && (0..*at).any(|other| named(other) == named(*at)));
        let sticks = match self.sticky {
            None => self.policy == Policy::LeastBusy,
            Some(sticky) => matches!(sticky, Sticky::To(_)),
        };
        let has_queue = self.queue != Some(0);
        let faults = [
            (servers.is_empty(), "a router needs at least one server: add one with endpoint"),
            (servers.len() > MAX_SERVERS, "a router can have at most 64 servers"),
            (
                self.cap == Some(0) || servers.iter().any(|server| server.cap == Some(0)),
                "cap must be at least 1",
            ),
            (
                self.cap.is_some() && servers.iter().all(|server| server.cap.is_some()),
                "cap has no effect: every server has its own",
            ),
            (
                matches!(self.sticky, Some(Sticky::To(0))),
                "sticky must be at least 1: use not_sticky to disable it",
            ),
            (
                self.patience.is_some() && !sticks,
                "patience has no effect without sticky conversations",
            ),
            (self.patience.is_some() && !has_queue, "patience has no effect without a queue"),
            (
                self.longest_wait.is_some() && !has_queue,
                "longest_wait has no effect without a queue",
            ),
            (
                self.longest_wait.and_then(Timeout::duration) == Some(Duration::ZERO),
                "longest_wait must be longer than 0: use None to wait forever, or queue(0) to not wait",
            ),
            (
                self.seed.is_some() && self.policy != Policy::LeastBusy,
                "seed has no effect with this policy",
            ),
        ];
        let fault = faults.into_iter().find_map(|(is_wrong, fault)| is_wrong.then_some(fault));
        let fault = fault.or_else(|| self.breaker.fault()).map(str::to_owned);
        fault.or_else(|| Some(format!("two servers are named {}", named(twice?)?)))
    }
}

/// Returns the time to wait, with `FOREVER` for no limit.
fn at_most(wait: Option<Timeout>, default: Duration) -> Duration {
    wait.map_or(Some(default), Timeout::duration).map_or(FOREVER, |wait| wait.min(FOREVER))
}

/// Returns the servers' names, numbering duplicates.
fn names(servers: &[Server]) -> Vec<String> {
    let label = |at: usize| servers[at].label();
    let name = |at: usize| match (0..at).filter(|other| label(*other) == label(at)).count() {
        0 => label(at).to_owned(),
        before => format!("{} #{}", label(at), before + 1),
    };
    (0..servers.len()).map(name).collect()
}
