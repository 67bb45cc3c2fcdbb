//! The lengths of strings and numbers at the start of a text.

/// The escapes in a string.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a string has none, some, or some that need care")]
pub enum Escapes {
    /// None: the text is the string.
    #[default]
    None,
    /// Some, but no surrogates.
    Some,
    /// Surrogates, paired or not.
    Surrogates,
}

/// Returns the length of a string up to its closing quote, and its escapes; `None` if it does not end, or has control
/// characters or an escape that RFC 8259 does not define.
#[inline]
#[must_use]
pub fn string_length(bytes: &[u8]) -> Option<(usize, Escapes)> {
    let at = plain_length(bytes);
    match bytes.get(at)? {
        b'"' => Some((at, Escapes::None)),
        b'\\' => escaped_length(bytes, at),
        _ => None,
    }
}

/// Continues [`string_length`] from the first backslash.
#[inline]
fn escaped_length(bytes: &[u8], mut at: usize) -> Option<(usize, Escapes)> {
    let mut escapes = Escapes::Some;
    while bytes.get(at)? == &b'\\' {
        at += match bytes.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                let digits = bytes.get(at + 2..at + 6)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                // `\ud800` to `\udfff`, in either case.
                if matches!(digits, [b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F', ..]) {
                    escapes = Escapes::Surrogates;
                }
                6
            }
            _ => return None,
        };
        at += plain_length(bytes.get(at..)?);
    }
    (bytes[at] == b'"').then_some((at, escapes))
}

/// Returns the number of bytes before the first quote, backslash or control character, eight at a time.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // With this bit flipped, the quote directly follows the control characters.
        let ends = (below(word ^ each(0x02), 0x21) | below(word ^ each(b'\\'), 1)) & each(0x80);
        if ends != 0 {
            return number * 8 + ends.trailing_zeros() as usize / 8;
        }
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    bytes.len() - rest.len() + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Returns the length of the number at the start of `bytes`, by the grammar of RFC 8259.
#[inline]
#[must_use]
pub fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits =
        |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    match digits(at) {
        0 => return None,
        1 => at += 1,
        _ if bytes[at] == b'0' => return None,
        count => at += count,
    }
    if bytes.get(at) == Some(&b'.') {
        let count = digits(at + 1);
        if count == 0 {
            return None;
        }
        at += 1 + count;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let count = bytes.get(at + 1 + sign..).map_or(0, |_| digits(at + 1 + sign));
        if count == 0 {
            return None;
        }
        at += 1 + sign + count;
    }
    Some(at)
}

/// Returns the byte repeated eight times.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Sets the high bit of each byte below `limit`, exact up to the lowest of them; `limit` is 128 at most. The
/// other bits mean nothing.
#[inline]
const fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(each(limit)) & !word
}
