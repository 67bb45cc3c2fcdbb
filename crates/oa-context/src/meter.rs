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

    /// Adds a text: words of small ASCII letters at once, everything else character by character. Both ways
    /// add up to the same.
    pub(crate) fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut place = 0;
        while let Some(&byte) = bytes.get(place) {
            if byte.is_ascii_lowercase() {
                place = self.words(bytes, place);
            } else if byte.is_ascii() {
                self.push_char(char::from(byte));
                place += 1;
            } else {
                // It begins here: all before it was whole characters.
                let Some(character) = text.get(place..).and_then(|rest| rest.chars().next()) else {
                    return;
                };
                self.push_char(character);
                place += character.len_utf8();
            }
        }
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

    /// Adds a run of small letters, and all words behind it that one space and small letters make up. Returns
    /// the place behind them.
    fn words(&mut self, bytes: &[u8], start: usize) -> usize {
        // The cost of a word's letters up to each, without the first, and what its first letter costs.
        let mut latin = self.seeming();
        let mut sums = &SUMS[latin as usize];
        let mut count = small_letters(&bytes[start..]);
        let mut place = start + count;
        let (before, first, mut spaced) = match self.run {
            Run::Word { family: Letter::Lower, length, spaced } => (length as usize, 0, spaced),
            run => {
                let rate = rate(Letter::Lower, latin);
                let first = match run {
                    Run::Spaces { .. } => rate.spaced,
                    Run::Marks { length: 1, spaced: false } | Run::Tabs => rate.attached,
                    _ => rate.bare,
                };
                (0, first, matches!(run, Run::Spaces { .. }))
            }
        };
        let mut length = before + count;
        let mut cost = u64::from(first) + sum(sums, length) - sum(sums, before);
        while let [b' ', next, ..] = bytes[place..]
            && next.is_ascii_lowercase()
        {
            if spaced {
                self.end_spaced_word(length, bytes[place - 1]);
                latin = self.seeming();
                sums = &SUMS[latin as usize];
            }
            count = small_letters(&bytes[place + 1..]);
            (length, spaced) = (count, true);
            cost += u64::from(rate(Letter::Lower, latin).spaced) + sum(sums, count);
            place += 1 + count;
        }
        self.cost = self.cost.saturating_add(cost);
        self.run = Run::Word {
            family: Letter::Lower,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            spaced,
        };
        // Only marks are cheaper when they are repeated, and a letter is none.
        (self.repeated, self.last) = (0, char::from(bytes[place - 1]));
        place
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
        self.seeming()
    }

    /// Which languages the text so far seems to belong to.
    fn seeming(&self) -> Latin {
        match (self.extended >= ENOUGH, self.western >= ENOUGH) {
            (true, _) => Latin::Extended,
            (false, true) => Latin::Western,
            (false, false) => Latin::Plain,
        }
    }

    /// A word has ended. English ones seldom end in a vowel other than `e`.
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

/// JSON is written into it as it is, without a copy.
impl fmt::Write for Meter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

/// Returns how many small ASCII letters a text begins with.
fn small_letters(bytes: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let mut count = 0;
    // Eight bytes at once: a sum has the high bit of a byte where the byte is at least `a`, or beyond `z`.
    while let Some(chunk) = bytes[count..].first_chunk() {
        let chunk = u64::from_le_bytes(*chunk);
        let low = chunk & !HIGH;
        let from_a = low + (0x80 - 0x61) * EACH;
        let beyond_z = low + (0x80 - 0x7B) * EACH;
        let others = !(from_a & !beyond_z & !chunk) & HIGH;
        if others != 0 {
            return count + others.trailing_zeros() as usize / 8;
        }
        count += 8;
    }
    count + bytes[count..].iter().take_while(|byte| byte.is_ascii_lowercase()).count()
}

/// Returns what the letters of a word of this length cost, without the first.
fn sum(sums: &[u64; LENGTHS], length: usize) -> u64 {
    match sums.get(length) {
        Some(sum) => *sum,
        None => {
            let each = sums[LENGTHS - 1] - sums[LENGTHS - 2];
            sums[LENGTHS - 1] + each * (length - (LENGTHS - 1)) as u64
        }
    }
}

/// The sums for small letters, by the language that they seem to belong to.
static SUMS: [[u64; LENGTHS]; 3] =
    [sums(Latin::Plain), sums(Latin::Western), sums(Latin::Extended)];

/// From here on each letter costs the same.
const LENGTHS: usize = 16;

const fn sums(latin: Latin) -> [u64; LENGTHS] {
    let rate = rate(Letter::Lower, latin);
    let mut sums = [0; LENGTHS];
    let mut length = 2;
    while length < LENGTHS {
        sums[length] = sums[length - 1] + rate.next[bucket(length as u32 - 1)] as u64;
        length += 1;
    }
    sums
}

/// The place of a word's letter in [`rates::Rate::next`], by how many stand before it.
const fn bucket(before: u32) -> usize {
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
    use proptest::prelude::*;

    use super::*;

    /// What the text costs, cut there, and what it costs character by character.
    fn both_ways(text: &str, cuts: &[usize]) -> [Meter; 2] {
        let [mut fast, mut slow] = [Meter::new(), Meter::new()];
        let mut start = 0;
        for cut in cuts.iter().copied().chain([text.len()]) {
            if let Some(piece) = text.get(start..cut) {
                fast.push(piece);
                start = cut;
            }
        }
        text.chars().for_each(|character| slow.push_char(character));
        [fast, slow]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn words_at_once_cost_what_their_characters_do(
            text in "([a-z]{0,20}[ aiou]{0,2}|[A-Za-z0-9 .,:{}\"\n\t-]{0,6}|[łéñßяא木🙂 ]{0,3}|  |[a-z]{1,9} [a-z]{1,4}){0,12}",
            mut cuts in proptest::collection::vec(0..200_usize, 0..4),
        ) {
            cuts.sort_unstable();
            let [fast, slow] = both_ways(&text, &cuts);
            prop_assert_eq!(
                (fast.cost, fast.run, fast.last, fast.western, fast.extended),
                (slow.cost, slow.run, slow.last, slow.western, slow.extended)
            );
            // Marks that follow are as dear.
            let [mut fast, mut slow] = [fast, slow];
            fast.push("..a");
            "..a".chars().for_each(|character| slow.push_char(character));
            prop_assert_eq!(fast.cost, slow.cost);
        }
    }

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
