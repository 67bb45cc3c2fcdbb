use std::borrow::Cow;
use std::fmt::{self, Write as _};

use crate::error::{Error, Result};

/// One escape of a JSON string: `\n`, `\u00e9`, or a pair of surrogates such as `\ud83d\ude42`.
///
/// All readers in these crates decode escapes with it. It reports half a surrogate pair and a text that ends within an
/// escape, and leaves the decision to the reader.
///
/// ```
/// use oa_json::{Escape, EscapeError};
///
/// let pair = Escape::read(r"\ud83d\ude42 and so on")?;
/// assert_eq!((pair.character, pair.length), (Some('🙂'), 12));
/// assert_eq!(Escape::read(r"\ud83dx")?.character, None); // half a pair
/// assert_eq!(Escape::read(r"\ud83d"), Err(EscapeError::Incomplete)); // the other half may come
/// assert_eq!(Escape::read(r"\Temp"), Err(EscapeError::Unknown));
/// # Ok::<(), EscapeError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Escape {
    /// The character; `None` for half a surrogate pair.
    pub character: Option<char>,
    /// The length of the escape in bytes, including the backslash: 2, 6, or 12 for a surrogate pair.
    pub length: usize,
}

/// The reason why a text does not start with an escape.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a text either can go on to be an escape or cannot")]
pub enum EscapeError {
    /// The text ends within the escape, or after the first half of a surrogate pair.
    Incomplete,
    /// JSON has no such escape.
    Unknown,
}

/// The length of `\uXXXX`.
const UNIT: usize = 6;

impl Escape {
    /// Reads the escape at the start of `text`. More text may follow.
    ///
    /// # Errors
    ///
    /// [`EscapeError::Incomplete`] if more text is needed, [`EscapeError::Unknown`] if the text cannot become an escape.
    pub fn read(text: &str) -> Result<Self, EscapeError> {
        let bytes = text.as_bytes();
        match bytes {
            [b'\\', b'u', ..] => Self::read_units(bytes),
            [b'\\', letter, ..] => match short(*letter) {
                Some(character) => Ok(Self { character: Some(character), length: 2 }),
                None => Err(EscapeError::Unknown),
            },
            [b'\\'] | [] => Err(EscapeError::Incomplete),
            _ => Err(EscapeError::Unknown),
        }
    }

    /// Reads the escape at the start of `text`, which no more text follows: the first half of a surrogate pair at its
    /// end is a lone surrogate.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_last(text: &str) -> Result<Self, EscapeError> {
        match Self::read(text) {
            // From 6 bytes on, only the second half of a pair can be missing.
            Err(EscapeError::Incomplete) if text.len() >= UNIT => {
                Ok(Self { character: None, length: UNIT })
            }
            read => read,
        }
    }

    fn read_units(text: &[u8]) -> Result<Self, EscapeError> {
        let first = unit(text)?;
        let lone = Ok(Self { character: char::from_u32(first), length: UNIT });
        if !(0xD800..0xDC00).contains(&first) {
            return lone;
        }
        match unit(&text[UNIT..]) {
            Ok(second @ 0xDC00..=0xDFFF) => {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                Ok(Self { character: char::from_u32(code), length: 2 * UNIT })
            }
            // The other half may still come.
            Err(EscapeError::Incomplete) => Err(EscapeError::Incomplete),
            Ok(_) | Err(EscapeError::Unknown) => lone,
        }
    }
}

/// The halves of surrogate pairs at the ends of a JSON string.
///
/// A server that cuts text between two units of UTF-16 leaves one half at the end of a string and the other one at the
/// start of the next.
///
/// ```
/// use oa_json::Halves;
///
/// let (first, second) = (Halves::of(r"Hi \ud83d"), Halves::of(r"\ude42!"));
/// assert_eq!(first.end.zip(second.start).and_then(Halves::join), Some('🙂'));
/// assert!(Halves::of(r"a whole \ud83d\ude42").are_none() && Halves::of(r"\\ud83d").are_none());
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Halves {
    /// The second half of a pair, with which the string begins.
    pub start: Option<u16>,
    /// The first half of a pair, with which the string ends.
    pub end: Option<u16>,
}

