//! Adds up what a text costs, character by character.

use std::fmt;

use crate::rates::{self, Latin, rate};
use crate::script::{Kind, Letter};

/// Where tokenizers part a text before they look for tokens, and what the parts cost.
///
/// It is fed with pieces, cut anywhere, and never goes back: what was added stays, so that a longer
/// text never costs less. Time is linear, memory is this.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// Thousandths of a token.
    cost: u64,
    run: Run,
    /// How many times the last character has just been said.
    repeated: u32,
    last: char,
    /// How strongly the words so far seem not to be English, by their accents and ends.
    western: u8,
    extended: u8,
}

/// Characters of a kind, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Run {
    Start,
    Digits { length: u32 },
    Emoji,
    Marks { length: u32, spaced: bool },
    Newlines,
    Spaces { length: u32 },
    Symbols,
    Tabs,
    Wide,
    Word { family: Letter, length: u32, spaced: bool },
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self { cost: 0, run: Run::Start, repeated: 0, last: '\0', western: 0, extended: 0 }
    }

    pub(crate) fn push(&mut self, text: &str) {
        for character in text.chars() {
            self.repeated =
                if character == self.last { self.repeated.saturating_add(1) } else { 0 };
            let cost = match Kind::of(character) {
                Kind::Letter(letter) => self.letter(letter, character),
                kind => self.other(kind),
            };
            self.cost = self.cost.saturating_add(u64::from(cost));
            self.last = character;
        }
    }

    /// Returns whole tokens: none for nothing, else at least one.
    pub(crate) fn tokens(&self) -> usize {
        let rounded = (self.cost.saturating_add(500) / 1_000).max(u64::from(self.cost > 0));
        usize::try_from(rounded).unwrap_or(usize::MAX)
    }

    fn letter(&mut self, letter: Letter, character: char) -> u16 {
        let family = letter.family();
        let latin = self.latin(letter, character);
        if let Run::Word { family: current, length, .. } = &mut self.run
            && *current == family
            // In `camelCase` a word begins with each capital.
            && (letter != Letter::Upper || self.last.is_ascii_uppercase())
        {
            let cost = rate(letter, latin).next[bucket(*length)];
            *length = length.saturating_add(1);
            return cost;
        }
        let rate = rate(letter, latin);
        let cost = match self.run {
            Run::Spaces { .. } => rate.spaced,
            Run::Marks { length: 1, spaced: false } | Run::Tabs => rate.attached,
            _ => rate.bare,
        };
        let spaced = matches!(self.run, Run::Spaces { .. });
        self.run = Run::Word { family, length: 1, spaced };
        cost
    }

    fn latin(&mut self, letter: Letter, character: char) -> Latin {
        if letter == Letter::Accented {
            let seen = if character < '\u{100}' { &mut self.western } else { &mut self.extended };
            *seen = (*seen + ACCENT).min(MOST);
        }
        match (self.extended >= ENOUGH, self.western >= ENOUGH) {
            (true, _) => Latin::Extended,
            (false, true) => Latin::Western,
            (false, false) => Latin::Plain,
        }
    }

    /// A word has ended. English ones seldom end in a vowel other than `e`.
    fn end_word(&mut self) {
        let Run::Word { family: Letter::Lower, length, spaced: true } = self.run else { return };
        self.extended = self.extended.saturating_sub(1);
        self.western = if length >= 3 && matches!(self.last, 'a' | 'i' | 'o' | 'u') {
            (self.western + VOWEL).min(MOST)
        } else {
            self.western.saturating_sub(1)
        };
    }

    fn other(&mut self, kind: Kind) -> u16 {
        self.end_word();
        let before = self.run;
        let spaced = matches!(before, Run::Spaces { .. });
        let is_same = self.repeated > 0;
        let (run, cost) = match (kind, before) {
            (Kind::Digit, Run::Digits { length }) => {
                let cost = if length.is_multiple_of(3) { rates::DIGITS_MORE } else { 0 };
                (Run::Digits { length: length.saturating_add(1) }, cost)
            }
            (Kind::Digit, _) => {
                let cost = if spaced { rates::DIGITS_SPACED } else { rates::DIGITS };
                (Run::Digits { length: 1 }, cost)
            }
            (Kind::Space, Run::Spaces { length }) => {
                let cost = if length == 1 { rates::SPACES } else { rates::SPACES_MORE };
                (Run::Spaces { length: length.saturating_add(1) }, cost)
            }
            (Kind::Space, _) => (Run::Spaces { length: 1 }, 0),
            (Kind::Newline, Run::Newlines) => (Run::Newlines, rates::NEWLINE_MORE),
            (Kind::Newline, Run::Marks { .. } | Run::Symbols) => {
                (Run::Newlines, rates::NEWLINE_AFTER_MARK)
            }
            (Kind::Newline, _) => (Run::Newlines, rates::NEWLINE),
            (Kind::Tab, Run::Tabs) => (Run::Tabs, rates::TAB_MORE),
            (Kind::Tab, _) => (Run::Tabs, rates::TAB),
            (Kind::CommonPunctuation | Kind::RarePunctuation, Run::Marks { length, spaced }) => {
                let cost = match (self.repeated, kind) {
                    (0, Kind::CommonPunctuation) => rates::MARK_COMMON,
                    (0, _) => rates::MARK_RARE,
                    (1..4, _) => rates::MARK_SAME,
                    _ => rates::MARK_SAME_LONG,
                };
                (Run::Marks { length: length.saturating_add(1), spaced }, cost)
            }
            (Kind::CommonPunctuation | Kind::RarePunctuation, _) => {
                let cost = if spaced { rates::MARK_SPACED } else { rates::MARK };
                (Run::Marks { length: 1, spaced }, cost)
            }
            (Kind::WidePunctuation, Run::Wide) => (Run::Wide, rates::WIDE_MORE),
            (Kind::WidePunctuation, _) => (Run::Wide, rates::WIDE),
            (Kind::Symbol, _) if is_same => (Run::Symbols, rates::SYMBOL_SAME),
            (Kind::Symbol, _) => (Run::Symbols, rates::SYMBOL),
            (Kind::EmojiJoiner, _) => (Run::Emoji, rates::EMOJI_JOINER),
            _ if is_same => (Run::Emoji, rates::EMOJI_SAME),
            (Kind::EmojiFace, _) => (Run::Emoji, rates::EMOJI_FACE),
            (Kind::EmojiFlag, _) => (Run::Emoji, rates::EMOJI_FLAG),
            (Kind::EmojiOld, _) => (Run::Emoji, rates::EMOJI_OLD),
            (Kind::Emoji, _) => (Run::Emoji, rates::EMOJI),
            (Kind::Astral | Kind::Letter(_), _) => (Run::Emoji, rates::ASTRAL),
        };
        self.run = run;
        cost
    }
}

