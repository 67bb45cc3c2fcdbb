use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_tools::{LogLevel, Registry};
use tokio::sync::watch;

use oa_mcp_data::client::{Journal, News};

/// The current tools, and the notifications for all clients.
pub(crate) struct Live {
    state: Mutex<State>,
    /// The number of the latest notification.
    news: watch::Sender<u64>,
}

struct State {
    registry: Registry,
    /// Incremented with each new registry.
    revision: u64,
    journal: Journal,
}

impl Live {
    pub(crate) fn new(registry: Registry) -> Self {
        let state = State { registry, revision: 0, journal: Journal::default() };
        Self { state: Mutex::new(state), news: watch::Sender::new(0) }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.state().revision
    }

    pub(crate) fn registry(&self) -> (u64, Registry) {
        let state = self.state();
        (state.revision, state.registry.clone())
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    pub(crate) fn last(&self) -> u64 {
        self.state().journal.last()
    }

    pub(crate) fn after(&self, seen: u64) -> Vec<(u64, News)> {
        self.state().journal.after(seen)
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        let last = {
            let mut state = self.state();
            change(&mut state);
            state.journal.last()
        };
        // Outside of the lock, so the numbers of two changes may arrive in the wrong order.
        self.news.send_if_modified(|news| {
            let is_newer = last > *news;
            *news = last.max(*news);
            is_newer
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle to a running [`ToolServer`](crate::ToolServer), which replaces its tools and sends log lines to all
/// clients.
///
/// Clones of a handle, and handles of clones of a server, share their state.
///
/// ```
/// use oa_mcp::ToolServer;
/// use oa_tools::{Registry, tool};
/// use serde_json::json;
///
/// let server = ToolServer::new(Registry::new());
/// let handle = server.handle();
/// // Serve, and later:
/// let ping = tool("ping", "Says pong").build(|_| async { Ok(json!("pong")) });
/// handle.set_tools(Registry::from_tools([ping])?);
/// # Ok::<(), oa_tools::Error>(())
/// ```
#[derive(Clone)]
pub struct ToolServerHandle(pub(crate) Arc<Live>);

impl ToolServerHandle {
    /// Replaces the tools and notifies every client that listens. Running calls continue with the tool that they
    /// started with.
    pub fn set_tools(&self, registry: Registry) {
        self.0.tell(|state| {
            state.registry = registry;
            state.revision += 1;
            state.journal.tools_changed();
        });
    }

    /// Sends a log line to all clients that sent `initialize` and whose log level includes it. Clients of version
    /// 2026-07-28 get only the log lines of their calls.
    ///
    /// A client that reconnects gets at most the last 256 lines and 256 KiB.
    pub fn log(&self, level: LogLevel, message: impl fmt::Display) {
        let message = message.to_string();
        self.0.tell(|state| state.journal.log(level, &message));
    }
}

impl fmt::Debug for ToolServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServerHandle").field("tools", &self.0.registry().1).finish()
    }
}