impl Halves {
    /// Finds the halves in the contents of a JSON string, which must be valid.
    #[must_use]
    pub fn of(raw: &str) -> Self {
        let half = |at: usize| u16::try_from(unit(raw.as_bytes().get(at..)?).ok()?).ok();
        let start = half(0).filter(|unit| (0xDC00..0xE000).contains(unit));
        let last = raw.len().saturating_sub(UNIT);
        // An escaped backslash begins no escape.
        let slashes =
            raw.as_bytes()[..last].iter().rev().take_while(|byte| **byte == b'\\').count();
        let end = half(last).filter(|unit| slashes % 2 == 0 && (0xD800..0xDC00).contains(unit));
        Self { start, end }
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn are_none(self) -> bool {
        self == Self::default()
    }

    /// Returns the character of two halves; `None` if they are not halves.
    #[must_use]
    pub fn join(halves: (u16, u16)) -> Option<char> {
        let mut read = char::decode_utf16([halves.0, halves.1]);
        read.next()?.ok().filter(|_| read.next().is_none())
    }
}

/// The character of an escape of two bytes.
#[inline]
fn short(letter: u8) -> Option<char> {
    Some(match letter {
        b'"' | b'\\' | b'/' => char::from(letter),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}

/// Reads `\uXXXX`. The first wrong byte decides, so `\u1x` is unknown although it is short.
#[inline]
fn unit(text: &[u8]) -> Result<u32, EscapeError> {
    let mut unit = 0;
    for at in 0..UNIT {
        let Some(&byte) = text.get(at) else { return Err(EscapeError::Incomplete) };
        match (at, byte, char::from(byte).to_digit(16)) {
            (0, b'\\', _) | (1, b'u', _) => {}
            (2.., _, Some(digit)) => unit = unit << 4 | digit,
            _ => return Err(EscapeError::Unknown),
        }
    }
    Ok(unit)
}

impl fmt::Display for EscapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incomplete => "the text ends within an escape",
            Self::Unknown => "not a JSON escape",
        })
    }
}

impl std::error::Error for EscapeError {}

/// Decodes the contents of a JSON string, the text between its quotes, as serde_json does. Text without escapes is
/// borrowed.
///
/// ```
/// use oa_json::unescape;
///
/// assert_eq!(unescape(r"caf\u00e9\n")?, "café\n");
/// assert!(unescape(r"\ud83d").is_err());
/// # Ok::<(), oa_json::Error>(())
/// ```
///
/// # Errors
///
/// [`Syntax`](crate::ErrorKind::Syntax) if the text is not valid between quotes: an escape unknown to JSON, half a
/// surrogate pair, a quote, or a control character.
pub fn unescape(raw: &str) -> Result<Cow<'_, str>> {
    let special = |byte: u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    let Some(first) = raw.bytes().position(special) else { return Ok(Cow::Borrowed(raw)) };
    let mut text = String::with_capacity(raw.len());
    text.push_str(&raw[..first]);
    let mut rest = &raw[first..];
    while !rest.is_empty() {
        let plain = rest.bytes().position(special).unwrap_or(rest.len());
        text.push_str(&rest[..plain]);
        rest = &rest[plain..];
        match rest.as_bytes().first() {
            None => {}
            Some(b'\\') => {
                let escape = Escape::read_last(rest).map_err(|_| unknown_escape(rest))?;
                text.push(escape.character.ok_or_else(|| lone_surrogate(rest))?);
                rest = &rest[escape.length..];
            }
            Some(_) => return Err(unescaped(rest)),
        }
    }
    Ok(Cow::Owned(text))
}

/// Decodes the contents of a JSON string and appends them to `text`. It never fails: half a surrogate pair becomes
/// U+FFFD, and an escape unknown to JSON is kept as written.
///
/// ```
/// let mut text = String::new();
/// oa_json::unescape_lossy(r"\ud83d \u00e9 C:\Temp", &mut text);
/// assert_eq!(text, r"� é C:\Temp");
/// ```
pub fn unescape_lossy(raw: &str, text: &mut String) {
    let mut rest = raw;
    while let Some(at) = backslash(rest.as_bytes()) {
        text.push_str(&rest[..at]);
        // Most escapes are of two bytes, and this runs for every piece of text that a model writes.
        if let Some(character) = rest.as_bytes().get(at + 1).copied().and_then(short) {
            text.push(character);
            rest = &rest[at + 2..];
            continue;
        }
        rest = &rest[at..];
        let (character, length) = match Escape::read_last(rest) {
            Ok(escape) => (escape.character.unwrap_or(char::REPLACEMENT_CHARACTER), escape.length),
            // Only the backslash: what follows may be a character or the next escape.
            Err(_) => ('\\', 1),
        };
        text.push(character);
        rest = &rest[length..];
    }
    text.push_str(rest);
}

