use oa_types::PromptProgress;

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
    /// A tool call whose name is known: the first delta of the call.
    ///
    /// It is held back until the name cannot grow any more, which is when arguments have arrived or the answer has
    /// ended. Fragments that arrived before it follow as one. A call whose name never arrives has no deltas; it is in
    /// the answer as a [`ToolUseError`](crate::ToolUseError).
    CallStart {
        /// The number of the call in the answer, counted from 0 in the order in which they began.
        call: usize,
        /// The id of the call, as in the finished block: the server's, or one that is made up because the server has
        /// sent none by the next fragment of the call.
        id: &'a str,
        /// The tool's name, as in the finished block.
        name: &'a str,
    },
    /// More of a call's arguments, exactly as the server sent them: fragments of JSON text, possibly repeated.
    CallArguments {
        /// The number of the call in the answer.
        call: usize,
        /// The fragment.
        fragment: &'a str,
    },
    /// The server reads the prompt. It is not part of the answer, which has not begun (QUIRKS row 122).
    PromptProgress(PromptProgress),
    /// A problem that did not end the stream.
    Problem(&'a Problem),
}
