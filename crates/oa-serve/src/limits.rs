use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// The limits of a server. They bound everything that clients send and everything that is kept for them.
///
/// A request that exceeds a limit gets status 400, 408, 413 or 503 and a message that names the limit.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServeLimits {
    /// Maximum size of a request body in bytes; 4 MiB by default. In addition, a body can have 250,000 JSON values and
    /// names, which take far more memory than their text.
    pub body_bytes: usize,
    /// Maximum number of concurrent connections of [`AgentServer::serve`](crate::AgentServer::serve), including open
    /// event streams; 1,024 by default. Further connections wait.
    pub connections: usize,
    /// Time limit for receiving the head of a request, and again for its body; 30 seconds by default. The limit for the
    /// head applies only to [`AgentServer::serve`](crate::AgentServer::serve), not to a nested router.
    pub request: Duration,
    /// Maximum number of messages in a request that contains its history; 2,000 by default.
    pub messages: usize,
    /// Maximum number of parts of one message in such a request; 1,000 by default.
    pub parts: usize,
    /// Maximum number of tools that a request declares; 128 by default.
    pub tools: usize,
    /// Maximum size of the events kept for viewers of one conversation, in bytes as held in memory; 8 MiB by default.
    /// The oldest are dropped.
    pub kept_bytes: usize,
    /// Maximum number of events kept for viewers of one conversation; 20,000 by default. Pieces of one text count as
    /// one.
    pub kept_events: usize,
    /// Maximum number of conversations in memory; 1,024 by default. Idle ones are evicted once they are saved.
    pub conversations: usize,
    /// Maximum number of conversations kept by a server without a [store](crate::AgentServer::session_store); 10,000 by
    /// default. The oldest are deleted.
    pub stored: usize,
    /// Maximum number of concurrent runs; 256 by default.
    pub runs: usize,
    /// Maximum number of open event streams of one conversation; 32 by default.
    pub viewers: usize,
    /// Time for which a run continues without viewers; 10 minutes by default.
    pub unread_run: Duration,
    /// Time that runs have to finish during shutdown; 10 seconds by default. Then they are interrupted and saved.
    pub shutdown: Duration,
    /// Time between keep-alive comments in an idle event stream; 5 seconds by default. Zero sends none. OpenAI clients
    /// get empty chunks instead, because some give up on a stream without chunks. The server's page treats a stream
    /// that is silent for 45 seconds as a lost connection.
    pub keep_alive: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            connections: 1_024,
            request: Duration::from_secs(30),
            messages: 2_000,
            parts: 1_000,
            tools: 128,
            kept_bytes: 8 << 20,
            kept_events: 20_000,
            conversations: 1_024,
            stored: 10_000,
            runs: 256,
            viewers: 32,
            unread_run: Duration::from_secs(600),
            shutdown: Duration::from_secs(10),
            keep_alive: Duration::from_secs(5),
        }
    }
}

/// The place of a run among those in progress.
#[derive(Debug)]
pub(crate) struct Permit(Arc<watch::Sender<usize>>);

impl Permit {
    /// Returns a place, unless there are `most` runs.
    pub(crate) fn take(runs: &Arc<watch::Sender<usize>>, most: usize) -> Option<Self> {
        let has_room = runs.send_if_modified(|runs| {
            let has_room = *runs < most;
            *runs += usize::from(has_room);
            has_room
        });
        has_room.then(|| Self(Arc::clone(runs)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.send_modify(|runs| *runs -= 1);
    }
}
