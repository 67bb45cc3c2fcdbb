//! The places in which a payload may differ from another one and be the same JSON with other values.

use oa_types::Usage;

/// A scalar of a payload that may be another one in the next: where it lies, without quotes if it is a
/// string.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Hole {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: Kind,
}

impl Hole {
    pub(crate) fn new(start: usize, end: usize, kind: Kind) -> Self {
        Self { start, end, kind }
    }

    /// The same hole, as far behind another place.
    pub(crate) fn moved(self, from: usize, to: usize) -> Self {
        Self::new(self.start - from + to, self.end - from + to, self.kind)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A number of the usage.
    Count(Count),
    /// The string by which an item of `reasoning_details` grows.
    Detail,
    /// The number of the choice.
    Index,
    /// A number that decoding passes over, such as a time stamp.
    Number,
    /// A string that decoding passes over, such as padding.
    String,
    /// The text, the thinking or the piece of arguments that the chunk brings.
    Words,
}

/// Which number of the usage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Count {
    Cached,
    Completion,
    Prompt,
    Reasoning,
    Total,
}

impl Count {
    pub(crate) fn of(self, usage: &mut Usage) -> &mut Option<u64> {
        match self {
            Self::Cached => &mut usage.cached_tokens,
            Self::Completion => &mut usage.completion_tokens,
            Self::Prompt => &mut usage.prompt_tokens,
            Self::Reasoning => &mut usage.reasoning_tokens,
            Self::Total => &mut usage.total_tokens,
        }
    }
}
