//! The memory that one answer may take.

use std::collections::VecDeque;

use oa_json::held;
use serde_json::Value;

use crate::error::{Error, ErrorKind};

/// The number of copies of a message's content once the answer is complete: in the message, and in history.
pub(crate) const COPIES: usize = 2;

/// The number of copies of a call: in both of these, as the call to run, as its input, and as shown to the user.
pub(crate) const COPIES_OF_CALL: usize = 5;

/// Counts the memory of one answer as it is held, against [`Limits::held_bytes`](crate::Limits::held_bytes).
///
/// Everything that a server can grow is counted here *before* it grows: text by
/// [`append`](Self::append) or [`hold`](Self::hold), JSON by [`hold_value`](Self::hold_value).
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    held: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, held: 0 }
    }

    /// Returns how many bytes are left.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.limit - self.held
    }

    /// Counts this many bytes, or none of them if they do not fit.
    #[inline]
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes > self.left() {
            return Err(Error::new(ErrorKind::AnswerTooLarge, self.limit));
        }
        self.held += bytes;
        Ok(())
    }

    /// Releases bytes that were counted.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Counts a value that the message keeps under this name, or in a list.
    pub(crate) fn hold_value(&mut self, name: &str, value: &Value) -> Result<(), Error> {
        self.hold(COPIES * (held::by_value(value) + held::member(name)))
    }

    /// Releases a value that another one under this name replaces.
    pub(crate) fn release_value(&mut self, name: &str, value: &Value) {
        self.release(COPIES * (held::by_value(value) + held::member(name)));
    }

    /// Appends to a text that the message keeps.
    #[inline]
    pub(crate) fn append(&mut self, text: &mut String, more: &str) -> Result<(), Error> {
        if more.len() <= text.capacity() - text.len() {
            text.push_str(more);
            return Ok(());
        }
        self.grow_and_append(text, more)
    }

    #[cold]
    fn grow_and_append(&mut self, text: &mut String, more: &str) -> Result<(), Error> {
        self.grow(text, more.len(), COPIES)?;
        text.push_str(more);
        Ok(())
    }

    /// Makes room in a text that exists in this many copies.
    #[inline]
    pub(crate) fn reserve(
        &mut self,
        text: &mut String,
        more: usize,
        copies: usize,
    ) -> Result<(), Error> {
        if more > text.capacity() - text.len() { self.grow(text, more, copies) } else { Ok(()) }
    }

    /// Makes room for one more item in a list.
    #[inline]
    pub(crate) fn reserve_one<T>(&mut self, list: &mut Vec<T>) -> Result<(), Error> {
        if list.len() < list.capacity() {
            return Ok(());
        }
        let more = list.len().max(4);
        // While the items move, the old memory and the new one exist at the same time.
        self.hold(2 * more * size_of::<T>())?;
        list.reserve_exact(more);
        Ok(())
    }

    /// Makes room for one more item in a queue.
    #[inline]
    pub(crate) fn reserve_next<T>(&mut self, queue: &mut VecDeque<T>) -> Result<(), Error> {
        if queue.len() < queue.capacity() {
            return Ok(());
        }
        let more = queue.len().max(4);
        self.hold(2 * more * size_of::<T>())?;
        if queue.capacity() == 0 {
            *queue = VecDeque::with_capacity(more);
        } else {
            queue.reserve_exact(more);
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, text: &mut String, more: usize, copies: usize) -> Result<(), Error> {
        let needed = text.len().saturating_add(more);
        let capacity = needed.checked_next_power_of_two().unwrap_or(needed);
        // No underflow: `needed` exceeds the capacity so far, or the text would not have to grow.
        self.hold((capacity - text.capacity()).saturating_mul(copies))?;
        if text.capacity() == 0 {
            *text = String::with_capacity(capacity);
        } else {
            text.reserve_exact(capacity - text.len());
        }
        Ok(())
    }
}
