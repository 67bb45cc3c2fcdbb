use std::fmt;

use oa_chat::{AnswerStream, AnyChat, ChatRequest, Endpoint};
use tower::Service;

/// A server of a [`Router`](crate::Router): an endpoint with an optional name and cap. An [`Endpoint`] is
/// accepted wherever a `Server` is.
///
/// ```
/// use oa_chat::Endpoint;
/// use oa_router::{Router, Server};
///
/// # fn main() -> oa_chat::Result<()> {
/// let gpu = Endpoint::builder().base_url("http://gpu:8000/v1").build()?;
/// let laptop = Endpoint::builder().base_url("http://localhost:11434/v1").build()?;
/// let router = Router::builder().endpoint(Server::new(gpu).name("gpu").cap(8)).endpoint(laptop).build()?;
/// assert_eq!(router.status()[1].name, "http://localhost:11434/v1");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a server does nothing until it is added to a router"]
pub struct Server {
    pub(crate) service: AnyChat,
    pub(crate) name: Option<String>,
    pub(crate) address: String,
    pub(crate) cap: Option<usize>,
}

impl Server {
    /// Creates a server from an endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        // Some servers want the key in their address, and it is shown in errors.
        let address = endpoint.secrets().mask(endpoint.base_url()).into_owned();
        Self { service: AnyChat::new(endpoint), name: None, address, cap: None }
    }

    /// Creates a server from any chat service: an endpoint with layers around it, or another router, such as a
    /// pool in front of a server of last resort.
    pub fn service<S>(name: impl Into<String>, service: S) -> Self
    where
        S: Service<ChatRequest, Response = AnswerStream> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        S::Future: Send,
    {
        let name = Some(name.into());
        Self { service: AnyChat::new(service), name, address: String::new(), cap: None }
    }

    /// Sets the name shown in its status and in errors. The default is its address.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the largest number of answers in progress at this server, at least 1. The default is the
    /// [router's](crate::RouterBuilder::cap) cap.
    pub fn cap(mut self, answers: usize) -> Self {
        self.cap = Some(answers);
        self
    }

    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.address)
    }
}

impl From<Endpoint> for Server {
    fn from(endpoint: Endpoint) -> Self {
        Self::new(endpoint)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.label())
            .field("cap", &self.cap)
            .finish_non_exhaustive()
    }
}
