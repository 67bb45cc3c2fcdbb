/// Bounds on the memory that a peer can make the aggregator hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Arguments of one call, in bytes as the server sent them. 4 MiB by default.
    pub argument_bytes: usize,
    /// Tool calls of one answer. 128 by default.
    pub calls: usize,
    /// All that is held of one answer, in bytes of memory: 64 MiB by default. Lists and objects take many
    /// times their text, and each thing is counted as often as a client holds it at the same time: text,
    /// thinking and members that go back to the server twice or three times, calls five times. A call whose
    /// arguments do not fit becomes a block that says so; anything else ends the answer.
    pub held_bytes: usize,
    /// The number of problems that are kept; later ones are dropped, but for the first error of the server. 32 by
    /// default.
    pub problems: usize,
    /// Text, thinking and refusal together, in bytes; and as much again for what only the server
    /// understands and wants back. 16 MiB by default. An answer has 1,024 runs of words at the most, and one more
    /// for every 64 bytes of this: each takes room beside its words.
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
