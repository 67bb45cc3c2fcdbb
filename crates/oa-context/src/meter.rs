//! Adds up the cost of a text.

mod pairs;
mod steps;

#[cfg(test)]
mod plain;

use std::fmt;

use crate::rates::{self, Latin, rate};
use crate::script::{Kind, Letter};

use self::steps::{
    Beyond, COST, Class, END, MARK_PAIR, State, VOWEL_END, again, again_ascii, bucket,
};

/// Splits text where tokenizers split it before looking up tokens, and adds up the cost of the parts.
///
/// Text is pushed in arbitrary pieces, and added cost is never taken back, so a longer text never costs less.
/// Takes linear time and constant memory.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// In thousandths of a token.
    cost: u64,
    state: State,
    /// The script and length of the last word, if its letters are not Latin.
    word: (Letter, u8),
    /// The number of times the last character has been repeated; exact only where it matters.
    repeated: u32,
    last: char,
    /// A score for text that does not look English, from accents and word endings.
    western: u8,
    extended: u8,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            cost: 0,
            state: State::START,
            word: (Letter::Other, 0),
            repeated: 0,
            last: '\0',
            western: 0,
            extended: 0,
        }
    }

    pub(crate) fn push(&mut self, text: &str) {
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let length = if character.is_ascii() {
                self.push_ascii(rest.as_bytes())
            } else {
                self.push_char(character);
                character.len_utf8()
            };
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    /// Returns the cost in whole tokens: 0 for an empty text, otherwise at least 1.
    pub(crate) fn tokens(&self) -> usize {
        let rounded = (self.cost.saturating_add(500) / 1_000).max(u64::from(self.cost > 0));
        usize::try_from(rounded).unwrap_or(usize::MAX)
    }

    /// Adds the leading ASCII characters of a text and returns their number.
    fn push_ascii(&mut self, bytes: &[u8]) -> usize {
        let length = ascii_length(bytes);
        // Add the first one separately, so that every block has a preceding character.
        self.push_bytes(&bytes[..length.min(1)]);
        let mut rest = &bytes[..length];
        // `rest` begins with a character that was added; a step moves it to the last one of the block.
        while let Some(window) = rest.first_chunk() {
            if !self.push_block(window) {
                self.push_bytes(&window[1..]);
            }
            rest = &rest[BLOCK..];
        }
        if let Some((_, tail)) = rest.split_first() {
            self.push_bytes(tail);
        }
        length
    }

    /// Adds a block of ASCII characters at once; the window starts with the preceding character, which has
    /// already been added. Returns false without adding anything if the language changes within the block.
    fn push_block(&mut self, window: &[u8; BLOCK + 1]) -> bool {
        let [_, block @ ..] = window;
        let (mut state, mut sums) = (self.state, [0; BLOCK / 4]);
        let (quarters, _) = block.as_chunks();
        if state.is_plain() {
            // Four characters to a sum, so that `end_words` can tell in which order words end.
            for ([a, b, c, d], sum) in quarters.iter().zip(&mut sums) {
                state.step_pair(*a, *b, sum);
                state.step_pair(*c, *d, sum);
            }
        } else {
            for (quarter, sum) in quarters.iter().zip(&mut sums) {
                let quarter: &[u8; 4] = quarter;
                quarter.iter().for_each(|byte| state.step(Class::of(*byte), sum));
            }
        }
        let all: u32 = sums.iter().sum();
        let (mut cost, mut repeated) = (all & COST, 0);

        // The tables treat a mark after another of its class as a different one. Only here is it compared.
        if all >= MARK_PAIR {
            let more;
            (more, repeated) = self.repeats(window);
            cost = cost.wrapping_add_signed(more);
        }

        let words = all % MARK_PAIR;
        // A word that ends in a vowel raises a score and any other lowers it, so their order matters. Without
        // vowels one sum will do, and scores of 0 cannot change.
        if words >= VOWEL_END {
            if !self.end_words(&sums) {
                return false;
            }
        } else if words >= END && self.western | self.extended != 0 && !self.end_words(&[all]) {
            return false;
        }

        self.cost = self.cost.saturating_add(u64::from(cost));
        (self.state, self.repeated) = (state, repeated);
        self.last = char::from(block[BLOCK - 1]);
        true
    }

    /// Returns the extra cost of marks in a block that repeat the preceding character, beyond the tables, and
    /// the number of times that the last character has been repeated.
    #[inline(never)]
    fn repeats(&self, window: &[u8; BLOCK + 1]) -> (i32, u32) {
        let ([before @ .., _], [_, block @ ..]) = (window, window);
        let [bits, before] = [block, before].map(|bytes| u128::from_le_bytes(*bytes));
        // One byte for each character; its high bit says that the character repeats the one before it. Spaces
        // repeat most often but make no difference here.
        let mut same = !nonzero(bits ^ before) & nonzero(bits ^ SPACES);
        let (mut cost, mut repeated, mut next) = (0, self.repeated, 0);
        while same != 0 {
            let place = same.trailing_zeros() as usize / 8;
            repeated = if place == next { repeated.saturating_add(1) } else { 1 };
            next = place + 1;
            cost += again_ascii(block[place], repeated);
            // Clears the lowest bit that is set.
            same &= same - 1;
        }
        (cost, if next == BLOCK { repeated } else { 0 })
    }

    /// Updates the language for the words that end in these parts of a block. Returns false without changes if
    /// the language changes on the way.
    ///
    /// The order within a part is known: a part that contains a vowel ending is four characters long, so any
    /// other word end in it comes later, since the word with the vowel takes up a space and at least three
    /// letters.
    #[inline(never)]
    fn end_words(&mut self, sums: &[u32]) -> bool {
        let latin = self.latin();
        let (mut western, mut extended) = (self.western, self.extended);
        for sum in sums {
            let (ends, vowel_ends) = (ends(*sum), vowel_ends(*sum));
            let most = (western + VOWEL * vowel_ends).min(MOST);
            western = most.saturating_sub(ends);
            extended = extended.saturating_sub(ends + vowel_ends);
            // The score rises to `most` before it falls, and passes no other extremes on the way.
            if [most, western].iter().any(|western| seeming(*western, extended) != latin) {
                return false;
            }
        }
        (self.western, self.extended) = (western, extended);
        true
    }

    /// Adds ASCII characters one at a time.
    #[inline(never)]
    fn push_bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.push_byte(*byte));
    }

    fn push_byte(&mut self, byte: u8) {
        let (class, character) = (Class::of(byte), char::from(byte));
        self.repeat(character);
        let again = if self.repeated > 0 && class.is_mark() && self.state.is_marks() {
            again(class, self.repeated)
        } else {
            0
        };
        let cost = self.step(class).wrapping_add_signed(again);
        self.cost = self.cost.saturating_add(u64::from(cost));
    }

    /// Adds a non-ASCII character.
    fn push_char(&mut self, character: char) {
        self.repeat(character);
        let cost = match Kind::of(character) {
            Kind::Letter(Letter::Accented) => {
                self.accent(character);
                self.step(Class::Accented)
            }
            Kind::Letter(letter) => u32::from(self.letter(letter)),
            kind => u32::from(self.other(kind)),
        };
        self.cost = self.cost.saturating_add(u64::from(cost));
    }

    fn repeat(&mut self, character: char) {
        self.repeated = if character == self.last { self.repeated.saturating_add(1) } else { 0 };
        self.last = character;
    }

    /// Takes a step in the tables and returns its cost.
    fn step(&mut self, class: Class) -> u32 {
        let mut step = 0;
        self.state.step(class, &mut step);
        if (END..MARK_PAIR).contains(&step) {
            self.end_word(step >= VOWEL_END);
        }
        step & COST
    }

    /// Ends a word that follows a space. English words seldom end in a vowel other than `e`.
    fn end_word(&mut self, in_vowel: bool) {
        let before = self.latin();
        self.extended = self.extended.saturating_sub(1);
        self.western = if in_vowel {
            (self.western + VOWEL).min(MOST)
        } else {
            self.western.saturating_sub(1)
        };
        if self.latin() != before {
            self.state = self.state.with_latin(self.latin());
        }
    }

    fn accent(&mut self, character: char) {
        let seen = if character < '\u{100}' { &mut self.western } else { &mut self.extended };
        *seen = (*seen + ACCENT).min(MOST);
        self.state = self.state.with_latin(self.latin());
    }

    fn latin(&self) -> Latin {
        seeming(self.western, self.extended)
    }

    /// Adds a non-Latin letter.
    fn letter(&mut self, letter: Letter) -> u16 {
        let family = letter.family();
        let (current, length) = self.word;
        if self.state.is_letters() && current == family {
            self.word = (family, length.saturating_add(1));
            return rate(letter, Latin::Plain).next[bucket(length)];
        }
        let cost = self.state.first(letter);
        self.state = self.state.then(Beyond::Letter);
        self.word = (family, 1);
        cost
    }

    fn other(&mut self, kind: Kind) -> u16 {
        let is_same = self.repeated > 0;
        let is_wide = self.state.is_wide();
        self.step(Class::Other);
        let (beyond, cost) = match kind {
            Kind::WidePunctuation if is_wide => (Beyond::Wide, rates::WIDE_MORE),
            Kind::WidePunctuation => (Beyond::Wide, rates::WIDE),
            Kind::Symbol if is_same => (Beyond::Symbol, rates::SYMBOL_SAME),
            Kind::Symbol => (Beyond::Symbol, rates::SYMBOL),
            Kind::EmojiJoiner => (Beyond::Other, rates::EMOJI_JOINER),
            _ if is_same => (Beyond::Other, rates::EMOJI_SAME),
            Kind::EmojiFace => (Beyond::Other, rates::EMOJI_FACE),
            Kind::EmojiFlag => (Beyond::Other, rates::EMOJI_FLAG),
            Kind::EmojiOld => (Beyond::Other, rates::EMOJI_OLD),
            Kind::Emoji => (Beyond::Other, rates::EMOJI),
            // All others are letters or ASCII.
            _ => (Beyond::Other, rates::ASTRAL),
        };
        self.state = self.state.then(beyond);
        cost
    }
}

