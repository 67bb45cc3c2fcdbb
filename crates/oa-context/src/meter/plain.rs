//! The reference implementation: the same rules, character by character and without tables.

use crate::rates::{self, Latin, rate};
use crate::script::{Kind, Letter};

#[derive(Clone, Debug)]
pub(super) struct Plain {
    pub(super) cost: u64,
    run: Run,
    /// The number of times the last character has been repeated.
    repeated: u32,
    last: char,
    western: u8,
    extended: u8,
}

/// A run of characters of one kind.
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

impl Plain {
    pub(super) fn new() -> Self {
        Self { cost: 0, run: Run::Start, repeated: 0, last: '\0', western: 0, extended: 0 }
    }

    pub(super) fn push(&mut self, text: &str) {
        text.chars().for_each(|character| self.push_char(character));
    }

    fn push_char(&mut self, character: char) {
        self.repeated = if character == self.last { self.repeated.saturating_add(1) } else { 0 };
        let cost = match Kind::of(character) {
            Kind::Letter(letter) => self.letter(letter, character),
            kind => self.other(kind),
        };
        self.cost = self.cost.saturating_add(u64::from(cost));
        self.last = character;
    }

    fn letter(&mut self, letter: Letter, character: char) -> u16 {
        let family = letter.family();
        let latin = self.latin(letter, character);
        if let Run::Word { family: current, length, .. } = &mut self.run
            && *current == family
            // In `camelCase`, each capital starts a word.
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
        self.seeming()
    }

    /// Returns the languages that the text so far seems to be in.
    fn seeming(&self) -> Latin {
        match (self.extended >= ENOUGH, self.western >= ENOUGH) {
            (true, _) => Latin::Extended,
            (false, true) => Latin::Western,
            (false, false) => Latin::Plain,
        }
    }

    /// Ends a word. English words seldom end in a vowel other than `e`.
    fn end_word(&mut self) {
        if let Run::Word { family: Letter::Lower, length, spaced: true } = self.run {
            self.end_spaced_word(length as usize, u8::try_from(self.last).unwrap_or_default());
        }
    }

    fn end_spaced_word(&mut self, length: usize, last: u8) {
        self.extended = self.extended.saturating_sub(1);
        self.western = if length >= 3 && matches!(last, b'a' | b'i' | b'o' | b'u') {
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

/// The index of a word's letter in [`rates::Rate::next`], by the number of letters before it.
const fn bucket(before: u32) -> usize {
    match before {
        ..=3 => 0,
        4..=6 => 1,
        7..=10 => 2,
        _ => 3,
    }
}

/// The score of one accent and of one vowel at the end of a word; a word without either subtracts one.
const ACCENT: u8 = 12;
const VOWEL: u8 = 3;
const ENOUGH: u8 = 6;
const MOST: u8 = 24;
