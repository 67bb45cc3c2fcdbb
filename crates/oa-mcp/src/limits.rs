use std::time::Duration;

/// Bounds on what a server can make a program hold, and for how long it can make it wait.
///
/// ```
/// use oa_mcp::Limits;
///
/// let mut limits = Limits::default();
/// limits.tools = 1_000;
/// assert_eq!(limits.message_bytes, 16 * 1024 * 1024);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message in bytes: 16 MiB. A longer one closes the connection.
    pub message_bytes: usize,
    /// The number of tools of one server: 256. Later ones are left out.
    pub tools: usize,
    /// The number of resources, of templates and of prompts of one server: 1,000 each. Later ones are left out.
    pub entries: usize,
    /// The number of pages of one list: 64. Later ones are not read.
    pub pages: usize,
    /// The longest description of a tool in bytes: 4 KiB. A longer one is cut.
    pub description_bytes: usize,
    /// The largest schema of a tool in bytes: 64 KiB. A tool with a larger one is left out.
    pub schema_bytes: usize,
    /// The longest instructions of a server in bytes: 16 KiB. Longer ones are cut.
    pub instruction_bytes: usize,
    /// The number of calls of one server that run at once: 16. The others wait.
    pub calls: usize,
    /// The number of questions of the server that are open at once: 4. Further ones are refused.
    ///
    /// In version 2026-07-28 further ones wait, and a result with more of them ends the call.
    pub questions: usize,
    /// The number of times that the server may ask before it answers a call of version 2026-07-28: 10.
    pub rounds: usize,
    /// The longest state in bytes that it may have sent back to it then: 1 MiB. A longer one ends the call.
    pub state_bytes: usize,
    /// The most tokens of an answer that a server asks a model for: 4,096.
    pub sampling_tokens: u32,
    /// The number of lines of output that are no messages: 100. The next one closes the connection.
    pub garbage_lines: u32,
    /// The part of the last error output that is kept, in bytes: 64 KiB.
    pub stderr_bytes: usize,
    /// The number of warnings that are kept: 64.
    pub warnings: usize,
    /// The number of times that a server which has died is started again within five minutes: 5.
    pub restarts: usize,
    /// The wait before a server that has died is started again: 1 second, doubled each time, up to a minute.
    pub restart_delay: Duration,
    /// The time that a server may take to end, once after its input has ended and once after SIGTERM: 2 seconds.
    pub close_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 16 * 1024 * 1024,
            tools: 256,
            entries: 1_000,
            pages: 64,
            description_bytes: 4 * 1024,
            schema_bytes: 64 * 1024,
            instruction_bytes: 16 * 1024,
            calls: 16,
            questions: 4,
            rounds: 10,
            state_bytes: 1024 * 1024,
            sampling_tokens: 4_096,
            garbage_lines: 100,
            stderr_bytes: 64 * 1024,
            warnings: 64,
            restarts: 5,
            restart_delay: Duration::from_secs(1),
            close_time: Duration::from_secs(2),
        }
    }
}
