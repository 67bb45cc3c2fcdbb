/// Limits on the memory that a server can make the aggregator hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The size of the arguments of one call, in bytes as sent by the server. 4 MiB by default.
    pub argument_bytes: usize,
    /// The number of tool calls in one answer. 128 by default.
    pub calls: usize,
    /// The memory of one answer, in bytes. 64 MiB by default. Lists and objects take many times the size of their
    /// JSON, and everything is counted as often as a client holds it at the same time: text, thinking and members that
    /// go back to the server two or three times, calls five times. A call whose arguments do not fit becomes a block
    /// with the error; anything else ends the answer.
    pub held_bytes: usize,
    /// The number of problems that are kept; later ones are dropped except the server's first error. 32 by default.
    pub problems: usize,
    /// The size of text, thinking and refusal together, in bytes, and separately that of members that only the server
    /// understands. 16 MiB by default. An answer may alternate between kinds of text 1,024 times, and once more for
    /// every 64 bytes of this limit, because each run takes additional memory.
    pub text_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            argument_bytes: 4 << 20,
            calls: 128,
            held_bytes: 64 << 20,
            problems: 32,
            text_bytes: 16 << 20,
        }
    }
}
