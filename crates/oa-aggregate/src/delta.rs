use crate::error::Problem;

/// One change to the answer, borrowed from the aggregator until the next call.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Delta<'a> {
    /// More text.
    Text(&'a str),
    /// More thinking.
    Thinking(&'a str),
    /// More text of a refusal.
    Refusal(&'a str),
    /// A tool call began.
    CallStart {
        /// The number of the call in the answer, counted from 0 in the order in which they began.
        call: usize,
        /// The tool's name, as far as it is known.
        name: Option<&'a str>,
    },
    /// More of a call's arguments, exactly as the server sent them: fragments of JSON text, possibly repeated.
    CallArguments {
        /// The number of the call in the answer.
        call: usize,
        /// The fragment.
        fragment: &'a str,
    },
    /// A problem that did not end the stream.
    Problem(&'a Problem),
}
