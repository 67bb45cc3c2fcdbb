use crate::error::Problem;

/// One change to the answer, lent by the aggregator until it is asked for the next.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Delta<'a> {
    /// More text.
    Text(&'a str),
    /// More thinking.
    Thinking(&'a str),
    /// More words of a refusal.
    Refusal(&'a str),
    /// A tool call began.
    CallStart {
        /// The number of the call in the answer, counted from 0 in the order in which they began.
        call: usize,
        /// The tool's name as far as it is known.
        name: Option<&'a str>,
    },
    /// More of a call's arguments, as the server sent them: fragments of JSON text, or of a server
    /// that repeats itself.
    CallArguments {
        /// The number of the call in the answer.
        call: usize,
        /// The fragment.
        fragment: &'a str,
    },
    /// Something was wrong, and the stream went on.
    Problem(&'a Problem),
}