/// Replaces the escapes of lone surrogates in a JSON text by U+FFFD; everything else stays. JavaScript and Python write
/// them for a text that was cut within a character, and serde_json refuses them.
///
/// ```
/// let json = oa_json::replace_lone_surrogates(r#"["cut: \ud83d", "\ud83d\ude42"]"#);
/// assert_eq!(json, "[\"cut: \u{fffd}\", \"\\ud83d\\ude42\"]");
/// ```
#[must_use]
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let (mut replaced, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(next) = json.get(at..).and_then(|rest| backslash(rest.as_bytes())) {
        at += next;
        match Escape::read_last(&json[at..]) {
            Ok(Escape { character: None, length }) => {
                replaced.push_str(&json[copied..at]);
                replaced.push(char::REPLACEMENT_CHARACTER);
                at += length;
                copied = at;
            }
            Ok(escape) => at += escape.length,
            // Not JSON, which the reader of the text will say.
            Err(_) => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    replaced.push_str(&json[copied..]);
    Cow::Owned(replaced)
}

/// Escapes the control characters in the strings of a JSON text; everything else stays. Models write line breaks and tabs
/// as they are, above all in code, and serde_json refuses them.
///
/// ```
/// let json = oa_json::escape_control_characters("{\"code\": \"if x:\n\treturn\"}");
/// assert_eq!(json, r#"{"code": "if x:\u000a\u0009return"}"#);
/// ```
#[must_use]
pub fn escape_control_characters(json: &str) -> Cow<'_, str> {
    let (mut escaped, mut copied, mut in_string) = (String::new(), 0, false);
    let mut bytes = json.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            // What it escapes ends no string, and is no control character in JSON.
            b'\\' => _ = bytes.next(),
            ..b' ' if in_string => {
                escaped.push_str(&json[copied..at]);
                // This cannot fail: it is memory.
                _ = write!(escaped, "\\u{byte:04x}");
                copied = at + 1;
            }
            _ => {}
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    escaped.push_str(&json[copied..]);
    Cow::Owned(escaped)
}

/// Finds the first backslash, eight bytes at a time. Most strings with escapes are so short that calling `memchr` takes
/// longer.
#[inline]
fn backslash(raw: &[u8]) -> Option<usize> {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let (words, rest) = raw.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word) ^ u64::from_le_bytes([b'\\'; 8]);
        // A high bit for each byte that is zero, exact up to the lowest of them.
        let zeros = word.wrapping_sub(EACH) & !word & u64::from_le_bytes([0x80; 8]);
        if zeros != 0 {
            return Some(number * 8 + zeros.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&byte| byte == b'\\')?;
    Some(raw.len() - rest.len() + at)
}

/// The error for a text that begins with an escape that JSON does not have, and how to write what was meant.
pub(crate) fn unknown_escape(rest: &str) -> Error {
    Error::syntax(match rest.chars().nth(1) {
        Some('u') => "a string contains `\\u` without four hexadecimal digits".to_owned(),
        Some(other) => {
            format!("a string contains `\\{}`: write `\\\\` for a backslash", other.escape_debug())
        }
        None => "a string ends with a backslash".to_owned(),
    })
}

/// The error for a text that begins with half of a surrogate pair.
pub(crate) fn lone_surrogate(rest: &str) -> Error {
    let unit = rest.get(..UNIT).unwrap_or(rest);
    Error::syntax(format!("a string contains an unpaired surrogate, `{unit}`"))
}

/// The error for a text that begins with a character that must be escaped.
pub(crate) fn unescaped(rest: &str) -> Error {
    let first = rest.chars().next().unwrap_or_default();
    Error::syntax(format!("a string contains `{}`, which must be escaped", first.escape_debug()))
}
