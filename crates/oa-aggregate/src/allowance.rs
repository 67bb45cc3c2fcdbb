//! The memory that one payload may take while it is read.

use oa_json::held;
use oa_types::wire::ServerError;
use serde_json::Value;

use crate::chunk::Choice;

/// An upper bound on the memory per byte of a payload: JSON takes at most [`MAX_PER_BYTE`](held::MAX_PER_BYTE), errors
/// are held four times, and choices and fragments take less.
const MOST_FOR_A_BYTE: usize = 8 * held::MAX_PER_BYTE;

const _: () = assert!(3 * size_of::<Choice<'_>>() + 3 * size_of::<ServerError>() < MOST_FOR_A_BYTE);

/// Counts down the memory that a payload may still take. What does not fit is left out, which is recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowance {
    pub(crate) room: usize,
    /// The payload is too short to use up the room, so nothing needs to be counted.
    is_ample: bool,
    /// Something did not fit.
    pub(crate) is_cut: bool,
}

impl Allowance {
    /// Creates the allowance for a payload of this length, with this much memory.
    pub(crate) fn new(room: usize, payload: usize) -> Self {
        Self { room, is_ample: payload <= room / MOST_FOR_A_BYTE, is_cut: false }
    }

    /// Counts bytes that are to be held; false if they do not fit.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        if self.is_ample {
            return true;
        }
        let left = self.room.checked_sub(bytes);
        self.room = left.unwrap_or(self.room);
        self.is_cut |= left.is_none();
        left.is_some()
    }

    /// Counts a value that is to be held; false if it does not fit.
    pub(crate) fn hold_value(&mut self, value: &Value) -> bool {
        self.is_ample || self.hold(held::by_value(value))
    }

    /// Counts one more item of a growing list; false if it does not fit.
    pub(crate) fn hold_one<T>(&mut self) -> bool {
        // While a list grows, its old memory and the new one exist at the same time.
        self.hold(3 * size_of::<T>())
    }
}
