/// Quirks of a server that cannot be inferred from its bytes. The defaults suit all other servers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Quirks {
    /// The choices that make up the answer.
    pub choice: ChoiceIndex,
    /// The mode of text deltas: each adds to the text, or repeats all of it.
    pub text: TextMode,
    /// The tags that mark thinking in the text, if any.
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
    /// Arguments are repaired if their meaning is clear: open strings and brackets are closed; trailing commas,
    /// comments and code fences are removed; single quotes, bare keys and Python's words are understood. An escape
    /// that JSON does not have (`"C:\Temp"`) is not clear. A call that was cut off may then run with fewer arguments
    /// than the model intended, and without the end of the last one.
    On,
}

/// The choices of a stream that make up the answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ChoiceIndex {
    /// All of them, for a server that sends only one but numbers it oddly (QUIRKS row 53).
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
    /// Each delta adds to the text, unless many deltas in a row show that they repeat it. Repeated thinking is
    /// recognized only if it repeats from its first delta on.
    #[default]
    Detect,
    /// Each delta adds to the text.
    Incremental,
}

/// The tags that mark thinking in text (QUIRKS rows 43 and 44).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ThinkTags {
    /// Tags are text.
    #[default]
    Off,
    /// Text between `<think>` and `</think>` is thinking. If the answer starts with another known opening tag, such as
    /// `[THINK]`, its tags count instead; [`ThinkingTags`](oa_json::ThinkingTags) lists them.
    Split,
    /// Like `Split`, but the opening tag was in the prompt: everything before the first `</think>` is thinking.
    StartsInThinking,
}
