use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use oa_mcp_data::{NameOwners, ToolDescription};
use oa_tools::{Tool, ToolSource};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::connection::Connection;
use crate::error::{Error, ErrorKind};
use crate::server::McpServer;
use crate::tool::McpTool;

/// A list of servers to connect to.
///
/// ```
/// use oa_mcp::{McpServer, Servers};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), oa_mcp::Error> {
/// let servers = Servers::new()
///     .add(McpServer::stdio("missing", "no-such-program"));
/// let connected = servers.connect().await?;
/// assert!(connected.tools().is_empty());
/// assert_eq!(connected.failures()[0].server(), "missing"); // the agent works without it
/// connected.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "servers do nothing until they are connected"]
pub struct Servers(pub(crate) Vec<McpServer>);

impl Servers {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server.
    #[expect(clippy::should_implement_trait, reason = "a list is added to, not summed up")]
    pub fn add(mut self, server: McpServer) -> Self {
        self.0.push(server);
        self
    }

    /// Returns the servers in the order in which they were added.
    pub fn servers(&self) -> &[McpServer] {
        &self.0
    }

    /// Changes each server, for example to set limits that a configuration file cannot express.
    pub fn map(self, change: impl FnMut(McpServer) -> McpServer) -> Self {
        Self(self.0.into_iter().map(change).collect())
    }

    /// Connects to all servers at once, and waits until each has answered or failed.
    ///
    /// # Errors
    ///
    /// `Config` if two servers, or two tools as the model sees them, have the same name; the error of a
    /// [required](McpServer::required) server. Other failures are in [`Connected::failures`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connections.
    pub async fn connect(self) -> Result<Connected, Error> {
        let mut seen = HashSet::new();
        if let Some(twice) = self.0.iter().find(|server| !seen.insert(server.name.clone())) {
            return Err(Error::config(format!("two servers have the name {}", twice.name)));
        }
        let prefixes = self.0.iter().map(|server| (server.name_prefix(), &*server.name));
        let (count, owners) = (self.0.len(), NameOwners::new(prefixes));
        let (mut opening, mut servers) = (JoinSet::new(), HashMap::new());
        for (place, server) in self.0.into_iter().enumerate() {
            let (name, is_required) = (server.name.clone(), server.is_required);
            let task = opening.spawn(Connection::open(server)).id();
            servers.insert(task, (place, name, is_required));
        }
        let mut opened: Vec<Option<Arc<Connection>>> = vec![None; count];
        let mut failures = Vec::new();
        while let Some(joined) = opening.join_next_with_id().await {
            let (task, connection) = match joined {
                Ok((task, connection)) => (task, Some(connection)),
                // It panicked. Its server must not vanish without an error.
                Err(error) => (error.id(), None),
            };
            let Some((place, name, is_required)) = servers.remove(&task) else { continue };
            let connection = connection.unwrap_or_else(|| {
                let why = "the task that connects panicked";
                Err(Error::new(ErrorKind::Connect, why).of(&name))
            });
            match connection {
                Ok(connection) => opened[place] = Some(connection),
                Err(error) if is_required => return Err(error),
                Err(error) => failures.push((place, Failure { server: name, error })),
            }
        }
        failures.sort_by_key(|(place, _)| *place);
        let connected = Connected::new(
            opened.into_iter().flatten().collect(),
            failures.into_iter().map(|(_, failure)| failure).collect(),
            owners,
        );
        connected.check_names()?;
        Ok(connected)
    }
}

/// A server that could not be connected to.
#[derive(Clone, Debug)]
pub struct Failure {
    server: String,
    error: Error,
}

impl Failure {
    /// Returns the server's name.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the error. Its message begins with the server's name; for a program it ends with the last error output,
    /// with secrets masked.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }
}

/// A set of connected servers. Their tools work while this value or any of the tools exists, or until
/// [`close`](Self::close).
#[must_use = "dropping it and its tools closes the connections"]
pub struct Connected {
    connections: Vec<Arc<Connection>>,
    failures: Vec<Failure>,
    owners: NameOwners,
    changes: Arc<Notify>,
    followers: Vec<AbortHandle>,
}

