//! Thinking that is repeated between tags at the start of the text (QUIRKS row 111).

use std::borrow::Cow;
use std::mem;

use oa_json::Trim;

use crate::budget::Budget;
use crate::error::Error;
use crate::think::{CLOSE, OPEN, half_tag};

/// Removes thinking from the text if the server has already sent it as thinking.
///
/// If separate thinking has arrived and the text begins with an opening tag, the text is held back until its closing
/// tag, as long as one of the two begins with the other: more of both may follow. A repeat is removed with its tags;
/// anything else is released unchanged. Without earlier thinking, text is never held back.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    state: State,
    /// Boxed, because few streams need it.
    repeat: Option<Box<Repeat>>,
}

/// Text that is held back, and how much of it has been examined.
#[derive(Debug, Default)]
struct Repeat {
    held: String,
    /// The room of text that is no longer held back, in bytes.
    released: usize,
    /// The position in `held` behind the opening tag, if that is complete, and the white space from there on.
    behind_tag: Option<(usize, Trim)>,
    /// The position in `held` at which the thinking begins, if it has.
    thought: Option<usize>,
    /// The white space around the held-back thinking, and around the thinking that it may repeat.
    edges: Trim,
    edges_of_thinking: Trim,
    /// The number of bytes that are known to repeat the thinking.
    agreed: usize,
    /// The number of bytes that are known to contain no closing tag.
    searched: usize,
}

/// The number of copies of text that is held back: when it is released, the text after the repeat is copied.
const COPIES: usize = 2;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    /// Only white space has arrived.
    #[default]
    Ahead,
    Holding,
    Over,
}

impl Echo {
    /// Returns the number of bytes held back.
    pub(crate) fn held(&self) -> usize {
        self.repeat.as_ref().map_or(0, |repeat| repeat.held.len())
    }

    /// Returns true if text is no longer examined.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Stops examining text: it does not begin with a repeat.
    pub(crate) fn end_watch(&mut self) {
        self.state = State::Over;
    }

    /// Makes room for text that is taken next.
    pub(crate) fn reserve(&mut self, text: &str, budget: &mut Budget) -> Result<(), Error> {
        match self.state {
            State::Over => Ok(()),
            State::Ahead | State::Holding => {
                budget.reserve(&mut self.repeat().held, text.len(), COPIES)
            }
        }
    }

    /// Stops counting text that was released.
    pub(crate) fn release(&mut self, budget: &mut Budget) {
        if self.state == State::Over
            && let Some(repeat) = &mut self.repeat
        {
            budget.release(COPIES * mem::take(&mut repeat.released));
        }
    }

    /// Takes text, and returns the part of it and of the held-back text that belongs to the answer.
    ///
    /// `thinking` is all thinking so far.
    pub(crate) fn push<'t>(&mut self, text: &'t str, thinking: &str) -> Option<Cow<'t, str>> {
        match self.state {
            State::Over => return Some(Cow::Borrowed(text)),
            State::Ahead => {
                let begin = text.trim_start();
                if begin.is_empty() {
                    return Some(Cow::Borrowed(text));
                }
                if thinking.trim().is_empty()
                    || !(begin.starts_with(OPEN) || OPEN.starts_with(begin))
                {
                    self.state = State::Over;
                    return Some(Cow::Borrowed(text));
                }
                self.state = State::Holding;
            }
            State::Holding => {}
        }
        let repeat = self.repeat();
        repeat.held.push_str(text);
        match repeat.look(thinking) {
            Look::Holding => None,
            Look::Over(text) => {
                self.state = State::Over;
                text.map(Cow::Owned)
            }
        }
    }

    /// Releases the held-back text, because nothing like it follows, without the part that repeats the thinking.
    pub(crate) fn flush(&mut self, thinking: &str) -> Option<String> {
        if self.state != State::Holding {
            return None;
        }
        self.state = State::Over;
        let repeat = self.repeat();
        let thought = repeat.thought.map(|start| repeat.held[start..].trim_end());
        let is_repeat = thought.is_some_and(|thought| thinking.trim_start().starts_with(thought));
        let held = repeat.end();
        (!is_repeat).then_some(held)
    }

    fn repeat(&mut self) -> &mut Repeat {
        self.repeat.get_or_insert_default()
    }
}

