//! Named tolerances: what a server does differently and the bytes cannot tell.

/// Quirks of a server that its bytes do not show. The defaults suit all other servers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Quirks {
    /// The choices that make up the answer.
    pub choice: ChoiceIndex,
    /// The mode of text deltas: they add to the text, or repeat all of it.
    pub text: TextMode,
    /// The tags in the text between which thinking stands, if any.
    pub think_tags: ThinkTags,
    /// The repair of broken arguments.
    pub repair: ArgumentRepair,
}

/// The repair of arguments that are not JSON.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ArgumentRepair {
    /// Never: they become a [`ToolUseError`](oa_types::ToolUseError).
    #[default]
    Off,
    /// Arguments are repaired where it is plain what was meant: open strings and brackets are closed, trailing commas,
    /// comments and code fences go, single quotes, bare keys and Python's words are understood. An escape
    /// that JSON does not know (`"C:\Temp"`) is not plain. A call that was cut off may then run with fewer arguments than the model had in mind.
    On,
}

/// The choices of a stream that make up the answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ChoiceIndex {
    /// Every one: a server that never sends more than one numbers them oddly (QUIRKS row 53).
    Any,
    /// The one with index 0, or without an index.
    #[default]
    Zero,
}

/// The way in which text and thinking arrive (QUIRKS rows 55 and 112).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum TextMode {
    /// Each delta repeats all the text so far.
    Cumulative,
    /// Each delta adds to the text, unless a long chain of deltas shows that they repeat it. Thinking must
    /// repeat itself from its first delta on to be recognized.
    #[default]
    Detect,
    /// Each delta adds to the text.
    Incremental,
}

/// The place of thinking in text (QUIRKS rows 43 and 44).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ThinkTags {
    /// Tags are text.
    #[default]
    Off,
    /// Text between `<think>` and `</think>` is thinking.
    Split,
    /// As `Split`, and the opening tag was in the prompt: all before the first `</think>` is thinking.
    StartsInThinking,
}
