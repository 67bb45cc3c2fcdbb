//! Splits thinking between tags from the text.

use oa_json::Trim;

use crate::blocks::Voice;
use crate::budget::Budget;
use crate::error::Error;
use crate::quirks::ThinkTags;

pub(crate) const OPEN: &str = "<think>";
pub(crate) const CLOSE: &str = "</think>";

/// Separates text and thinking by tags, which are removed. Holds back at most a partial tag, and white space
/// before a tag at the start.
///
/// Inside `<think>`, the texts `Hm.</thi` and `nk>Yes` become the thinking `Hm.` and the text `Yes`; `</thi`
/// is held back until the second arrives.
#[derive(Debug)]
pub(crate) struct Splitter {
    open: &'static str,
    close: &'static str,
    inside: bool,
    /// Only white space has arrived: an opening tag now repeats the one in the prompt.
    at_start: bool,
    /// Text that may be the beginning of a tag.
    held: String,
    /// The white space at its start, while `at_start`.
    blank: Trim,
}

impl Splitter {
    /// Creates a splitter; `None` if tags are text.
    pub(crate) fn new(tags: ThinkTags) -> Option<Self> {
        let inside = match tags {
            ThinkTags::Off => return None,
            ThinkTags::Split => false,
            ThinkTags::StartsInThinking => true,
        };
        Some(Self { inside, at_start: inside, ..Self::inside(OPEN, CLOSE) })
    }

    /// Creates a splitter for other tags that starts inside them, or before the opening tag.
    pub(crate) fn inside(open: &'static str, close: &'static str) -> Self {
        Self {
            open,
            close,
            inside: true,
            at_start: true,
            held: String::new(),
            blank: Trim::default(),
        }
    }

    /// Removes and returns a partial tag that was held back.
    pub(crate) fn take_held(&mut self) -> String {
        self.blank = Trim::default();
        std::mem::take(&mut self.held)
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Makes room for the part of a text that may be held back.
    pub(crate) fn reserve(&mut self, text: &str, budget: &mut Budget) -> Result<(), Error> {
        // White space at the start may be long; nothing else is held back for long.
        let may_be_held = !self.held.is_empty() || text.trim_start().len() <= self.open.len();
        let more = if self.at_start && may_be_held { text.len() } else { 0 };
        budget.reserve(&mut self.held, more, 3)
    }

    pub(crate) fn push<E>(
        &mut self,
        text: &str,
        out: &mut impl FnMut(Voice, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.at_start {
            return self.start(text, out);
        }
        if self.held.is_empty() {
            return self.split(text, out);
        }
        let mut joined = self.take_held();
        joined.push_str(text);
        self.split(&joined, out)
    }

    /// Emits a partial tag that did not become complete.
    pub(crate) fn flush<E>(
        &mut self,
        out: &mut impl FnMut(Voice, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let held = self.take_held();
        if held.is_empty() { Ok(()) } else { out(self.voice(), &held) }
    }

    /// Takes text at the start, and removes an opening tag.
    fn start<E>(
        &mut self,
        text: &str,
        out: &mut impl FnMut(Voice, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_open = |begin: &str| begin.len() < self.open.len() && self.open.starts_with(begin);
        // Undecided while there is only white space and a beginning of the opening tag.
        if !self.held.is_empty() || is_open(text.trim_start()) {
            self.held.push_str(text);
            if is_open(self.blank.start_of(&self.held)) {
                return Ok(());
            }
            let joined = self.take_held();
            return self.leave_start(&joined, out);
        }
        self.leave_start(text, out)
    }

    fn leave_start<E>(
        &mut self,
        text: &str,
        out: &mut impl FnMut(Voice, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_start = false;
        self.split(text.trim_start().strip_prefix(self.open).unwrap_or(text), out)
    }

    fn split<E>(
        &mut self,
        mut text: &str,
        out: &mut impl FnMut(Voice, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            // Only the tag that is expected next counts. Another `</think>` in the text is text.
            let tag = self.tag();
            let Some(at) = text.find(tag) else { break };
            if at > 0 {
                out(self.voice(), &text[..at])?;
            }
            self.inside = !self.inside;
            text = &text[at + tag.len()..];
        }
        let tag = self.tag();
        let kept = half_tag(text, tag);
        let (sure, half) = text.split_at(text.len() - kept);
        self.held.push_str(half);
        if sure.is_empty() { Ok(()) } else { out(self.voice(), sure) }
    }

    /// Returns the next expected tag.
    fn tag(&self) -> &'static str {
        if self.inside { self.close } else { self.open }
    }

    pub(crate) fn voice(&self) -> Voice {
        if self.inside { Voice::Thinking } else { Voice::Text }
    }
}

/// Returns the number of bytes at the end of `text` that may be the beginning of `tag`. Tags are ASCII, so
/// these bytes begin at a character.
pub(crate) fn half_tag(text: &str, tag: &str) -> usize {
    let longest = text.len().min(tag.len() - 1);
    (1..=longest)
        .rev()
        .find(|&length| text.as_bytes().ends_with(&tag.as_bytes()[..length]))
        .unwrap_or(0)
}
