//! The places in which a payload may differ from another one and be the same JSON with other values.

use oa_types::Usage;

/// A scalar of a payload that may be another one in the next: where it lies, without quotes if it is a
/// string.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Hole {
    // Small: each open stream has dozens of holes.
    start: u16,
    end: u16,
    pub(crate) kind: Kind,
}

impl Hole {
    /// None if it lies so far behind that no payload is remembered that has it.
    pub(crate) fn new(start: usize, end: usize, kind: Kind) -> Option<Self> {
        Some(Self { start: u16::try_from(start).ok()?, end: u16::try_from(end).ok()?, kind })
    }

    #[inline]
    pub(crate) fn start(self) -> usize {
        self.start.into()
    }

    #[inline]
    pub(crate) fn end(self) -> usize {
        self.end.into()
    }

    #[inline]
    pub(crate) fn length(self) -> u16 {
        self.end - self.start
    }

    /// Moves it by so many bytes and gives it another length, within a payload that is remembered.
    #[inline]
    pub(crate) fn shift(&mut self, by: i16, length: u16) {
        self.start = self.start.wrapping_add_signed(by);
        self.end = self.start + length;
    }

    /// The same hole, as far behind another place.
    pub(crate) fn moved(self, from: usize, to: usize) -> Option<Self> {
        Self::new(self.start() - from + to, self.end() - from + to, self.kind)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A number of the usage.
    Count(Count),
    /// The string by which an item of `reasoning_details` grows.
    Detail,
    /// The server's id of the answer, which is not empty.
    Id,
    /// The number of the choice.
    Index,
    /// The model that answers, which is not empty.
    Model,
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
