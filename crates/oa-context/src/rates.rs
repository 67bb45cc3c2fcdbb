//! The costs of characters, in thousandths of a token.
//!
//! A non-negative least-squares fit to the counts of `o200k_base` on the texts in `tests/texts/tuned`, rounded.
//! Scripts not in those texts are guesses. The texts in `tests/texts/held_out` were not used for the fit; the
//! suite and the bench measure on them.

use crate::script::Letter;

/// The costs of a word's letters.
#[derive(Debug)]
pub(crate) struct Rate {
    /// The first letter after a space, which belongs to the word.
    pub(crate) spaced: u16,
    /// The first letter directly after one punctuation mark, which often belongs to the word.
    pub(crate) attached: u16,
    /// The first letter elsewhere.
    pub(crate) bare: u16,
    /// Further letters: the second to fourth, to the seventh, to the eleventh, and beyond.
    pub(crate) next: [u16; 4],
}

/// The languages that surrounding Latin letters seem to belong to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Latin {
    /// English and code.
    Plain,
    /// Languages with accents from ISO 8859-1, or with words that end in vowels.
    Western,
    /// Languages with other accents.
    Extended,
}

/// Returns the costs for a letter.
pub(crate) const fn rate(letter: Letter, latin: Latin) -> &'static Rate {
    let place = match letter {
        Letter::Lower | Letter::Upper | Letter::Accented => 3 * letter as usize + latin as usize,
        letter => 6 + letter as usize,
    };
    &RATES[place]
}

const fn word(spaced: u16, attached: u16, bare: u16, next: [u16; 4]) -> Rate {
    Rate { spaced, attached, bare, next }
}

/// Scripts without spaces, or syllabic scripts: the position in the word makes no difference.
const fn flowing(spaced: u16, attached: u16, bare: u16, next: u16) -> Rate {
    Rate { spaced, attached, bare, next: [next; 4] }
}

static RATES: [Rate; 26] = [
    // Lower, Upper, Accented: plain, western, extended.
    word(930, 340, 990, [17, 20, 50, 200]),
    word(960, 340, 990, [47, 80, 50, 200]),
    word(930, 500, 1000, [270, 330, 180, 290]),
    word(1200, 250, 1300, [0, 150, 200, 280]),
    word(1270, 250, 1300, [30, 120, 150, 300]),
    word(1200, 500, 1300, [120, 170, 220, 320]),
    word(1000, 500, 1000, [400, 450, 500, 600]),
    word(820, 340, 1000, [110, 490, 260, 200]),
    word(930, 500, 1000, [180, 720, 590, 600]),
    // Greek, Cyrillic, Hebrew, Arabic.
    word(940, 900, 1050, [210, 480, 570, 500]),
    word(1010, 870, 1050, [120, 140, 50, 200]),
    word(800, 900, 1120, [330, 330, 350, 500]),
    word(480, 900, 710, [420, 60, 210, 500]),
    // Devanagari and its signs, Indic.
    word(790, 1000, 1230, [185, 40, 70, 500]),
    flowing(1000, 900, 1000, 260),
    word(850, 900, 1030, [260, 420, 310, 720]),
    // Thai and its signs, Asian.
    flowing(1250, 900, 970, 430),
    flowing(1000, 900, 1000, 370),
    flowing(600, 900, 980, 510),
    // Hangul, Hiragana, Katakana.
    flowing(1140, 660, 1050, 530),
    flowing(1000, 900, 1100, 480),
    flowing(1000, 900, 1060, 350),
    // Han: joined, alone, unknown.
    flowing(1300, 900, 460, 640),
    flowing(1220, 1100, 1470, 1180),
    flowing(2300, 2300, 2340, 2830),
    // Other.
    flowing(1000, 900, 1000, 600),
];

pub(crate) const DIGITS: u16 = 1050;
/// Digits after a space, which is a token of its own.
pub(crate) const DIGITS_SPACED: u16 = 1900;
/// Every third digit after the first three.
pub(crate) const DIGITS_MORE: u16 = 1000;

pub(crate) const MARK: u16 = 890;
pub(crate) const MARK_SPACED: u16 = 990;
/// A further, different mark.
pub(crate) const MARK_COMMON: u16 = 75;
pub(crate) const MARK_RARE: u16 = 1010;
/// The same mark again, and from the fifth on.
pub(crate) const MARK_SAME: u16 = 330;
pub(crate) const MARK_SAME_LONG: u16 = 20;

pub(crate) const NEWLINE: u16 = 990;
/// After punctuation, to which it belongs.
pub(crate) const NEWLINE_AFTER_MARK: u16 = 50;
pub(crate) const NEWLINE_MORE: u16 = 20;

/// The second space of a run. The first belongs to the following word.
pub(crate) const SPACES: u16 = 740;
pub(crate) const SPACES_MORE: u16 = 20;
pub(crate) const TAB: u16 = 860;
pub(crate) const TAB_MORE: u16 = 170;

pub(crate) const WIDE: u16 = 1160;
pub(crate) const WIDE_MORE: u16 = 430;
pub(crate) const SYMBOL: u16 = 1160;
pub(crate) const SYMBOL_SAME: u16 = 300;

pub(crate) const EMOJI: u16 = 2300;
pub(crate) const EMOJI_FACE: u16 = 1540;
pub(crate) const EMOJI_FLAG: u16 = 1910;
pub(crate) const EMOJI_JOINER: u16 = 670;
pub(crate) const EMOJI_OLD: u16 = 1490;
pub(crate) const EMOJI_SAME: u16 = 1170;
pub(crate) const ASTRAL: u16 = 3500;
