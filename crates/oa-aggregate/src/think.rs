//! Splits thinking between tags from the text.

use std::borrow::Cow;
use std::slice;

use oa_json::{ThinkingTags, Trim};

use crate::blocks::Voice;
use crate::budget::Budget;
use crate::error::Error;
use crate::quirks::ThinkTags;

pub(crate) const OPEN: &str = ThinkingTags::THINK.open;
pub(crate) const CLOSE: &str = ThinkingTags::THINK.close;

/// Takes text and thinking in their order.
pub(crate) type Out<'o> = dyn FnMut(Voice, &str) -> Result<(), Error> + 'o;

/// Separates text and thinking by tags, which are removed. Holds back a partial tag, and white space before the first.
///
/// Inside `<think>`, the texts `Hm.</thi` and `nk>Yes` become the thinking `Hm.` and the text `Yes`; `</thi`
/// is held back until the second arrives.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// The tags that count, which an opening tag at the start chooses from `known`.
    tags: &'static ThinkingTags,
    known: &'static [ThinkingTags],
    inside: bool,
    /// Only white space has arrived: inside, an opening tag now repeats the one in the prompt.
    at_start: bool,
    /// The closing tag was the last that arrived.
    at_bridge: bool,
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
        let splitter = Self::inside(&ThinkingTags::THINK);
        Some(Self { inside, known: ThinkingTags::KNOWN, ..splitter })
    }

    /// Creates a splitter for these tags that starts inside them, or before the opening tag.
    pub(crate) fn inside(tags: &'static ThinkingTags) -> Self {
        Self {
            tags,
            known: slice::from_ref(tags),
            inside: true,
            at_start: true,
            at_bridge: false,
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
        let may_be_held = !self.held.is_empty() || self.may_open(text.trim_start());
        let more = if self.at_start && may_be_held { text.len() } else { 0 };
        budget.reserve(&mut self.held, more, 3)
    }

    pub(crate) fn push(&mut self, text: &str, out: &mut Out<'_>) -> Result<(), Error> {
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
    pub(crate) fn flush(&mut self, out: &mut Out<'_>) -> Result<(), Error> {
        let held = self.take_held();
        if held.is_empty() {
            return Ok(());
        }
        self.at_start &= held.trim_start().is_empty();
        self.at_bridge = false;
        out(self.voice(), &held)
    }

    /// Takes text at the start, and finds out which tags count.
    fn start(&mut self, text: &str, out: &mut Out<'_>) -> Result<(), Error> {
        let mut text = Cow::Borrowed(text);
        // Undecided while there is only white space and a beginning of an opening tag.
        if !self.held.is_empty() || self.may_open(text.trim_start()) {
            self.held.push_str(&text);
            let begin = self.blank.start_of(&self.held);
            if self.may_open(begin) {
                return Ok(());
            }
            text = Cow::Owned(self.take_held());
        }
        self.at_start = false;
        let begin = text.trim_start();
        if let Some(tags) = self.known.iter().find(|tags| begin.starts_with(tags.open)) {
            self.tags = tags;
            if self.inside {
                return self.split(&begin[tags.open.len()..], out);
            }
        }
        self.split(&text, out)
    }

    fn split(&mut self, mut text: &str, out: &mut Out<'_>) -> Result<(), Error> {
        loop {
            if self.at_bridge {
                let bridge = self.tags.bridge;
                if text.len() < bridge.len() && bridge.starts_with(text) {
                    self.held.push_str(text);
                    return Ok(());
                }
                self.at_bridge = false;
                text = text.strip_prefix(bridge).unwrap_or(text);
            }
            // Only the tag that is expected next counts. Another `</think>` in the text is text.
            let tag = self.tag();
            let Some(at) = text.find(tag) else { break };
            if at > 0 {
                out(self.voice(), &text[..at])?;
            }
            self.at_bridge = self.inside;
            self.inside = !self.inside;
            text = &text[at + tag.len()..];
        }
        let tag = self.tag();
        let kept = half_tag(text, tag);
        let (sure, half) = text.split_at(text.len() - kept);
        self.held.push_str(half);
        if sure.is_empty() { Ok(()) } else { out(self.voice(), sure) }
    }

    fn may_open(&self, begin: &str) -> bool {
        self.known.iter().any(|tags| tags.may_open(begin))
    }

    /// Returns the next expected tag.
    fn tag(&self) -> &'static str {
        if self.inside { self.tags.close } else { self.tags.open }
    }

    pub(crate) fn voice(&self) -> Voice {
        if self.inside { Voice::Thinking } else { Voice::Text }
    }
}

/// Returns the number of bytes at the end of `text` that may begin `tag`. Tags are ASCII, so these are characters.
pub(crate) fn half_tag(text: &str, tag: &str) -> usize {
    let longest = text.len().min(tag.len() - 1);
    (1..=longest)
        .rev()
        .find(|&length| text.as_bytes().ends_with(&tag.as_bytes()[..length]))
        .unwrap_or(0)
}
