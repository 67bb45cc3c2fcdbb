//! The transition table of the meter: the cost of a character and the next state.
//!
//! A [`State`] is a single byte: the current run of characters and the language that the text seems to be in.
//! The state and the [`Class`] of the next character index the table. The rules are in [`step`], which is
//! evaluated for every state and class at compile time.

use crate::rates::{self, Latin, rate};
use crate::script::{Kind, Letter};

/// The class of a character. The discriminant is the start of its row in the tables. A row has an entry for every
/// value of a byte, so that any class and state are within bounds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u16)]
pub(super) enum Class {
    /// A lowercase letter that few English words end in.
    Vowel,
    /// Any other lowercase letter.
    Small = 0x100,
    Capital = 0x200,
    Digit = 0x300,
    Space = 0x400,
    Newline = 0x500,
    Tab = 0x600,
    // Marks are split so that different ones that often occur together seldom share a class.
    Closing = 0x700,
    Comma = 0x800,
    Opening = 0x900,
    Quote = 0xA00,
    Stop = 0xB00,
    /// Less common punctuation, and control characters.
    RareControl = 0xC00,
    RareOperator = 0xD00,
    RareSign = 0xE00,
    /// A non-ASCII Latin letter.
    Accented = 0xF00,
    /// A non-ASCII character that ends a word. Its cost is not in the table.
    Other = 0x1000,
}

impl Class {
    pub(super) const ALL: [Self; ASCII_CLASSES + 2] = [
        Self::Vowel,
        Self::Small,
        Self::Capital,
        Self::Digit,
        Self::Space,
        Self::Newline,
        Self::Tab,
        Self::Closing,
        Self::Comma,
        Self::Opening,
        Self::Quote,
        Self::Stop,
        Self::RareControl,
        Self::RareOperator,
        Self::RareSign,
        Self::Accented,
        Self::Other,
    ];

    /// Returns the index in [`Self::ALL`].
    pub(super) const fn number(self) -> usize {
        self as usize / 0x100
    }

    /// Returns the class of an ASCII character.
    pub(super) fn of(byte: u8) -> Self {
        TABLES.classes[usize::from(byte)]
    }

    pub(super) const fn is_mark(self) -> bool {
        self.mark().is_some()
    }

    /// Returns the index among the mark classes, for a mark.
    const fn mark(self) -> Option<u8> {
        match self as u16 {
            number @ 0x700..0xF00 => Some((number / 0x100 - 7) as u8),
            _ => None,
        }
    }

    const fn is_rare(self) -> bool {
        matches!(self, Self::RareControl | Self::RareOperator | Self::RareSign)
    }

    pub(super) const fn of_ascii(byte: u8) -> Self {
        match Kind::of_ascii(byte) {
            Kind::Letter(Letter::Upper) => Self::Capital,
            Kind::Letter(_) if matches!(byte, b'a' | b'i' | b'o' | b'u') => Self::Vowel,
            Kind::Letter(_) => Self::Small,
            Kind::Digit => Self::Digit,
            Kind::Space => Self::Space,
            Kind::Newline => Self::Newline,
            Kind::Tab => Self::Tab,
            Kind::CommonPunctuation => match byte {
                b')' | b'}' | b']' | b'>' | b'\'' => Self::Closing,
                b',' | b':' | b'=' | b'\\' => Self::Comma,
                b'(' | b'{' | b'[' | b'<' | b'-' => Self::Opening,
                b'"' | b'/' => Self::Quote,
                _ => Self::Stop,
            },
            _ => match byte {
                b'*' | b'&' | b'|' | b'+' | b'%' => Self::RareOperator,
                b'!'..=b'~' => Self::RareSign,
                _ => Self::RareControl,
            },
        }
    }
}

/// The number of classes of ASCII characters, which come first.
pub(super) const ASCII_CLASSES: usize = 15;

/// The run that a text ends in, and the language that it seems to be in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct State(u8);

impl State {
    pub(super) const START: Self = Self(OTHER);

    /// Advances by a character, and adds its cost and flags to `sum`; see [`COST`].
    pub(super) fn step(&mut self, class: Class, sum: &mut u32) {
        let (cost, next) = self.stepped(class);
        *sum += cost;
        *self = next;
    }

    /// Returns the state in text that seems to be plain English.
    pub(super) const fn plain(run: u8) -> Self {
        Self(run)
    }

    pub(super) const fn is_plain(self) -> bool {
        self.0 < RUNS
    }

    pub(super) const fn number(self) -> u8 {
        self.0
    }

    /// Returns the cost and flags of a character, and the state after it.
    pub(super) const fn stepped(self, class: Class) -> (u32, Self) {
        let place = class as usize + self.0 as usize;
        (TABLES.costs[place], Self(TABLES.states[place]))
    }

    pub(super) fn with_latin(self, latin: Latin) -> Self {
        Self(self.0 % RUNS + RUNS * latin as u8)
    }

