use std::mem;

use bytes::Bytes;

/// A limit on how much of a body is read in one poll.
///
/// A task that always gets more input never yields, so a flooding peer could block timers, cancellation and
/// other tasks. A reader that uses a budget arranges to be polled again when it is spent, returns `Pending` and
/// starts with a full one. The budget counts bytes, plus a fixed cost for each chunk and event so that millions
/// of tiny ones are not free; it does not measure time.
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

/// The budget of one poll in bytes: well under a millisecond of parsing.
const BYTES: usize = 64 << 10;

/// The most that is parsed between checks of the budget, in bytes.
const PIECE: usize = 16 << 10;

/// The fixed cost of a chunk or event, in bytes.
const COST: usize = 64;

impl PollBudget {
    /// Splits off the input to parse next: all of a small chunk, or the start of a large one.
    #[inline]
    #[must_use]
    pub fn take(&mut self, chunk: &mut Bytes) -> Bytes {
        // Few chunks are larger than a piece, and splitting would count references to each.
        let piece = if chunk.len() <= PIECE { mem::take(chunk) } else { chunk.split_to(PIECE) };
        self.left = self.left.saturating_sub(COST + piece.len());
        piece
    }

    /// Charges for events found in that input.
    #[inline]
    pub fn charge(&mut self, events: u64) {
        let cost = usize::try_from(events).unwrap_or(usize::MAX).saturating_mul(COST);
        self.left = self.left.saturating_sub(cost);
    }

    /// Returns true if the budget is spent.
    #[inline]
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Restores the full budget. Call this whenever the reader returns `Pending`, for any reason.
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
