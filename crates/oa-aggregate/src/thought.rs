//! Text that the server marks as thinking, and puts between its own tags (QUIRKS row 109).

use std::mem;

use oa_json::{ThinkingTags, Trim};

use crate::blocks::Voice;
use crate::budget::Budget;
use crate::error::Error;
use crate::think::{Out, Splitter};

pub(crate) const OPEN: &str = "<thought>";
pub(crate) const CLOSE: &str = "</thought>";
pub(crate) const TAGS: &ThinkingTags = &ThinkingTags::new(OPEN, CLOSE);

/// The number of copies of text that is held back: joined, and as it is released.
const COPIES: usize = 3;

/// Separates text and thinking by the server's marks.
///
/// The mark decides what is thinking. The tags are removed: the opening one is at the start of marked text, and the
/// closing one at its end or at the start of the unmarked text after it.
#[derive(Debug, Default)]
pub(crate) struct Thought {
    /// True if the last text was marked.
    splitter: Option<Splitter>,
    /// Text that may be the beginning of the closing tag, and the length of its marked part.
    held: String,
    blank: Trim,
    marked: usize,
    /// The room of text that is no longer held back, in bytes.
    released: usize,
}

impl Thought {
    /// Returns true while the next text may begin with the closing tag.
    pub(crate) fn is_open(&self) -> bool {
        self.splitter.is_some()
    }

