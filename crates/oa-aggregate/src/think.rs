//! Thinking between tags in the text.

use crate::blocks::Voice;
use crate::budget::Budget;
use crate::error::Error;
use crate::quirks::ThinkTags;

pub(crate) const OPEN: &str = "<think>";
pub(crate) const CLOSE: &str = "</think>";

/// Sorts text into text and thinking by tags, which go; holds back at most half a tag.
#[derive(Debug)]
pub(crate) struct Splitter {
    open: &'static str,
    close: &'static str,
    inside: bool,
    /// Nothing but white space has come: an opening tag here repeats the one in the prompt.
    at_start: bool,
    /// The beginning of what may become a tag.
    held: String,
}

impl Splitter {
    /// Creates a splitter, or none if tags are text.
    pub(crate) fn new(tags: ThinkTags) -> Option<Self> {
        let inside = match tags {
            ThinkTags::Off => return None,
            ThinkTags::Split => false,
            ThinkTags::StartsInThinking => true,
        };
        Some(Self { inside, at_start: inside, ..Self::inside(OPEN, CLOSE) })
    }

    /// Creates a splitter for other tags that starts inside them, or before the opening one.
    pub(crate) fn inside(open: &'static str, close: &'static str) -> Self {
        Self { open, close, inside: true, at_start: true, held: String::new() }
    }

    /// Hands over half a tag that was held back.
    pub(crate) fn take_held(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Makes sure that there is room for what may be held back of a text.
    pub(crate) fn reserve(&mut self, text: &str, budget: &mut Budget) -> Result<(), Error> {
        // White space at the start may become much; nothing else is held back for long.
        let may_be_held = !self.held.is_empty() || text.trim_start().len() <= self.open.len();
        let more = if self.at_start && may_be_held { text.len() } else { 0 };
        budget.reserve(&mut self.held, more, 3)
    }

    pub(crate) fn push<E>(
        &mut self,
        text: &str,
        out: &mut impl FnMut(Voice, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.held.is_empty() {
            return self.split(text, out);
        }
        let mut joined = std::mem::take(&mut self.held);
        joined.push_str(text);
        self.split(&joined, out)
    }

    /// Hands out half a tag that did not become one.
    pub(crate) fn flush<E>(
        &mut self,
        out: &mut impl FnMut(Voice, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Ok(()) } else { out(self.voice(), &held) }
    }

    fn split<E>(
        &mut self,
        mut text: &str,
        out: &mut impl FnMut(Voice, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            if self.at_start {
                let trimmed = text.trim_start();
                if let Some(rest) = trimmed.strip_prefix(self.open) {
                    self.at_start = false;
                    text = rest;
                } else if self.open.starts_with(trimmed) {
                    self.held.push_str(text);
                    return Ok(());
                } else {
                    self.at_start = false;
                }
            }
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

    /// Returns the tag that is next.
    fn tag(&self) -> &'static str {
        if self.inside { self.close } else { self.open }
    }

    pub(crate) fn voice(&self) -> Voice {
        if self.inside { Voice::Thinking } else { Voice::Text }
    }
}

/// Returns how many bytes at the end of `text` may be the beginning of `tag`.
pub(crate) fn half_tag(text: &str, tag: &str) -> usize {
    let longest = text.len().min(tag.len() - 1);
    (1..=longest)
        .rev()
        .find(|&length| text.as_bytes().ends_with(&tag.as_bytes()[..length]))
        .unwrap_or(0)
}