/// JSON is written into it as it is, without a copy.
impl fmt::Write for Meter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

/// The place of a word's letter in [`rates::Rate::next`], by how many stand before it.
fn bucket(before: u32) -> usize {
    match before {
        ..=3 => 0,
        4..=6 => 1,
        7..=10 => 2,
        _ => 3,
    }
}

/// What one accent says about the language, and one vowel at the end of a word; a word without them
/// takes one away.
const ACCENT: u8 = 12;
const VOWEL: u8 = 3;
const ENOUGH: u8 = 6;
const MOST: u8 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: usize) {
        let mut meter = Meter::new();
        meter.push(text);
        assert_eq!(meter.tokens(), expected, "{text:?}: {} thousandths", meter.cost);
    }

    #[test]
    fn an_empty_text_has_no_tokens() {
        check("", 0);
    }

    #[test]
    fn common_words_are_a_token_each() {
        check("the cat sat on the mat", 6);
    }

    #[test]
    fn digits_are_counted_by_threes() {
        check("123", 1);
        check(&"7".repeat(300), 100);
    }

    #[test]
    fn indentation_is_a_token_whatever_its_depth() {
        check("{\n        x", 3);
        check("{\n                    x", 3);
    }

    #[test]
    fn rulers_are_cheap_and_letters_without_end_are_not() {
        check(&"=".repeat(100), 4);
        check(&"a".repeat(1_000), 199);
    }

    #[test]
    fn an_accent_makes_the_words_behind_it_dearer() {
        let mut plain = Meter::new();
        plain.push("Lodz weather");
        let mut extended = Meter::new();
        extended.push("Łódź weather");
        assert!(extended.cost > plain.cost);
    }
}