    /// Returns the cost of a letter of another script that starts a word here.
    pub(super) fn first(self, letter: Letter) -> u16 {
        first(self.0 % RUNS, rate(letter, Latin::Plain))
    }

    /// Returns the state after a character whose cost is not in the tables.
    pub(super) fn then(self, beyond: Beyond) -> Self {
        let run = match beyond {
            Beyond::Letter => LETTERS,
            Beyond::Other => OTHER,
            Beyond::Symbol => SYMBOLS,
            Beyond::Wide => WIDE,
        };
        Self(self.0 / RUNS * RUNS + run)
    }

    /// Returns true if the text ends in letters of a script whose words are not in the tables.
    pub(super) fn is_letters(self) -> bool {
        self.0 % RUNS == LETTERS
    }

    pub(super) fn is_marks(self) -> bool {
        matches!(self.0 % RUNS, MARK..SYMBOLS)
    }

    pub(super) fn is_wide(self) -> bool {
        self.0 % RUNS == WIDE
    }
}

/// Runs of characters whose costs are not in the tables.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beyond {
    Letter,
    Other,
    Symbol,
    Wide,
}

/// The bits of a step, or of a sum of steps, that hold the cost in thousandths of a token.
pub(super) const COST: u32 = END - 1;
/// A word after a space ended; counted above the cost.
pub(super) const END: u32 = 1 << 16;
/// The same for a word of three letters or more with a vowel at its end; counted above those.
pub(super) const VOWEL_END: u32 = 1 << 22;
/// A mark follows one of its class and may repeat it; counted above the words.
pub(super) const MARK_PAIR: u32 = 1 << 26;

/// Returns the extra cost of repeating a mark, beyond the table, by the number of times it has just been
/// repeated.
pub(super) const fn again(class: Class, repeated: u32) -> i32 {
    let told = match class {
        _ if !class.is_mark() => return 0,
        _ if class.is_rare() => rates::MARK_RARE,
        _ => rates::MARK_COMMON,
    };
    let cost = if repeated < LONG { rates::MARK_SAME } else { rates::MARK_SAME_LONG };
    cost as i32 - told as i32
}

/// The same as [`again`] for an ASCII character, from a table where possible.
pub(super) fn again_ascii(byte: u8, repeated: u32) -> i32 {
    if repeated < LONG {
        i32::from(TABLES.again[usize::from(byte)])
    } else {
        again(Class::of(byte), repeated)
    }
}

/// A mark repeated this many times costs less: it is part of a rule such as `-----`.
const LONG: u32 = 4;

// Runs. Those of Latin letters come first: for each kind of word, one run per length from one letter on; the last
// of them stands for all greater lengths.

/// From this length on, each letter costs the same.
const LENGTHS: u8 = 11;

/// Words that start with a capital inside others, after marks and so on; then those whose last letter is a
/// capital; and the same after a space.
const BARE: u8 = 0;
const BARE_CAPITAL: u8 = LENGTHS;
const SPACED: u8 = 2 * LENGTHS;
const SPACED_CAPITAL: u8 = 3 * LENGTHS;
/// The last letter is one that few English words end in.
const SPACED_VOWEL: u8 = 4 * LENGTHS;

/// One digit, or four, seven and so on; then one and two more.
const DIGITS: u8 = 5 * LENGTHS;
const DIGITS_FULL: u8 = DIGITS + 2;
const SPACE: u8 = DIGITS + 3;
const SPACES: u8 = DIGITS + 4;
const NEWLINES: u8 = DIGITS + 5;
const TABS: u8 = DIGITS + 6;
/// A single mark that may belong to the following word, for each class of marks; then any others.
const MARK: u8 = DIGITS + 7;
const MARKS: u8 = MARK + 8;
const SYMBOLS: u8 = MARKS + 8;
const WIDE: u8 = SYMBOLS + 1;
/// Non-Latin letters.
const LETTERS: u8 = SYMBOLS + 2;
/// Images, and the empty text.
const OTHER: u8 = SYMBOLS + 3;
/// The number of runs; those of one language follow those of another.
pub(super) const RUNS: u8 = SYMBOLS + 4;

// All states fit into a byte: 3 languages of 82 runs each. The rest of each row is never reached.
const SIZE: usize = 256 * Class::ALL.len();

/// All tables in one struct, so that one register addresses them.
struct Tables {
    costs: [u32; SIZE],
    classes: [Class; 256],
    /// The extra cost of a mark beyond `costs`, the first few times it is repeated.
    again: [i16; 256],
    states: [u8; SIZE],
}

