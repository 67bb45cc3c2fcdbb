use std::mem;

use bytes::Bytes;

/// A bound on how much of a body is read in one poll.
///
/// A task that is always handed more input never yields: timers, cancellation and other tasks wait until the
/// peer pauses, which a peer that floods never does. A reader takes its input through a budget; once that is
/// spent, it arranges to be polled again, returns `Pending` and starts with a full one. Time is not measured:
/// a budget counts bytes, and adds a fixed cost for each chunk and each event, so that a million tiny ones are
/// not free.
///
/// ```
/// use bytes::Bytes;
/// use oa_sse::PollBudget;
///
/// let mut budget = PollBudget::default();
/// let mut chunk = Bytes::from(vec![b'\n'; 1 << 20]);
/// let mut taken = 0;
/// while !budget.is_spent() {
///     taken += budget.take(&mut chunk).len();
/// }
/// assert!(taken <= 80 << 10, "{taken} bytes");
/// budget.refill();
/// assert!(!budget.is_spent());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PollBudget {
    left: usize,
}

/// The budget of one poll, in bytes: well under a millisecond of parsing.
const BYTES: usize = 64 << 10;

/// The most that is parsed before the budget is looked at again, in bytes.
const PIECE: usize = 16 << 10;

/// The cost of a chunk or an event beside its bytes.
const COST: usize = 64;

impl PollBudget {
    /// Splits off what to parse next: all of a small chunk, or the beginning of a large one.
    #[inline]
    #[must_use]
    pub fn take(&mut self, chunk: &mut Bytes) -> Bytes {
        // Few chunks are larger than a piece, and splitting would count references to each.
        let piece = if chunk.len() <= PIECE { mem::take(chunk) } else { chunk.split_to(PIECE) };
        self.left = self.left.saturating_sub(COST + piece.len());
        piece
    }

    /// Charges for events that were found in what was taken.
    #[inline]
    pub fn charge(&mut self, events: u64) {
        let cost = usize::try_from(events).unwrap_or(usize::MAX).saturating_mul(COST);
        self.left = self.left.saturating_sub(cost);
    }

    /// Returns whether this poll has done enough.
    #[inline]
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Starts anew. Call this whenever the reader returns `Pending`, for whatever reason.
    #[inline]
    pub fn refill(&mut self) {
        *self = Self::default();
    }
}

impl Default for PollBudget {
    fn default() -> Self {
        Self { left: BYTES }
    }
}
