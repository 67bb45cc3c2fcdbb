//! Named tolerances: what a server does differently and the bytes cannot tell.

/// What is known of a server beforehand. The defaults suit all whose quirks the bytes tell.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Quirks {
    /// Which choices make up the answer.
    pub choice: ChoiceIndex,
    /// Whether text deltas add to the text or repeat all of it.
    pub text: TextMode,
    /// Whether thinking stands between tags in the text.
    pub think_tags: ThinkTags,
    /// Whether broken arguments are mended.
    pub repair: ArgumentRepair,
}

/// Whether arguments that are not JSON are mended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ArgumentRepair {
    /// Never: they become a [`ToolUseError`](oa_types::ToolUseError).
    #[default]
    Off,
    /// Where it is plain what was meant: open strings and brackets are closed, trailing commas,
    /// comments and code fences go, single quotes, bare keys and Python's words are understood. An escape
    /// that JSON does not know (`"C:\Temp"`) is not plain. A call that was cut off may then run with fewer arguments than the model had in mind.
    On,
}

/// Which of the choices in a stream is the answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ChoiceIndex {
    /// Every one: a server that never sends more than one numbers them oddly (QUIRKS row 53).
    Any,
    /// The one with index 0, or without an index.
    #[default]
    Zero,
}

/// How text and thinking arrive (QUIRKS rows 55 and 112).
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

/// Where thinking stands in text (QUIRKS rows 43 and 44).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ThinkTags {
    /// Tags are text.
    #[default]
    Off,
    /// What is between `<think>` and `</think>` is thinking.
    Split,
    /// As `Split`, and the opening tag was in the prompt: all before the first `</think>` is thinking.
    StartsInThinking,
}