static TABLES: Tables = {
    let mut tables = Tables {
        costs: [0; SIZE],
        classes: [Class::Other; 256],
        again: [0; 256],
        states: [0; SIZE],
    };
    let mut byte = 0;
    while byte < 0x80 {
        let class = Class::of_ascii(byte);
        tables.classes[byte as usize] = class;
        tables.again[byte as usize] = again(class, 1) as i16;
        byte += 1;
    }
    let latins = [Latin::Plain, Latin::Western, Latin::Extended];
    let mut number = 0;
    while number < Class::ALL.len() * latins.len() * RUNS as usize {
        let run = (number % RUNS as usize) as u8;
        let latin = latins[number / RUNS as usize % latins.len()];
        let class = Class::ALL[number / RUNS as usize / latins.len()];
        let (cost, next) = step(run, class, latin);
        let first = RUNS * latin as u8;
        let place = class as usize + (first + run) as usize;
        (tables.costs[place], tables.states[place]) = (cost, first + next);
        number += 1;
    }
    tables
};

/// Returns the cost of a character after a run, with the word that it ends, and the resulting run.
const fn step(run: u8, class: Class, latin: Latin) -> (u32, u8) {
    // `the cat` costs 990 + 17 + 17 for a bare word, 0 for the space, and 930 + 17 + 17 for a word with its
    // space: 1,988 thousandths, which are 2 tokens.
    let is_spaced = matches!(run, SPACE | SPACES);
    let (cost, next) = match class {
        Class::Vowel | Class::Small => return letter(run, class, rate(Letter::Lower, latin)),
        Class::Capital => return letter(run, class, rate(Letter::Upper, latin)),
        Class::Accented => return letter(run, class, rate(Letter::Accented, latin)),
        Class::Digit => match run {
            DIGITS_FULL => (rates::DIGITS_MORE, DIGITS),
            DIGITS..DIGITS_FULL => (0, run + 1),
            _ if is_spaced => (rates::DIGITS_SPACED, DIGITS),
            _ => (rates::DIGITS, DIGITS),
        },
        Class::Space => match run {
            SPACE => (rates::SPACES, SPACES),
            SPACES => (rates::SPACES_MORE, SPACES),
            _ => (0, SPACE),
        },
        Class::Newline => match run {
            NEWLINES => (rates::NEWLINE_MORE, NEWLINES),
            MARK..=SYMBOLS => (rates::NEWLINE_AFTER_MARK, NEWLINES),
            _ => (rates::NEWLINE, NEWLINES),
        },
        Class::Tab => match run {
            TABS => (rates::TAB_MORE, TABS),
            _ => (rates::TAB, TABS),
        },
        Class::Other => (0, OTHER),
        _ => match (run, class.mark()) {
            (_, None) => (0, OTHER),
            (MARK..SYMBOLS, Some(mark)) if class.is_rare() => (rates::MARK_RARE, MARKS + mark),
            (MARK..SYMBOLS, Some(mark)) => (rates::MARK_COMMON, MARKS + mark),
            (_, Some(mark)) if is_spaced => (rates::MARK_SPACED, MARKS + mark),
            (_, Some(mark)) => (rates::MARK, MARK + mark),
        },
    };
    // Letters have returned above, so only what is not a letter ends a word.
    let flag = match run {
        // `MARK` and `MARKS` are each followed by one run for each of the eight classes of marks.
        MARK..SYMBOLS => match class.mark() {
            Some(mark) if (run - MARK) % 8 == mark => MARK_PAIR,
            _ => 0,
        },
        SPACED_VOWEL..DIGITS if run - SPACED_VOWEL >= 2 => VOWEL_END,
        SPACED..DIGITS => END,
        _ => 0,
    };
    (cost as u32 + flag, next)
}

/// The same for a Latin letter.
const fn letter(run: u8, class: Class, rate: &rates::Rate) -> (u32, u8) {
    let is_word = run < DIGITS;
    let is_behind_capital =
        matches!(run, BARE_CAPITAL..SPACED) || matches!(run, SPACED_CAPITAL..SPACED_VOWEL);
    // In `camelCase`, each capital starts a word.
    let continues = is_word && (is_behind_capital || !matches!(class, Class::Capital));
    let (cost, is_spaced, length) = if continues {
        let before = run % LENGTHS + 1;
        let length = if before < LENGTHS { before + 1 } else { LENGTHS };
        (rate.next[bucket(before)], run >= SPACED, length)
    } else {
        (first(run, rate), matches!(run, SPACE | SPACES), 1)
    };
    let form = match (is_spaced, class) {
        (true, Class::Capital) => SPACED_CAPITAL,
        (true, Class::Vowel) => SPACED_VOWEL,
        (true, _) => SPACED,
        (false, Class::Capital) => BARE_CAPITAL,
        (false, _) => BARE,
    };
    (cost as u32, form + length - 1)
}

/// Returns the cost of the first letter of a word.
const fn first(run: u8, rate: &rates::Rate) -> u16 {
    match run {
        SPACE | SPACES => rate.spaced,
        MARK..MARKS | TABS => rate.attached,
        _ => rate.bare,
    }
}

/// The index of a word's letter in [`rates::Rate::next`], by the number of letters before it.
pub(super) const fn bucket(before: u8) -> usize {
    match before {
        ..=3 => 0,
        4..=6 => 1,
        7..=10 => 2,
        _ => 3,
    }
}