/// JSON is formatted straight into the meter, without a copy.
impl fmt::Write for Meter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

/// Returns the languages that a text seems to be in.
fn seeming(western: u8, extended: u8) -> Latin {
    match (extended >= ENOUGH, western >= ENOUGH) {
        (true, _) => Latin::Extended,
        (false, true) => Latin::Western,
        (false, false) => Latin::Plain,
    }
}

/// Returns the number of words after a space that end in a sum of steps, except those that end in a vowel.
fn ends(sum: u32) -> u8 {
    (sum % VOWEL_END / END) as u8
}

fn vowel_ends(sum: u32) -> u8 {
    (sum % MARK_PAIR / VOWEL_END) as u8
}

/// Returns the number of leading ASCII characters.
fn ascii_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(block) = bytes[length..].first_chunk() {
        let others = u128::from_le_bytes(*block) & HIGH;
        if others != 0 {
            return length + others.trailing_zeros() as usize / 8;
        }
        let is_first = length == 0;
        length += BLOCK;
        if is_first {
            // Usually many more follow, and larger chunks are checked faster.
            let (chunks, _) = bytes[length..].as_chunks::<64>();
            length += 64 * chunks.iter().take_while(|chunk| chunk.is_ascii()).count();
        }
    }
    length + bytes[length..].iter().take_while(|byte| byte.is_ascii()).count()
}