    /// Returns the number of bytes held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len() + self.splitter.as_ref().map_or(0, Splitter::held)
    }

    /// Makes room for marked text that is taken next.
    pub(crate) fn reserve_marked(&mut self, text: &str, budget: &mut Budget) -> Result<(), Error> {
        self.splitter.get_or_insert_with(|| Splitter::inside(TAGS)).reserve(text, budget)
    }

    /// Makes room for unmarked text that is taken next.
    pub(crate) fn reserve_plain(&mut self, text: &str, budget: &mut Budget) -> Result<(), Error> {
        // White space before a closing tag may be long.
        budget.reserve(&mut self.held, text.len(), COPIES)
    }

    /// Stops counting text that was released.
    pub(crate) fn release(&mut self, budget: &mut Budget) {
        budget.release(COPIES * mem::take(&mut self.released));
    }

    /// Releases unmarked text that is held back, because marked text follows: no tag can become complete.
    pub(crate) fn settle(&mut self, out: &mut Out<'_>) -> Result<(), Error> {
        if self.held.is_empty() { Ok(()) } else { self.flush(out) }
    }

    /// Takes marked text: thinking, and text after its tag. Unmarked text before it must be [settled](Self::settle).
    pub(crate) fn push_marked(&mut self, text: &str, out: &mut Out<'_>) -> Result<(), Error> {
        self.splitter.get_or_insert_with(|| Splitter::inside(TAGS)).push(text, out)
    }

    /// Takes unmarked text, and returns the part of it that belongs to the answer: everything but the tag that closes
    /// the marked text before it. Returns nothing while that tag may still become complete.
    pub(crate) fn push_plain(
        &mut self,
        text: &str,
        out: &mut Out<'_>,
    ) -> Result<Option<String>, Error> {
        let Some(splitter) = &mut self.splitter else { return Ok(Some(text.to_owned())) };
        let voice = splitter.voice();
        if self.held.is_empty() {
            // One half of a tag may be marked, and the other not.
            self.held.push_str(&splitter.take_held());
            self.marked = self.held.len();
        }
        self.held.push_str(text);
        let begin = self.blank.start_of(&self.held);
        let is_inside = voice == Voice::Thinking;
        if is_inside && begin.len() < CLOSE.len() && CLOSE.starts_with(begin) {
            return Ok(None);
        }
        // Decided: only this text could close the marked text. From the next on, a tag is text.
        self.splitter = None;
        let held = self.take_held();
        match held.trim_start().strip_prefix(CLOSE) {
            Some(rest) if is_inside => Ok(Some(rest.to_owned())),
            _ => {
                let (marked, plain) = held.split_at(self.marked);
                if !marked.is_empty() {
                    out(voice, marked)?;
                }
                Ok(Some(plain.to_owned()))
            }
        }
    }

    /// Releases the held-back text, because something else or nothing follows.
    pub(crate) fn flush(&mut self, out: &mut Out<'_>) -> Result<(), Error> {
        let Some(mut splitter) = self.splitter.take() else { return Ok(()) };
        let voice = splitter.voice();
        splitter.flush(out)?;
        let held = self.take_held();
        let (marked, plain) = held.split_at(self.marked.min(held.len()));
        for (voice, words) in [(voice, marked), (Voice::Text, plain)] {
            if !words.is_empty() {
                out(voice, words)?;
            }
        }
        Ok(())
    }

    fn take_held(&mut self) -> String {
        self.released += self.held.capacity();
        self.blank = Trim::default();
        mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Returns what pieces come to, each of which is marked or not: thinking in brackets.
    fn sorted(pieces: &[(&str, bool)]) -> String {
        let mut thought = Thought::default();
        let mut said = String::new();
        for (text, is_marked) in pieces {
            let mut out = |voice, words: &str| {
                said +=
                    &if voice == Voice::Thinking { format!("[{words}]") } else { words.to_owned() };
                Ok(())
            };
            if *is_marked {
                thought.settle(&mut out).unwrap();
                thought.push_marked(text, &mut out).unwrap();
            } else if let Some(plain) = thought.push_plain(text, &mut out).unwrap() {
                said += &plain;
            }
        }
        let _ = thought.flush(&mut |voice, words| {
            said += &if voice == Voice::Thinking { format!("[{words}]") } else { words.to_owned() };
            Ok(())
        });
        said.replace("][", "")
    }

    #[test]
    fn marks_decide_and_tags_are_removed() {
        assert_eq!(
            sorted(&[("<thought>Hm.", true), ("</thought>Yes", false), (".", false)]),
            "[Hm.]Yes."
        );
        assert_eq!(sorted(&[("<thought>Hm.</thought>", true), ("Yes.", false)]), "[Hm.]Yes.");
        assert_eq!(sorted(&[("<thought>Hm.</thought>Yes.", true)]), "[Hm.]Yes.");
        assert_eq!(sorted(&[("<thought>Hm.</th", true), ("ought>Yes.", false)]), "[Hm.]Yes.");
        assert_eq!(
            sorted(&[("<thought>Hm.", true), ("</th", false), ("ought>Yes.", false)]),
            "[Hm.]Yes."
        );
        assert_eq!(sorted(&[("Hm.", true), ("Yes.", false)]), "[Hm.]Yes.");
        assert_eq!(sorted(&[("Hm. 1 <", true), ("2", false)]), "[Hm. 1 <]2");
        assert_eq!(sorted(&[("Hm.", true), ("</th", false)]), "[Hm.]</th");
    }

    #[test]
    fn held_text_comes_before_marked_text() {
        assert_eq!(sorted(&[("Hm.", true), ("</th", false), ("more", true)]), "[Hm.]</th[more]");
        assert_eq!(sorted(&[("Hm.", true), ("\n", false), ("more", true)]), "[Hm.]\n[more]");
        let pieces = [("Hm.", true), ("</th", false), ("ab<", true), ("x", false)];
        assert_eq!(sorted(&pieces), "[Hm.]</th[ab<]x");
    }

    /// Runs of text, each of which is marked or not and consists of pieces. No two neighbors have the same mark.
    fn runs() -> impl Strategy<Value = Vec<(Vec<&'static str>, bool)>> {
        let parts =
            ["Hm.", "<", "</", "</th", "ought>", CLOSE, OPEN, "<tho", "ught>", "\n", " ", "x"];
        let run = vec(select(parts.to_vec()), 1..5);
        (vec(run, 0..6), any::<bool>()).prop_map(|(runs, first)| {
            runs.into_iter().enumerate().map(|(at, run)| (run, (at % 2 == 0) == first)).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn cuts_do_not_matter(runs in runs()) {
            let whole: Vec<(String, bool)> =
                runs.iter().map(|(pieces, mark)| (pieces.concat(), *mark)).collect();
            let whole: Vec<(&str, bool)> =
                whole.iter().map(|(text, mark)| (&**text, *mark)).collect();
            let cut: Vec<(&str, bool)> = runs
                .iter()
                .flat_map(|(pieces, mark)| pieces.iter().map(|piece| (*piece, *mark)))
                .collect();
            prop_assert_eq!(sorted(&cut), sorted(&whole));
        }
    }
}
