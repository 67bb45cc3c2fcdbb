//! Deltas that add to what was said, or repeat all of it (QUIRKS rows 55 and 112).

use crate::blocks::ROOM;
use crate::budget::Budget;
use crate::error::Error;
use crate::quirks::TextMode;

/// From this many repeats in a row on, and this many bytes, a stream is held to be cumulative.
const LINKS: u32 = 3;
const BYTES: usize = 16;

/// Room for the first deltas of a chain, in bytes.
const ROOM_OF_CHAIN: usize = 128;

/// Turns deltas of either kind into pieces that add to the text.
///
/// A delta that begins with all the text so far may be the next of a cumulative stream, or a model
/// that repeats itself ("ha", "ha"). It is held back while each next delta begins with all of the one
/// before. A long enough chain decides for the former and only the new part goes out; a chain that
/// breaks goes out unchanged.
#[derive(Debug, Default)]
pub(crate) struct TextFilter {
    mode: TextMode,
    /// A chain is looked for only where it begins with the first delta: whoever adds to the text once does
    /// so always, and what was said need not be kept to be compared.
    from_the_start: bool,
    /// All the text so far, as the user has it.
    seen: String,
    /// The deltas of the chain, joined, and where the last of them begins.
    held: String,
    last: usize,
    links: u32,
}

impl TextFilter {
    pub(crate) fn new(mode: TextMode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Creates a filter that keeps nothing of words once they are known not to repeat themselves.
    pub(crate) fn from_the_start(mode: TextMode) -> Self {
        Self { mode, from_the_start: true, ..Self::default() }
    }

    /// Returns true if each delta goes out as it comes.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.mode == TextMode::Incremental
    }

    /// Returns true if it looks for a chain, and has taken nothing yet.
    pub(crate) fn is_new(&self) -> bool {
        self.mode == TextMode::Detect && self.seen.is_empty()
    }

    /// Lets each delta out as it comes from now on.
    pub(crate) fn settle(&mut self) {
        self.mode = TextMode::Incremental;
    }

    /// Notes a delta that has gone out already as the first.
    pub(crate) fn begin_with(&mut self, delta: &str, budget: &mut Budget) -> Result<(), Error> {
        budget.reserve(&mut self.seen, delta.len().max(ROOM_OF_CHAIN), 1)?;
        self.seen.push_str(delta);
        Ok(())
    }

    /// Returns how many bytes are held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Makes room for a delta that is taken next.
    #[inline]
    pub(crate) fn reserve(&mut self, delta: &str, budget: &mut Budget) -> Result<(), Error> {
        // Most deltas are shorter than what was said before, and find room.
        let is_short = self.links == 0 && delta.len() < self.seen.len();
        if is_short && delta.len() <= self.seen.capacity() - self.seen.len() {
            return Ok(());
        }
        self.reserve_more(delta, budget)
    }

    #[inline(never)]
    fn reserve_more(&mut self, delta: &str, budget: &mut Budget) -> Result<(), Error> {
        if self.mode == TextMode::Incremental {
            return Ok(());
        }
        let is_first = self.seen.is_empty();
        // Only what begins with all before is held back.
        let may_repeat = self.links > 0 || !is_first && delta.starts_with(&*self.seen);
        if self.from_the_start && !is_first && !may_repeat {
            return Ok(());
        }
        let room = if is_first && !self.from_the_start { ROOM } else { 0 };
        budget.reserve(&mut self.seen, self.held.len() + delta.len().max(room), 1)?;
        if may_repeat {
            let room = if self.held.capacity() == 0 { ROOM_OF_CHAIN } else { 0 };
            // Of two texts, and both may be about to be handed out.
            budget.reserve(&mut self.held, delta.len().max(room), 2)?;
        }
        Ok(())
    }

    /// Takes a delta, which is not empty, and hands out what is to be added to the text.
    #[inline]
    pub(crate) fn push<E>(
        &mut self,
        delta: &str,
        out: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.mode {
            TextMode::Incremental => return out(delta),
            TextMode::Cumulative => return self.add_suffix(delta, out),
            TextMode::Detect => {}
        }
        if self.links > 0 {
            if delta.starts_with(&self.held[self.last..]) {
                return self.lengthen(delta, out);
            }
            self.flush(out)?;
        }
        let repeats = delta.len() >= self.seen.len() && delta.starts_with(&*self.seen);
        if repeats && !self.seen.is_empty() {
            self.links = 1;
            self.held.push_str(delta);
            return Ok(());
        }
        if self.from_the_start && !self.seen.is_empty() {
            self.settle();
            self.seen = String::new();
            return out(delta);
        }
        self.seen.push_str(delta);
        out(delta)
    }

    /// Hands out what is held back: the chain broke, or the stream ended.
    pub(crate) fn flush<E>(
        &mut self,
        out: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.links == 0 {
            return Ok(());
        }
        self.links = 0;
        self.last = 0;
        self.seen.push_str(&self.held);
        let result = out(&self.held);
        self.held.clear();
        result
    }

    fn lengthen<E>(
        &mut self,
        delta: &str,
        out: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.links += 1;
        if !is_sure(self.links, delta) {
            self.last = self.held.len();
            self.held.push_str(delta);
            return Ok(());
        }
        self.mode = TextMode::Cumulative;
        self.links = 0;
        self.held = String::new();
        self.add_suffix(delta, out)
    }

    fn add_suffix<E>(
        &mut self,
        delta: &str,
        out: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        // A delta that does not repeat the text is new text, whatever the mode: nothing is lost.
        let suffix = delta.strip_prefix(&*self.seen).unwrap_or(delta);
        self.seen.push_str(suffix);
        if suffix.is_empty() { Ok(()) } else { out(suffix) }
    }
}

/// Returns true if so many repeats in a row, and the last of them, show that a server repeats itself.
pub(crate) fn is_sure(links: u32, delta: &str) -> bool {
    let first = delta.as_bytes().first();
    links >= LINKS && delta.len() >= BYTES && delta.bytes().any(|byte| Some(&byte) != first)
}
