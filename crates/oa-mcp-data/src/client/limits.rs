use std::time::Duration;

/// Bounds on the memory and time that a client can make a `ToolServer` of `oa-mcp` use.
///
/// ```
/// use oa_mcp_data::client::ServerLimits;
///
/// let mut limits = ServerLimits::default();
/// limits.calls = 8;
/// assert_eq!(limits.body_bytes, 4 * 1024 * 1024);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerLimits {
    /// The longest line on standard input in bytes: 16 MiB. A longer one is skipped and answered with an error.
    pub message_bytes: usize,
    /// The longest body of a request over HTTP in bytes: 4 MiB. A longer one is answered with status 413.
    pub body_bytes: usize,
    /// The number of JSON values in one message: 250,000. A message with more is answered with an error.
    pub message_values: usize,
    /// The number of concurrent calls of one client: 256. The next one is answered with an error. Over HTTP, all
    /// clients of version 2026-07-28 count as one.
    pub calls: usize,
    /// The number of open subscriptions of one client of version 2026-07-28: 256. The next one ends the oldest. Clients
    /// are counted as for `calls`.
    pub subscriptions: usize,
    /// The memory for the arguments of a client's running calls in bytes: 64 MiB. A call that needs more is answered
    /// with an error. Clients are counted as for `calls`.
    pub call_bytes: usize,
    /// The timeout of a call whose tool has no timeout: 10 minutes; `None` for no limit.
    pub call_time: Option<Duration>,
    /// The largest result of a call in bytes: 16 MiB, images included. A larger one becomes an error. Once the answers
    /// to a batch are larger without those of its calls, its further requests get errors.
    pub result_bytes: usize,
    /// The time that a client may leave an answer unread while others are queued behind it: 30 seconds. Then the
    /// connection ends.
    pub write_time: Duration,
    /// The number of sessions over HTTP: 256. A new one ends the one that has been idle for longest, and is refused
    /// with status 503 if none is idle.
    pub sessions: usize,
    /// The time after which an idle session over HTTP ends: 1 hour.
    pub session_idle: Duration,
    /// The number of HTTP bodies that are read at once: 64. Others wait.
    pub bodies: usize,
    /// The time in which the body of a request over HTTP must arrive: 30 seconds. Then the status is 408.
    pub body_time: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            message_bytes: 16 * 1024 * 1024,
            body_bytes: 4 * 1024 * 1024,
            message_values: 250_000,
            calls: 256,
            subscriptions: 256,
            call_bytes: 64 * 1024 * 1024,
            call_time: Some(Duration::from_secs(600)),
            result_bytes: 16 * 1024 * 1024,
            write_time: Duration::from_secs(30),
            sessions: 256,
            session_idle: Duration::from_secs(3_600),
            bodies: 64,
            body_time: Duration::from_secs(30),
        }
    }
}