/// Sets the high bit of each nonzero byte and clears all other bits. Input bytes must be below 0x80.
/// For these, adding 0x7F sets the high bit unless the byte is 0, and carries nothing into the next byte.
fn nonzero(bytes: u128) -> u128 {
    (bytes + !HIGH) & HIGH
}

/// The number of characters in a block. Their cost stays below [`END`], and the count of words that end fits
/// between it and [`VOWEL_END`].
/// The largest cost of an ASCII character is 1,900.
const BLOCK: usize = 16;

const HIGH: u128 = 0x80 * EACH;
const SPACES: u128 = b' ' as u128 * EACH;
const EACH: u128 = u128::MAX / 0xFF;

/// The score of one accent and of one vowel at the end of a word; a word without either subtracts one.
const ACCENT: u8 = 12;
const VOWEL: u8 = 3;
const ENOUGH: u8 = 6;
const MOST: u8 = 24;

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::plain::Plain;
    use super::*;

    /// Checks that a text, cut at these points, costs the same as character by character, and so does anything
    /// that follows.
    fn check_by_rules(text: &str, cuts: &[usize]) {
        let (mut meter, mut plain) = (Meter::new(), Plain::new());
        let mut start = 0;
        for cut in cuts.iter().copied().chain([text.len()]) {
            if let Some(piece) = text.get(start..cut) {
                meter.push(piece);
                plain.push(piece);
                assert_eq!(meter.cost, plain.cost, "{text:?} up to {cut}");
                start = cut;
            }
        }
        for next in [
            "....a",
            "--",
            "\n",
            "\t",
            " ",
            "7777",
            "abcdefghijklmnop a",
            "CamelCase",
            "é",
            "Łódź a",
            "жж",
            "木",
            "。。",
            "——",
            "🙂🙂",
            "a the words that follow are plain English ones, again",
        ] {
            let (mut meter, mut plain) = (meter.clone(), plain.clone());
            meter.push(next);
            plain.push(next);
            assert_eq!(meter.cost, plain.cost, "{text:?}, then {next:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn tables_match_the_rules_at_any_cut(
            text in "([a-z]{0,20}[ aiou]{0,2}|[A-Za-z0-9 .,:{}\"\n\t-]{0,6}|[łéñßяא木🙂— 。]{0,3}|  |[a-z]{1,9} [a-z]{1,4}|[ a-z]{4,24}|( [a-z]{2,6}[aiou]){1,8}|={0,9}|/{1,4}|#{1,3}|0{1,8}|\\x00{0,5}|[ -~]{0,30}|[a-zA-Z]{0,30}|(\\. ){0,9}){0,12}",
            mut cuts in proptest::collection::vec(0..300_usize, 0..4),
        ) {
            cuts.sort_unstable();
            check_by_rules(&text, &cuts);
        }

        #[test]
        fn tables_match_the_rules_on_any_characters(text in "\\PC{0,60}|[\\x00-\\x7F]{0,80}|[\\x00-\\x7Fé—木🙂]{0,80}") {
            check_by_rules(&text, &[]);
        }
    }

    #[test]
    fn tables_match_the_rules_on_real_texts() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/texts");
        let mut count = 0;
        for set in ["held_out", "tuned"] {
            for entry in fs::read_dir(format!("{folder}/{set}")).unwrap() {
                let text = fs::read_to_string(entry.unwrap().path()).unwrap();
                check_by_rules(&text, &[]);
                let cuts: Vec<usize> = (0..text.len()).step_by(7).collect();
                check_by_rules(&text, &cuts);
                count += 1;
            }
        }
        assert!(count > 30, "{count} texts");
    }

    #[test]
    fn tables_match_the_rules_on_ascii_pairs() {
        for (one, other) in (0..0x80_u8).flat_map(|one| (0..0x80_u8).map(move |other| (one, other)))
        {
            let pair: String = [one, other].map(char::from).iter().collect();
            check_by_rules(&pair, &[]);
            check_by_rules(&format!(" {pair}{pair} word {pair}"), &[]);
        }
    }

    #[test]
    fn sums_of_a_block_do_not_overflow() {
        // The most expensive patterns in turn, without repetition; and words that end immediately.
        for pattern in [" 1", "1#", "#$", " a", "aB", "#\n", " a.", "\n\t", " abo"] {
            check_by_rules(&pattern.repeat(50), &[]);
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
    fn rulers_cost_less_than_long_words() {
        check(&"=".repeat(100), 4);
        check(&"a".repeat(1_000), 199);
    }

    #[test]
    fn accents_raise_the_cost_of_later_words() {
        let mut plain = Meter::new();
        plain.push("Lodz weather");
        let mut extended = Meter::new();
        extended.push("Łódź weather");
        assert!(extended.cost > plain.cost);
    }
}
