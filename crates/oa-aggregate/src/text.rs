//! Deltas that add to the text, or repeat all of it (QUIRKS rows 55 and 112).

use crate::blocks::ROOM;
use crate::budget::Budget;
use crate::error::Error;
use crate::quirks::TextMode;

/// After this many repeats in a row, with this many bytes, a stream counts as cumulative.
const LINKS: u32 = 3;
const BYTES: usize = 16;

/// The initial room for the deltas of a chain, in bytes.
const ROOM_OF_CHAIN: usize = 128;

/// Takes pieces in their order.
type Out<'o> = dyn FnMut(&str) -> Result<(), Error> + 'o;

/// Turns deltas of either kind into pieces that add to the text.
///
/// A delta that begins with all the text so far may belong to a cumulative stream, or the model repeats itself ("ha",
/// "ha"). It is held back while each next delta begins with all of the previous one. If the chain is long enough, the
/// stream is cumulative, and only the new part is emitted; a chain that breaks is emitted unchanged.
///
/// With `The`, `The answer`, `The answer is`, `The answer is four.`, the first delta is emitted and the next
/// two are held back. The fourth is the third link and long enough, so ` answer is four.` is emitted.
#[derive(Debug, Default)]
pub(crate) struct TextFilter {
    mode: TextMode,
    /// A chain must begin with the first delta: a server that adds to the text once always does, and no text is kept.
    from_the_start: bool,
    /// All the text so far, as shown to the user.
    seen: String,
    /// The deltas of the chain, joined, and the start of the last one.
    held: String,
    last: usize,
    links: u32,
    /// The next link of the chain is enough.
    pub(crate) is_sure: bool,
}

impl TextFilter {
    pub(crate) fn new(mode: TextMode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Creates a filter that keeps no text once it is known that deltas do not repeat.
    pub(crate) fn from_the_start(mode: TextMode) -> Self {
        Self { mode, from_the_start: true, ..Self::default() }
    }

    /// Returns true if each delta is emitted as it arrives.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.mode == TextMode::Incremental
    }

    /// Returns true if it looks for a chain, and has taken no delta yet.
    pub(crate) fn is_new(&self) -> bool {
        self.mode == TextMode::Detect && self.seen.is_empty()
    }

    /// Returns true if deltas repeat the text, and this one adds nothing to it.
    pub(crate) fn has_all(&self, delta: &str) -> bool {
        self.mode == TextMode::Cumulative && self.seen == delta
    }

    /// Returns true if this is the last delta of a chain.
    pub(crate) fn ends_with(&self, delta: &str) -> bool {
        self.links > 0 && self.held[self.last..] == *delta
    }

    /// From now on, emits each delta as it arrives.
    pub(crate) fn settle(&mut self) {
        self.mode = TextMode::Incremental;
    }

    /// Records a delta that was already emitted as the first.
    pub(crate) fn begin_with(&mut self, delta: &str, budget: &mut Budget) -> Result<(), Error> {
        budget.reserve(&mut self.seen, delta.len().max(ROOM_OF_CHAIN), 1)?;
        self.seen.push_str(delta);
        Ok(())
    }

    /// Returns the number of bytes held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Makes room for a delta that is taken next.
    #[inline]
    pub(crate) fn reserve(&mut self, delta: &str, budget: &mut Budget) -> Result<(), Error> {
        // Most deltas are shorter than the text before, and fit.
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
        // Only a delta that begins with all text so far is held back.
        let may_repeat = self.links > 0 || !is_first && delta.starts_with(&*self.seen);
        if self.from_the_start && !is_first && !may_repeat {
            return Ok(());
        }
        let room = if is_first && !self.from_the_start { ROOM } else { 0 };
        budget.reserve(&mut self.seen, self.held.len() + delta.len().max(room), 1)?;
        if may_repeat {
            let room = if self.held.capacity() == 0 { ROOM_OF_CHAIN } else { 0 };
            // Two texts, both of which may be emitted next.
            budget.reserve(&mut self.held, delta.len().max(room), 2)?;
        }
        Ok(())
    }

    /// Takes a delta that is shorter than the text before, and so repeats nothing, if there is room for it: the usual
    /// case. Emit it then. Otherwise [reserve](Self::reserve) and [push](Self::push) it.
    #[inline]
    pub(crate) fn take_short(&mut self, delta: &str) -> bool {
        let is_short = self.links == 0
            && delta.len() < self.seen.len()
            && delta.len() <= self.seen.capacity() - self.seen.len()
            && self.mode == TextMode::Detect
            && !self.from_the_start;
        if is_short {
            self.seen.push_str(delta);
        }
        is_short
    }

    /// Takes a nonempty delta, and emits the text that it adds.
    #[inline]
    pub(crate) fn push(&mut self, delta: &str, out: &mut Out<'_>) -> Result<(), Error> {
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

    /// Emits the held-back text, because the chain broke or the stream ended.
    pub(crate) fn flush(&mut self, out: &mut Out<'_>) -> Result<(), Error> {
        if self.links == 0 {
            return Ok(());
        }
        self.links = 0;
        self.last = 0;
        // The chain was no repeat but text, so later deltas are compared with all of it.
        self.seen.push_str(&self.held);
        let result = out(&self.held);
        self.held.clear();
        result
    }

    fn lengthen(&mut self, delta: &str, out: &mut Out<'_>) -> Result<(), Error> {
        self.links += 1;
        if !self.is_sure && !is_sure(self.links, delta) {
            self.last = self.held.len();
            self.held.push_str(delta);
            return Ok(());
        }
        // `seen` is the text before the chain, and `delta` is all text: nothing in between is needed.
        self.mode = TextMode::Cumulative;
        self.links = 0;
        self.held = String::new();
        self.add_suffix(delta, out)
    }

    fn add_suffix(&mut self, delta: &str, out: &mut Out<'_>) -> Result<(), Error> {
        // A delta that does not repeat the text is new text, whatever the mode: nothing is lost.
        let suffix = delta.strip_prefix(&*self.seen).unwrap_or(delta);
        self.seen.push_str(suffix);
        if suffix.is_empty() { Ok(()) } else { out(suffix) }
    }
}

/// Returns true if this many repeats in a row, ending with this one, show that a server repeats itself.
pub(crate) fn is_sure(links: u32, delta: &str) -> bool {
    // A row of one character, such as `---` or `───`, begins with any shorter row by itself.
    let mut chars = delta.chars();
    let first = chars.next();
    links >= LINKS && delta.len() >= BYTES && chars.any(|next| Some(next) != first)
}
