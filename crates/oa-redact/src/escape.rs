//! Escapes of single characters: percent-encoding, JSON and HTML.

use crate::strip::{LONGEST_HIDDEN, hidden};

/// A character in escaped form, or an invisible one that stands for nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Escape {
    /// Its length in bytes.
    pub(crate) length: usize,
    bytes: [u8; 4],
    count: usize,
}

impl Escape {
    /// Parses the escape at the start of a text.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        match text.first()? {
            b'%' => {
                let byte = u8::try_from(hex(text.get(1..3)?)?).ok()?;
                Some(Self { length: 3, bytes: [byte, 0, 0, 0], count: 1 })
            }
            b'\\' => json(text),
            b'&' => html(text),
            _ => None,
        }
    }

    /// Parses the invisible character or terminal escape sequence at the start of a text.
    pub(crate) fn invisible(text: &[u8]) -> Option<Self> {
        if matches!(text.first()?, b' '..=b'~' | b'\t' | b'\n' | b'\r') {
            return None;
        }
        // The cut may split a character; `valid` ends before it.
        let begin = &text[..text.len().min(LONGEST_HIDDEN)];
        let begin = begin.utf8_chunks().next()?.valid();
        let length = hidden(begin);
        (length > 0).then_some(Self { length, bytes: [0; 4], count: 0 })
    }

    /// Returns the bytes that it stands for.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.count]
    }

    fn of(length: usize, c: char) -> Self {
        let mut bytes = [0; 4];
        let count = c.encode_utf8(&mut bytes).len();
        Self { length, bytes, count }
    }
}

/// Returns the length of a partial escape at the start of a text that may have been cut off; 0 if there is
/// none.
pub(crate) fn broken(text: &[u8]) -> usize {
    let is_part: fn(&&u8) -> bool = match text.first() {
        Some(b'%') => |byte| byte.is_ascii_hexdigit(),
        Some(b'\\') => |byte| byte.is_ascii_hexdigit() || matches!(byte, b'u' | b'x'),
        Some(b'&') => |byte| byte.is_ascii_alphanumeric() || **byte == b'#',
        _ => return 0,
    };
    1 + text[1..].iter().take(LONGEST).take_while(is_part).count()
}

/// The longest escape in bytes, except for JSON surrogate pairs.
const LONGEST: usize = 10;

fn json(text: &[u8]) -> Option<Escape> {
    let unit = |at: usize| hex(text.get(at..)?.strip_prefix(b"\\u")?.get(..4)?);
    let c = match text.get(1)? {
        b'u' => {
            let high = unit(0)?;
            if let Some(c) = char::from_u32(high) {
                return Some(Escape::of(6, c));
            }
            // Only surrogates get here: a high one needs a low one behind it, and a low one cannot be first.
            let low = unit(6).filter(|low| high < 0xDC00 && (0xDC00..0xE000).contains(low))?;
            let c = char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))?;
            return Some(Escape::of(12, c));
        }
        // Not JSON: `\x2d` is how Python and JavaScript print strings.
        b'x' => return Some(Escape::of(4, char::from_u32(hex(text.get(2..4)?)?)?)),
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        quoted @ (b'"' | b'\'' | b'/' | b'\\') => char::from(*quoted),
        _ => return None,
    };
    Some(Escape::of(2, c))
}

fn html(text: &[u8]) -> Option<Escape> {
    let Some(number) = text.strip_prefix(b"&#") else {
        let end = text.iter().take(LONGEST).position(|byte| *byte == b';')?;
        let (_, c) = NAMES.iter().find(|(name, _)| name.as_bytes() == &text[1..end])?;
        return Some(Escape::of(end + 1, *c));
    };
    let (digits, radix) = match number {
        [b'x' | b'X', digits @ ..] => (digits, 16),
        digits => (digits, 10),
    };
    // Digits end at the first other byte. `checked_mul` fails for numbers beyond `u32`, and `from_u32` for
    // those beyond Unicode, so that `&#99999999999;` is no escape.
    let value = |byte: &u8| char::from(*byte).to_digit(radix);
    // Browsers accept any number of zeros in front.
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let values = digits[zeros..].iter().take(LONGEST).map_while(value);
    let add = |sum: u32, digit| sum.checked_mul(radix)?.checked_add(digit);
    let count = zeros + values.clone().count();
    let c = char::from_u32(values.clone().try_fold(0, add)?).filter(|_| count > 0)?;
    // Browsers accept numbers without a semicolon too.
    let semicolon = usize::from(digits.get(count) == Some(&b';'));
    Some(Escape::of(text.len() - digits.len() + count + semicolon, c))
}

fn hex(digits: &[u8]) -> Option<u32> {
    let add = |sum: u32, byte: &u8| Some(sum << 4 | char::from(*byte).to_digit(16)?);
    digits.iter().try_fold(0, add)
}

/// The HTML entity names of characters that a key may contain.
const NAMES: [(&str, char); 36] = [
    ("amp", '&'),
    ("AMP", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("grave", '`'),
    ("gt", '>'),
    ("GT", '>'),
    ("Hat", '^'),
    ("lbrace", '{'),
    ("lbrack", '['),
    ("lcub", '{'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("LT", '<'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("QUOT", '"'),
    ("rcub", '}'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("semi", ';'),
    ("sol", '/'),
    ("vert", '|'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(usize, char)>) {
        let expected = expected.map(|(length, c)| Escape::of(length, c));
        assert_eq!(Escape::read(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn escapes_are_decoded() {
        check("%2D9", Some((3, '-')));
        check(r"\u002d1", Some((6, '-')));
        check(r"\ud83d\ude00", Some((12, '\u{1f600}')));
        check(r"\x2D", Some((4, '-')));
        check(r"\/", Some((2, '/')));
        check("&#45;1", Some((5, '-')));
        check("&#x2d;", Some((6, '-')));
        check("&#45", Some((4, '-')));
        check("&quot;x", Some((6, '"')));
    }

    #[test]
    fn invalid_escapes_are_not_decoded() {
        for text in [
            "%2", "%+1", "%\u{e4}x", r"\u12", r"\ud83d", r"\ude00", r"\q", "\\", "&#;", "&nope;",
            "&", "a",
        ] {
            check(text, None);
        }
        check(&format!("&#{};", "9".repeat(20)), None);
    }
}
