//! The places where payloads of one template may differ.

use oa_types::Usage;

/// The range of a scalar that may be different in the next payload, without the quotes of a string.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Slot {
    // Small, because each open stream has dozens of slots.
    start: u16,
    end: u16,
    pub(crate) kind: SlotKind,
}

impl Slot {
    /// Creates a slot, unless its position is too large for payloads that are remembered.
    pub(crate) fn new(start: usize, end: usize, kind: SlotKind) -> Option<Self> {
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

    /// Moves the slot by this many bytes and sets its length, within a payload that is remembered.
    #[inline]
    pub(crate) fn shift(&mut self, by: i16, length: u16) {
        self.start = self.start.wrapping_add_signed(by);
        self.end = self.start + length;
    }

    /// Returns the slot at the same distance after `to` as this one is after `from`.
    pub(crate) fn moved(self, from: usize, to: usize) -> Option<Self> {
        Self::new(self.start() - from + to, self.end() - from + to, self.kind)
    }
}

/// The kind of value in a slot, and its use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SlotKind {
    /// A number of the usage.
    Count(Count),
    /// The string that extends an item of `reasoning_details`.
    Detail,
    /// The server's id of the answer, which is not empty.
    Id,
    /// The number of the choice.
    Index,
    /// The model that answers, which is not empty.
    Model,
    /// A number that decoding ignores, such as a time stamp.
    Number,
    /// A string that decoding ignores, such as padding.
    String,
    /// The text, the thinking or the piece of arguments of the chunk.
    Words,
}

/// A number of the usage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Count {
    Cached,
    Completion,
    Prompt,
    Reasoning,
    Total,
}

impl Count {
    /// Returns the field that this number is stored in.
    pub(crate) fn field(self, usage: &mut Usage) -> &mut Option<u64> {
        match self {
            Self::Cached => &mut usage.cached_tokens,
            Self::Completion => &mut usage.completion_tokens,
            Self::Prompt => &mut usage.prompt_tokens,
            Self::Reasoning => &mut usage.reasoning_tokens,
            Self::Total => &mut usage.total_tokens,
        }
    }
}

/// A set of a template's slots, by index: one bit for each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct SlotSet(u64);

impl SlotSet {
    /// The number of slots that a template may have.
    pub(crate) const CAPACITY: usize = u64::BITS as usize;

    /// Returns the set of one slot.
    #[inline]
    pub(crate) fn of(number: usize) -> Self {
        Self(1 << number)
    }

    #[inline]
    pub(crate) fn contains(self, number: usize) -> bool {
        self.0 & (1 << number) != 0
    }

    #[inline]
    pub(crate) fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns the index of the first slot, or [`CAPACITY`](Self::CAPACITY), which no slot has, if there is none.
    #[inline]
    pub(crate) fn first(self) -> usize {
        self.0.trailing_zeros() as usize
    }

    /// Removes the first slot.
    #[inline]
    pub(crate) fn remove_first(&mut self) {
        self.0 &= self.0.wrapping_sub(1);
    }

    /// Returns the slots from this index on.
    #[inline]
    pub(crate) fn from(self, number: usize) -> Self {
        Self(self.0 & (u64::MAX << number))
    }
}
