use std::time::Duration;

/// The limits of a server. Whatever a client sends or leaves behind is bounded by them.
///
/// Exceeding one is an answer with status 408, 413, 422, 429 or 503 that says which.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServeLimits {
    /// Bytes of a request's body; 4 MiB by default.
    pub body_bytes: usize,
    /// Connections of [`AgentServer::serve`](crate::AgentServer::serve) at once, of which each open event stream is one;
    /// 1,024 by default. Others wait.
    pub connections: usize,
    /// The time in which the head of a request must have arrived, and then its body; 30 seconds by default. The head is
    /// checked by [`AgentServer::serve`](crate::AgentServer::serve): who nests the router has a server of their own.
    pub request: Duration,
    /// Messages in a request that brings its own history; 2,000 by default.
    pub messages: usize,
    /// Parts of one message in such a request; 1,000 by default.
    pub parts: usize,
    /// Tools that a request declares; 128 by default.
    pub tools: usize,
    /// Bytes of the events that are kept for readers of one conversation; 8 MiB by default. The oldest are dropped.
    pub kept_bytes: usize,
    /// Events that are kept for readers of one conversation; 20,000 by default. Pieces of one text count as one.
    pub kept_events: usize,
    /// Conversations in memory; 1,024 by default. Idle ones make room for others.
    pub conversations: usize,
    /// Conversations that are stored in memory, if the server has no [store](crate::AgentServer::store); 10,000 by
    /// default. The oldest are deleted.
    pub stored: usize,
    /// Runs at once; 256 by default.
    pub runs: usize,
    /// Open event streams of one conversation; 32 by default.
    pub viewers: usize,
    /// The time that a run goes on while nobody reads its events; 10 minutes by default.
    pub unread_run: Duration,
    /// The time that runs have once the server shuts down; 10 seconds by default. Then they are interrupted and saved.
    pub shutdown: Duration,
    /// The time between comments in an event stream that has nothing else to send; 5 seconds by default.
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
