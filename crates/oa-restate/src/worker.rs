use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use oa_client::AgentOptions;
use restate_sdk::endpoint::{Endpoint, HandlerOptions, ServiceOptions};
use restate_sdk::http_server::HttpServer;
use restate_sdk::service::IntoServiceDefinition;
use tokio::net::{TcpListener, TcpSocket};

use crate::agents::{Inner, Shared};
use crate::batch::AgentBatch;
use crate::calls::AgentTool;
use crate::control::{AgentInterrupt, Control};
use crate::event::EventSink;
use crate::inbox::AgentInbox;
use crate::limits::Limits;
use crate::name;
use crate::object::Agent;

/// A process that performs the steps of agents for the engine.
#[derive(Clone)]
#[must_use = "a worker does nothing until it serves"]
pub struct Worker {
    main: AgentOptions,
    named: BTreeMap<String, AgentOptions>,
    limits: Limits,
    sink: Option<Arc<dyn EventSink>>,
    ingress: Option<String>,
}

impl Worker {
    /// Creates a worker of this agent.
    pub fn new(agent: AgentOptions) -> Self {
        let limits = Limits::default();
        Self { main: agent, named: BTreeMap::new(), limits, sink: None, ingress: None }
    }

    /// Adds another agent.
    pub fn agent(mut self, name: impl Into<String>, agent: AgentOptions) -> Self {
        self.named.insert(name.into(), agent);
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits.held();
        self
    }

    /// Publishes events while they happen.
    pub fn events(mut self, sink: impl EventSink + 'static) -> Self {
        self.sink = Some(Arc::new(sink));
        self
    }

    /// Sets the address of the engine's ingress.
    pub fn ingress(mut self, url: &str) -> Self {
        self.ingress = Some(url.to_owned());
        self
    }

    /// Returns the digest.
    #[must_use]
    pub fn digest(&self) -> String {
        let named = self.named.iter().map(|(name, options)| (&**name, options));
        name::digest([("", &self.main)].into_iter().chain(named))
    }

    /// Binds a listener that several workers on this machine can share.
    pub fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_nodelay(true)?;
        socket.set_reuseaddr(true)?;
        #[cfg(unix)]
        socket.set_reuseport(true)?;
        socket.bind(address)?;
        socket.listen(1024)
    }

    /// Serves until `end` completes.
    pub async fn serve_until(self, listener: TcpListener, end: impl Future<Output = ()>) {
        HttpServer::new(self.endpoint()).serve_with_cancel(listener, end).await;
    }

    fn endpoint(self) -> Endpoint {
        let digest = self.digest();
        let Self { main, named, limits, sink, ingress } = self;
        let control = ingress.as_deref().map(Control::new);
        let shared = Shared::new(Inner { main, named, limits, sink, control });
        let options = || {
            ServiceOptions::new()
                .abort_timeout(limits.longest_step)
                .metadata("open-agent.digest", &*digest)
        };
        let _ = HandlerOptions::new();
        Endpoint::builder()
            .bind(Agent(shared.clone()).into_service_definition().options(options()))
            .bind(AgentTool(shared).into_service_definition().options(options()))
            .bind(AgentInbox)
            .bind(AgentInterrupt)
            .bind(AgentBatch)
            .build()
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("main", &self.main)
            .field("named", &self.named)
            .field("limits", &self.limits)
            .field("ingress", &self.ingress)
            .finish_non_exhaustive()
    }
}