impl Connected {
    fn new(connections: Vec<Arc<Connection>>, failures: Vec<Failure>, owners: NameOwners) -> Self {
        let changes = Arc::new(Notify::new());
        let follow = |connection: &Arc<Connection>| {
            let list = connection.subscribe();
            tokio::spawn(follow(list, Arc::clone(&changes))).abort_handle()
        };
        let followers = connections.iter().map(follow).collect();
        Self { connections, failures, owners, changes, followers }
    }

    /// Returns the tools, ordered by server as added, then by name.
    ///
    /// An agent that gets these keeps them. To follow changes, use [`source`](Self::source).
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.source().tools()
    }

    /// Returns a source of the current tools, for `AgentOptionsBuilder::tool_source` of `oa-client`: the agent reads
    /// the current lists before each request.
    ///
    /// Like a tool, it keeps the connections open.
    #[must_use]
    pub fn source(&self) -> McpTools {
        McpTools { connections: self.connections.clone(), owners: self.owners.clone() }
    }

    /// Returns the servers that could not be connected to.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Returns the connection to a server.
    #[must_use]
    pub fn connection(&self, name: &str) -> Option<&Connection> {
        self.connections
            .iter()
            .map(|connection| &**connection)
            .find(|connection| connection.name() == name)
    }

    /// Returns the connections, in the order in which their servers were added.
    #[must_use]
    pub fn connections(&self) -> impl ExactSizeIterator<Item = &Connection> {
        self.connections.iter().map(|connection| &**connection)
    }

    /// Waits until a server's list of tools has changed since this was last awaited.
    ///
    /// After a change notification, the list is read again once notifications have paused for a quarter of a second, or
    /// after five seconds. An equal list is not a change.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a change between two calls completes the next one.
    pub async fn changed(&self) {
        self.changes.notified().await;
    }

    /// Closes all connections and waits until every program has ended: slightly more than twice
    /// [`close_time`](crate::Limits::close_time) at most.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, background tasks finish the work.
    pub async fn close(self) {
        let mut closing = JoinSet::new();
        for connection in self.connections.iter().map(Arc::clone) {
            closing.spawn(async move { connection.close().await });
        }
        while closing.join_next().await.is_some() {}
    }

    fn check_names(&self) -> Result<(), Error> {
        let mut seen: HashMap<String, (&str, String)> = HashMap::new();
        for connection in &self.connections {
            for tool in connection.tools().iter() {
                let owner = (connection.server().name(), tool.raw_name.clone());
                if let Some((server, raw_name)) = seen.insert(tool.name.clone(), owner) {
                    let (name, other) = (&tool.name, connection.server().name());
                    let message = format!(
                        "two tools have the name {name}: {raw_name} of {server} and {} of {other}",
                        tool.raw_name
                    );
                    return Err(Error::config(connection.secrets().excerpt(&message, 300)));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.followers.iter().for_each(AbortHandle::abort);
    }
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected")
            .field("connections", &self.connections)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

/// The current tools of all servers. See [`Connected::source`].
#[derive(Clone)]
pub struct McpTools {
    connections: Vec<Arc<Connection>>,
    owners: NameOwners,
}

impl ToolSource for McpTools {
    fn revision(&self) -> u64 {
        self.connections.iter().map(|connection| connection.revision()).sum()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let (mut taken, mut tools) = (HashSet::new(), Vec::new());
        for connection in &self.connections {
            for tool in connection.tools().iter() {
                let name = &tool.name;
                match self.owners.check(connection.server().name_prefix(), name) {
                    // A changed list may bring the name of another server. Of equal prefixes, the first server keeps it.
                    Ok(()) if taken.insert(name.clone()) => {
                        let (description, connection) = (Arc::clone(tool), Arc::clone(connection));
                        tools.push(Arc::new(McpTool { description, connection }) as Arc<dyn Tool>);
                    }
                    Ok(()) => {}
                    Err(why) => {
                        let warning = format!("the tool {name} is left out: {why}");
                        connection.keep_warnings(vec![warning]);
                    }
                }
            }
        }
        tools
    }
}

impl fmt::Debug for McpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpTools").field("connections", &self.connections).finish_non_exhaustive()
    }
}

async fn follow(mut list: watch::Receiver<Arc<[Arc<ToolDescription>]>>, changes: Arc<Notify>) {
    while list.changed().await.is_ok() {
        changes.notify_one();
    }
}