/// The result of examining held-back text.
enum Look {
    Holding,
    /// It is released, except for a repeat.
    Over(Option<String>),
}

impl Repeat {
    /// Checks whether the held-back text still repeats the thinking.
    fn look(&mut self, thinking: &str) -> Look {
        let thinking = self.edges_of_thinking.start_of(thinking);
        let Some(start) = self.thought.or_else(|| self.find_thought()) else {
            // A partial tag may become complete; a complete one may be followed only by white space.
            let may_be = self.behind_tag.is_some() || OPEN.starts_with(self.held.trim_start());
            return if may_be { Look::Holding } else { Look::Over(Some(self.end())) };
        };
        self.thought = Some(start);
        let rest = &self.held[start..];
        let searched = self.searched;
        let close = rest[searched..].find(CLOSE).map(|at| searched + at);
        // White space before the closing tag is not part of the thinking, and a partial tag may become one.
        let end = close.unwrap_or_else(|| rest.len() - half_tag(rest, CLOSE));
        let sure = self.edges.of(&rest[..end]);
        // `sure` and the thinking only grow, so `agreed` never exceeds `common`. Bytes are compared once.
        let common = sure.len().min(thinking.len());
        let agrees = sure.as_bytes().get(self.agreed..common)
            == thinking.as_bytes().get(self.agreed..common);
        if !agrees {
            return Look::Over(Some(self.end()));
        }
        if let Some(close) = close {
            if sure != thinking.trim_end() {
                return Look::Over(Some(self.end()));
            }
            let behind = start + close + CLOSE.len();
            let behind = self.end().split_off(behind);
            return Look::Over(Some(behind).filter(|behind| !behind.is_empty()));
        }
        // A closing tag that is complete later starts here at the earliest.
        self.searched = end;
        self.agreed = common;
        Look::Holding
    }

    /// Returns the start of the thinking: the first character after the tag that is not white space.
    fn find_thought(&mut self) -> Option<usize> {
        if self.behind_tag.is_none() {
            let behind = self.held.trim_start().strip_prefix(OPEN)?;
            self.behind_tag = Some((self.held.len() - behind.len(), Trim::default()));
        }
        let (tag, blank) = self.behind_tag.as_mut()?;
        let behind = blank.start_of(&self.held[*tag..]);
        (!behind.is_empty()).then(|| self.held.len() - behind.len())
    }

    fn end(&mut self) -> String {
        self.released = self.held.capacity();
        mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is left of pieces of text behind this thinking.
    fn left(thinking: &str, pieces: &[&str]) -> String {
        let mut echo = Echo::default();
        let mut left: String =
            pieces.iter().filter_map(|piece| echo.push(piece, thinking)).collect();
        left.extend(echo.flush(thinking));
        left
    }

    #[test]
    fn repeated_thinking_is_dropped_at_any_cut() {
        let text = "<think>\nTwo and two.\n</think>\n\nFour.";
        for at in 0..text.len() {
            for end in at..text.len() {
                let pieces = [&text[..at], &text[at..end], &text[end..]];
                assert_eq!(left("Two and two.\n", &pieces), "\n\nFour.", "{at} {end}");
            }
        }
    }

    #[test]
    fn other_text_is_unchanged_at_any_cut() {
        let texts = [
            "<think>Two and three.</think>Five.",
            "<think>Two and two. And more.</think>Four.",
            "<think>Two</think>Four.",
            "<think></think>Four.",
            "<thin air>",
            "<think>Two and two. And mo",
            "<th",
            "Four <think>Two and two.</think>",
        ];
        for text in texts {
            for at in 0..text.len() {
                for end in at..text.len() {
                    let pieces = [&text[..at], &text[at..end], &text[end..]];
                    assert_eq!(left("Two and two.", &pieces), text, "{at} {end}");
                }
            }
        }
    }

    #[test]
    fn text_without_thinking_is_not_held_back() {
        let mut echo = Echo::default();
        assert_eq!(echo.push("<think>", "").as_deref(), Some("<think>"));
        assert!(echo.is_over());
    }

    #[test]
    fn unfinished_repeat_is_dropped() {
        assert_eq!(left("Two and two.", &["<think>", "Two and"]), "");
    }
}
