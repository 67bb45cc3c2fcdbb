//! Text deltas that add to the text, or repeat all of it (QUIRKS row 55).

use crate::blocks::ROOM;
use crate::budget::Budget;
use crate::error::Error;
use crate::quirks::TextMode;

/// From this many repeats in a row on, and this many bytes, a stream is held to be cumulative.
const LINKS: u32 = 3;
const BYTES: usize = 16;

/// Turns deltas of either kind into pieces that add to the text.
///
/// A delta that begins with all the text so far may be the next of a cumulative stream, or a model
/// that repeats itself ("ha", "ha"). It is held back while each next delta begins with all of the one
/// before. A long enough chain decides for the former and only the new part goes out; a chain that
/// breaks goes out unchanged.
#[derive(Debug, Default)]
pub(crate) struct TextFilter {
    mode: TextMode,
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

    /// How many bytes are held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Makes room for a delta that is taken next.
    #[inline]
    pub(crate) fn reserve(&mut self, delta: &str, budget: &mut Budget) -> Result<(), Error> {
        if self.mode == TextMode::Incremental {
            return Ok(());
        }
        let more = if self.seen.is_empty() { delta.len().max(ROOM) } else { delta.len() };
        budget.reserve(&mut self.seen, self.held.len() + more, 1)?;
        // Only what is no shorter than all before is held back.
        if self.links > 0 || delta.len() >= self.seen.len() && !self.seen.is_empty() {
            // Of two texts, and both may be about to be handed out.
            budget.reserve(&mut self.held, delta.len(), 2)?;
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
        let first = delta.as_bytes().first();
        let varied = delta.bytes().any(|byte| Some(&byte) != first);
        if self.links < LINKS || delta.len() < BYTES || !varied {
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
