//! The wrappers of chat services and tools, over the instruments of one meter.

use std::fmt;

use oa_chat::Endpoint;
use oa_tools::Tool;
use opentelemetry::global;
use opentelemetry::metrics::Meter;
use tower::Layer;

use crate::agent::MeteredAgent;
use crate::chat::MeteredChat;
use crate::recorder::Recorder;
use crate::tool::MeteredTool;

/// The instruments of one meter, and the wrappers that record into them. Clones share the instruments.
///
/// It is a tower layer for chat services; [`endpoint`](Self::endpoint) and [`tool`](Self::tool) wrap a server and a
/// tool. Only numbers and the [listed attributes](crate#attributes) are recorded.
///
/// ```
/// use oa_chat::Endpoint;
/// use oa_client::AgentOptions;
/// use oa_metrics::Metrics;
/// use oa_tools::tool;
/// use serde_json::json;
///
/// # fn main() -> oa_client::Result<()> {
/// let metrics = Metrics::global(); // after the program has set its meter provider
/// let server = Endpoint::builder().base_url("http://localhost:11434/v1").build()?;
/// let clock = tool("clock", "Returns the time").build(|_| async { Ok(json!("noon")) });
/// let options = AgentOptions::builder()
///     .model("qwen3:8b")
///     .chat_service(metrics.endpoint(server))
///     .tool(metrics.tool(clock))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Metrics(Recorder);

impl Metrics {
    /// Creates the instruments in a meter.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        Self(Recorder::new(meter))
    }

    /// Creates the instruments in the meter `open-agent` of the global meter provider.
    ///
    /// Set the provider first: instruments created before that never record anything.
    #[must_use]
    pub fn global() -> Self {
        Self::new(&global::meter("open-agent"))
    }

    /// Wraps a server. Its provider is recorded, and its keys are masked if the server repeats one.
    #[must_use]
    pub fn endpoint(&self, endpoint: Endpoint) -> MeteredChat<Endpoint> {
        MeteredChat::of_endpoint(endpoint, self.0.clone())
    }

    /// Returns a recorder for the turns of an agent, without the agent's name and model.
    ///
    /// ```
    /// # use oa_client::{AgentOptions, Client};
    /// # use oa_testkit::{MemoryServer, Reply};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oa_client::Result<()> {
    /// # let model = MemoryServer::new(Reply::text("Hello."));
    /// # let options = AgentOptions::builder().model("qwen3:8b").transport(model).build()?;
    /// # let mut client = Client::new(options)?;
    /// let metrics = oa_metrics::Metrics::global();
    /// let agent = metrics.agent().name("Calculator").model("qwen3:8b");
    /// let reply = agent.turn(client.ask("What is 25 + 17?")).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn agent(&self) -> MeteredAgent {
        MeteredAgent::new(self.0.clone())
    }

    /// Wraps a tool to record each of its runs.
    #[must_use]
    pub fn tool<T: Tool>(&self, tool: T) -> MeteredTool<T> {
        MeteredTool::new(tool, self.0.clone())
    }
}

impl<S> Layer<S> for Metrics {
    type Service = MeteredChat<S>;

    fn layer(&self, service: S) -> MeteredChat<S> {
        MeteredChat::new(service, self.0.clone())
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
