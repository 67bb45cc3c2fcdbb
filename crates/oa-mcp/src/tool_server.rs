//! An MCP server for your tools.
//!
//! `oa_mcp_data::client` reads messages and `protocol.rs` interprets them, both without I/O; `call.rs` runs calls;
//! `stream.rs` and `http.rs` are the transports.

use std::fmt;
use std::io;
use std::sync::Arc;

use oa_hooks::{Permission, PermissionRequest};
use oa_mcp_data::client::ServerLimits;
use oa_tools::{Registry, State};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::tool_server::call::{Connection, Permit, Runner};
use crate::tool_server::catalog::About;
use crate::tool_server::live::{Live, ToolServerHandle};

mod call;
mod catalog;
#[cfg(feature = "server-http")]
pub(crate) mod http;
pub(crate) mod live;
mod output;
mod protocol;
mod stream;

/// An MCP server for a registry of tools: over standard input and output, over any pair of streams, or (feature
/// `server-http`) as a tower service over streamable HTTP.
///
/// Each call runs in an executor: if a tool panics, fails or times out, the model gets a result that says so, and
/// blocking tools run on separate threads. Progress and log lines of a [`ToolContext`](oa_tools::ToolContext) are sent
/// in order, before the result. A tool may run an agent.
///
/// It supports protocol version 2026-07-28, which has no handshake, and the versions from 2024-11-05 to 2025-11-25.
/// [`handle`](Self::handle) changes the tools while it serves.
///
/// External tools are not offered, because nothing here can provide their results. The limits of exclusive tools and of
/// [`max_parallel`](oa_tools::Tool::max_parallel) apply across all clients.
///
/// ```no_run
/// use oa_mcp::ToolServer;
/// use oa_tools::{Registry, tool};
/// use serde_json::json;
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// // `no_run`, since it reads standard input.
/// let mut tools = Registry::new();
/// tools.add(
///     tool("add", "Adds two numbers")
///         .param("a", "number")
///         .param("b", "number")
///         .build(|args| async move {
///             Ok(json!({ "sum": args["a"].as_f64().unwrap_or(0.0) + args["b"].as_f64().unwrap_or(0.0) }))
///         }),
/// )?;
/// ToolServer::new(tools).name("calculator").serve_stdio().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a server does nothing until it serves"]
pub struct ToolServer {
    live: Arc<Live>,
    about: About,
    state: State,
    permit: Option<Permit>,
    limits: ServerLimits,
}

impl ToolServer {
    /// Creates a server for these tools. Its default name is `open-agent`, its default version that of this crate.
    pub fn new(registry: Registry) -> Self {
        let about = About {
            name: "open-agent".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: None,
        };
        let (state, limits) = (State::new(), ServerLimits::default());
        let live = Arc::new(Live::new(registry));
        Self { live, about, state, permit: None, limits }
    }

    /// Sets the name that clients see.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.about.name = name.into();
        self
    }

    /// Sets the version that clients see.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.about.version = version.into();
        self
    }

    /// Sets instructions on how to use the tools, which clients may pass to the model.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.about.instructions = Some(instructions.into());
        self
    }

    /// Sets the state shared with the tools.
    pub fn state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Sets a callback that decides before each call whether it may run with its input. The request's history is empty,
    /// because the client has the conversation.
    ///
    /// The model gets a denial as the result of the call. A panic or [`Permission::Later`] denies the call. Input from
    /// [`Permission::AllowWith`] must match the tool's schema.
    ///
    /// ```
    /// use oa_hooks::Permission;
    /// use oa_mcp::ToolServer;
    /// use oa_tools::Registry;
    ///
    /// let server = ToolServer::new(Registry::new()).permit(|request| async move {
    ///     match request.category.as_deref() {
    ///         Some("read") => Permission::Allow,
    ///         _ => Permission::deny("this server only reads"),
    ///     }
    /// });
    /// # let _ = server;
    /// ```
    pub fn permit<F, Fut>(mut self, permit: F) -> Self
    where
        F: Fn(PermissionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Permission> + Send + 'static,
    {
        self.permit = Some(Permit::new(permit));
        self
    }

    /// Sets the bounds on what a client can make the server hold.
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves the client on standard input and output until either is closed.
    ///
    /// Standard output is reserved for the protocol: on Unix, anything that tools print while it serves goes to
    /// standard error. At the end of input all calls are canceled, and the function returns within a second. Call it
    /// only once: input that was read ahead is lost. A blocking tool that ignores its cancellation keeps the runtime
    /// from shutting down; if that matters, leave `main` with [`std::process::exit`].
    ///
    /// # Errors
    ///
    /// If standard output is not available or threads cannot be started.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels all calls. The thread that reads input stays until more input arrives.
    pub async fn serve_stdio(self) -> io::Result<()> {
        let runner = Arc::new(self.into_runner());
        stream::over_stdio(Connection::new(&runner)).await
    }

    /// Serves one client over a pair of streams, one message per line, until either is closed.
    ///
    /// At the end of input all calls are canceled, and the function returns within a second.
    ///
    /// ```
    /// use oa_mcp::ToolServer;
    /// use oa_tools::Registry;
    /// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// let (ours, client) = tokio::io::duplex(64 * 1024);
    /// let (input, output) = tokio::io::split(ours);
    /// let serving = tokio::spawn(ToolServer::new(Registry::new()).serve(input, output));
    ///
    /// let (answers, mut requests) = tokio::io::split(client);
    /// requests.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
    /// let answer = BufReader::new(answers).lines().next_line().await?;
    /// assert_eq!(answer.as_deref(), Some(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    /// requests.shutdown().await?;
    /// serving.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels all calls.
    pub async fn serve(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) {
        let runner = Arc::new(self.into_runner());
        stream::over_streams(Connection::new(&runner), input, output).await;
    }

    /// Returns the server as a tower service over streamable HTTP, for any path.
    #[cfg(feature = "server-http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "server-http")))]
    #[must_use]
    pub fn http_service(self) -> http::HttpService {
        http::HttpService::new(self.into_runner())
    }

    /// Returns a handle that changes the tools and sends log lines while the server serves.
    #[must_use]
    pub fn handle(&self) -> ToolServerHandle {
        ToolServerHandle(Arc::clone(&self.live))
    }

    fn into_runner(self) -> Runner {
        Runner::new(self.live, self.about, self.state, self.limits, self.permit)
    }
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer")
            .field("tools", &self.live.registry().1)
            .field("name", &self.about.name)
            .field("version", &self.about.version)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
