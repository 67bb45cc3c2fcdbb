use std::time::Duration;

/// Bounds on the memory and time that a server can make a program use.
///
/// ```
/// use oa_mcp_data::Limits;
///
/// let mut limits = Limits::default();
/// limits.tools = 1_000;
/// assert_eq!(limits.message_bytes, 16 * 1024 * 1024);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message in bytes: 16 MiB. A longer one closes the connection; a longer HTTP response fails its call.
    pub message_bytes: usize,
    /// The number of JSON values in one message: 250,000. An answer with more fails its call.
    pub message_values: usize,
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
    /// The number of the server's questions that may be open at once: 4. Further ones are refused.
    ///
    /// In version 2026-07-28 further ones wait, and a single result with more of them fails the call.
    pub questions: usize,
    /// The number of rounds of questions that the server may ask before it answers a call in version 2026-07-28: 10.
    pub rounds: usize,
    /// The longest state in bytes that the server may have sent back with the answers: 1 MiB. A longer one fails the
    /// call.
    pub state_bytes: usize,
    /// The maximum tokens of a model's answer to a server: 4,096.
    pub sampling_tokens: u32,
    /// The number of output lines that are not messages: 100. The next one closes the connection.
    pub garbage_lines: u32,
    /// The bytes of recent error output that are kept: 64 KiB.
    pub stderr_bytes: usize,
    /// The number of warnings that are kept: 64.
    pub warnings: usize,
    /// The number of restarts of a dead server within five minutes: 5.
    pub restarts: usize,
    /// The wait before a dead server is restarted: 1 second, doubled each time, up to a minute.
    pub restart_delay: Duration,
    /// The time that a server has to exit, first after its input is closed and again after SIGTERM: 2 seconds.
    pub close_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 16 * 1024 * 1024,
            message_values: 250_000,
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
