//! Classifies characters as tokenizers treat them.

use crate::han::{Han, han};

/// A kind of character: letters of one script, or something else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Letter(Letter),
    Digit,
    Space,
    Newline,
    Tab,
    /// ASCII punctuation that vocabularies often join with more of it, such as `"`, `:` and `{`.
    CommonPunctuation,
    /// Other ASCII punctuation, and control characters.
    RarePunctuation,
    /// Punctuation as wide as a Chinese character.
    WidePunctuation,
    /// Dashes, curly quotes, arrows, currency signs.
    Symbol,
    Emoji,
    /// Characters that join emoji or modify one.
    EmojiJoiner,
    /// Faces, which vocabularies cover better than other emoji.
    EmojiFace,
    /// Half of a flag.
    EmojiFlag,
    /// Pictographs older than emoji.
    EmojiOld,
    /// Any other character of four bytes.
    Astral,
}

/// Letters of similar cost, in the order of the table of rates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Letter {
    Lower,
    Upper,
    /// Non-ASCII Latin letters.
    Accented,
    Greek,
    Cyrillic,
    Hebrew,
    Arabic,
    Devanagari,
    DevanagariSign,
    /// The other scripts of India and Sri Lanka.
    Indic,
    Thai,
    ThaiSign,
    /// Lao, Tibetan, Burmese, Georgian, Ethiopic, Khmer.
    Asian,
    Hangul,
    Hiragana,
    Katakana,
    HanJoined,
    HanAlone,
    HanUnknown,
    Other,
}

impl Letter {
    /// Returns the first of the kinds of letters that form words together with this one.
    pub(crate) fn family(self) -> Self {
        match self {
            Self::Lower | Self::Upper | Self::Accented => Self::Lower,
            Self::DevanagariSign => Self::Devanagari,
            Self::ThaiSign => Self::Thai,
            Self::HanAlone | Self::HanUnknown => Self::HanJoined,
            letter => letter,
        }
    }
}

impl Kind {
    pub(crate) fn of(character: char) -> Self {
        match character {
            '\0'..='\x7F' => Self::of_ascii(character as u8),
            '\u{4E00}'..='\u{9FFF}' => Self::Letter(match han(character) {
                Han::Alone => Letter::HanAlone,
                Han::Joined => Letter::HanJoined,
                Han::Unknown => Letter::HanUnknown,
            }),
            _ => Self::beyond_ascii(character),
        }
    }

    /// Returns the kind of an ASCII character.
    pub(crate) const fn of_ascii(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Letter(Letter::Lower),
            b' ' => Self::Space,
            b'A'..=b'Z' => Self::Letter(Letter::Upper),
            b'0'..=b'9' => Self::Digit,
            b'\n' | b'\r' => Self::Newline,
            b'\t' => Self::Tab,
            b'"' | b'\'' | b'(' | b')' | b'{' | b'}' | b'[' | b']' | b';' | b':' | b',' | b'.'
            | b'=' | b'<' | b'>' | b'/' | b'\\' | b'-' => Self::CommonPunctuation,
            _ => Self::RarePunctuation,
        }
    }

    fn beyond_ascii(character: char) -> Self {
        // The order of the arms counts: signs come before the block of their script, which includes them.
        let letter = match character {
            '\u{AA}' | '\u{B5}' | '\u{BA}' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' => {
                Letter::Accented
            }
            '\u{F8}'..='\u{36F}' | '\u{1E00}'..='\u{1EFF}' => Letter::Accented,
            '\u{80}'..='\u{BF}' | '\u{D7}' | '\u{F7}' => return Self::Symbol,
            '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}' => Letter::Greek,
            '\u{400}'..='\u{52F}' => Letter::Cyrillic,
            '\u{590}'..='\u{5FF}' => Letter::Hebrew,
            // The comma, the semicolon and the question mark.
            '\u{60C}' | '\u{61B}' | '\u{61F}' => return Self::Symbol,
            '\u{600}'..='\u{77F}' | '\u{8A0}'..='\u{8FF}' => Letter::Arabic,
            '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' => Letter::Arabic,
            '\u{900}'..='\u{903}' | '\u{93A}'..='\u{93C}' | '\u{93E}'..='\u{94F}' => {
                Letter::DevanagariSign
            }
            '\u{904}'..='\u{97F}' => Letter::Devanagari,
            '\u{980}'..='\u{DFF}' => Letter::Indic,
            '\u{E31}' | '\u{E34}'..='\u{E3A}' | '\u{E47}'..='\u{E4E}' => Letter::ThaiSign,
            '\u{E00}'..='\u{E7F}' => Letter::Thai,
            '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7A3}' => {
                Letter::Hangul
            }
            '\u{E80}'..='\u{10FF}' | '\u{1200}'..='\u{139F}' | '\u{1780}'..='\u{17FF}' => {
                Letter::Asian
            }
            '\u{3040}'..='\u{309F}' => Letter::Hiragana,
            '\u{30A0}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{FF66}'..='\u{FF9D}' => {
                Letter::Katakana
            }
            '\u{3400}'..='\u{4DBF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}' => {
                Letter::HanUnknown
            }
            '\u{3000}'..='\u{303F}' | '\u{FF00}'..='\u{FF65}' => return Self::WidePunctuation,
            _ => return Self::picture(character),
        };
        Self::Letter(letter)
    }

    fn picture(character: char) -> Self {
        match character {
            // The joiner, the color selector, keycaps, skin tones, regional flags.
            '\u{200D}' | '\u{FE0F}' | '\u{20E3}' => Self::EmojiJoiner,
            '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0020}'..='\u{E007F}' => Self::EmojiJoiner,
            '\u{2300}'..='\u{23FF}' | '\u{2600}'..='\u{27BF}' | '\u{2B00}'..='\u{2BFF}' => {
                Self::EmojiOld
            }
            '\u{2000}'..='\u{2BFF}' => Self::Symbol,
            '\u{1F1E6}'..='\u{1F1FF}' => Self::EmojiFlag,
            '\u{1F600}'..='\u{1F64F}' => Self::EmojiFace,
            '\u{1F000}'..='\u{1FAFF}' => Self::Emoji,
            '\u{10000}'.. => Self::Astral,
            _ => Self::Letter(Letter::Other),
        }
    }
}
