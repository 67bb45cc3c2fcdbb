//! The transition table for two ASCII characters at once, for text that seems to be plain English.
//!
//! Composed from the table for single characters at compile time. Other languages would need tables of their
//! own, 90 KB each, so they take single steps.

use super::steps::{ASCII_CLASSES, Class, RUNS, State};

/// Defines an enum of table offsets, one for each class of ASCII characters. Unlike an integer, an enum tells the
/// compiler the largest offset, so that it omits bounds checks.
macro_rules! offsets {
    ($(#[$doc:meta])* $name:ident, $size:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(usize)]
        enum $name {
            C0,
            C1 = $size,
            C2 = 2 * $size,
            C3 = 3 * $size,
            C4 = 4 * $size,
            C5 = 5 * $size,
            C6 = 6 * $size,
            C7 = 7 * $size,
            C8 = 8 * $size,
            C9 = 9 * $size,
            C10 = 10 * $size,
            C11 = 11 * $size,
            C12 = 12 * $size,
            C13 = 13 * $size,
            C14 = 14 * $size,
        }

        impl $name {
            const ALL: [Self; ASCII_CLASSES] = [
                Self::C0,
                Self::C1,
                Self::C2,
                Self::C3,
                Self::C4,
                Self::C5,
                Self::C6,
                Self::C7,
                Self::C8,
                Self::C9,
                Self::C10,
                Self::C11,
                Self::C12,
                Self::C13,
                Self::C14,
            ];
        }
    };
}

offsets! {
    /// The offset for the first character of a pair.
    First, ASCII_CLASSES * RUNS as usize
}
offsets! {
    /// The offset for the second character of a pair.
    Second, RUNS as usize
}

/// Room for the largest offsets and any byte as a state.
const SIZE: usize = First::C14 as usize + Second::C14 as usize + 256;

/// All tables in one struct, so that one register addresses them.
struct Tables {
    firsts: [First; 256],
    seconds: [Second; 256],
    costs: [u32; SIZE],
    states: [u8; SIZE],
}

static TABLES: Tables = {
    let mut tables = Tables {
        firsts: [First::C0; 256],
        seconds: [Second::C0; 256],
        costs: [0; SIZE],
        states: [0; SIZE],
    };
    let mut byte = 0;
    while byte < 0x80 {
        let class = Class::of_ascii(byte).number();
        tables.firsts[byte as usize] = First::ALL[class];
        tables.seconds[byte as usize] = Second::ALL[class];
        byte += 1;
    }
    let mut number = 0;
    while number < ASCII_CLASSES * ASCII_CLASSES * RUNS as usize {
        let run = number % RUNS as usize;
        let second = number / RUNS as usize % ASCII_CLASSES;
        let first = number / RUNS as usize / ASCII_CLASSES;
        let (cost, between) = State::plain(run as u8).stepped(Class::ALL[first]);
        // Steps keep the language, which only the meter changes, so `between` and `next` are plain too.
        let (more, next) = between.stepped(Class::ALL[second]);
        (tables.costs[number], tables.states[number]) = (cost + more, next.number());
        number += 1;
    }
    tables
};

impl State {
    /// Advances by two ASCII characters of plain English, and adds their cost and flags to `sum`.
    pub(super) fn step_pair(&mut self, first: u8, second: u8, sum: &mut u32) {
        let offset = TABLES.firsts[usize::from(first)] as usize
            + TABLES.seconds[usize::from(second)] as usize;
        let place = offset + usize::from(self.number());
        *sum += TABLES.costs[place];
        *self = Self::plain(TABLES.states[place]);
    }
}
