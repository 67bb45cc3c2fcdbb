//! Removes terminal control characters and invisible characters: whole escape sequences, not only their first
//! character.

use std::borrow::Cow;

use crate::visible::is_format;

/// Removes everything that a terminal acts on or does not show: escape sequences, control characters except
/// line breaks and tabs, bidirectional controls, and zero-width characters.
///
/// For foreign text shown for information, such as an error message. Where a person makes a decision based on
/// the text, use [`visible`](crate::visible()), which hides nothing.
///
/// ```
/// use oa_redact::strip_invisible;
///
/// assert_eq!(strip_invisible("\u{1b}[2J\u{1b}]0;title\u{7}all \u{202e}good\u{8}"), "all good");
/// ```
#[must_use]
pub fn strip_invisible(text: &str) -> Cow<'_, str> {
    let mut shown: Option<String> = None;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let hidden = if c == '\n' || c == '\t' { 0 } else { hidden(&text[at..]) };
        if hidden > 0 {
            shown.get_or_insert_with(|| text[..at].to_owned());
            at += hidden;
        } else {
            // Nothing is copied before the first hidden character.
            shown.iter_mut().for_each(|shown| shown.push(c));
            at += c.len_utf8();
        }
    }
    shown.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Returns the length in bytes of the escape sequence or invisible character at the start of a text; 0 if there
/// is none.
pub(crate) fn hidden(text: &str) -> usize {
    let Some(c) = text.chars().next() else { return 0 };
    match c {
        '\u{1b}' => {
            let rest = &text[1..];
            1 + rest.chars().next().map_or(0, |kind| match kind {
                // ECMA-48: CSI, OSC, DCS, SOS, PM and APC, which all go up to an end of their own.
                '[' | ']' | 'P' | 'X' | '^' | '_' => 1 + sequence(kind, &rest[1..]),
                // `ESC c` resets the terminal, `ESC ( 0` selects a character set.
                ' '..='/' => {
                    let end = rest.find(|c| !matches!(c, ' '..='/')).filter(|end| *end <= LONGEST);
                    end.map_or(0, |end| end + usize::from(rest.as_bytes()[end].is_ascii_graphic()))
                }
                '0'..='~' => 1,
                _ => 0,
            })
        }
        // The same introducers as single characters.
        '\u{9b}' => 2 + sequence('[', &text[2..]),
        '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => 2 + sequence(']', &text[2..]),
        _ if c.is_control() || is_format(c) => c.len_utf8(),
        _ => 0,
    }
}

/// The longest sequence, in characters; anything longer is not a sequence and is kept.
const LONGEST: usize = 256;

/// The largest result of `hidden`, in bytes.
pub(crate) const LONGEST_HIDDEN: usize = 4 * LONGEST + 8;

/// Returns the length of a control sequence after its introducer, or 0 if it does not end: without its
/// introducer it is plain text.
fn sequence(kind: char, text: &str) -> usize {
    if kind == '[' {
        // Parameter and intermediate bytes are 0x20 to 0x3f. The first other byte must be a final byte: a
        // sequence that breaks off, as in `ESC [ 3 \u{e4}`, is text. A final byte is ASCII, so the sequence
        // ends at a character boundary.
        let end = text.bytes().take(LONGEST).position(|byte| !matches!(byte, b' '..=b'?'));
        return end
            .filter(|&end| matches!(text.as_bytes()[end], b'@'..=b'~'))
            .map_or(0, |end| end + 1);
    }
    // Strings end with BEL or ST.
    let text = text.char_indices().nth(LONGEST).map_or(text, |(end, _)| &text[..end]);
    let ends = ["\u{7}", "\u{1b}\\", "\u{9c}"];
    let end = |mark: &str| text.find(mark).map(|at| at + mark.len());
    ends.into_iter().filter_map(end).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(strip_invisible(text), expected, "{text:?}");
    }

    #[test]
    fn whole_escape_sequences_are_removed() {
        check("a\u{1b}[31;1mb\u{1b}[0mc", "abc");
        check("a\u{9b}2Jb", "ab");
        check("a\u{1b}]8;;http://h/\u{1b}\\link\u{1b}]8;;\u{7}b", "alinkb");
        check("a\u{1b}P1$q\u{9c}b\u{9d}0;x\u{7}c", "abc");
        check("a\u{1b}cb\u{1b}(0c\u{1b}7", "abc");
    }

    #[test]
    fn unfinished_sequences_lose_only_the_start() {
        check("a\u{1b}[31", "a31");
        check("a\u{1b}]0;title", "a0;title");
        check("a\u{1b}", "a");
        check("a\u{1b}\u{e4}", "a\u{e4}");
        check("a\u{1b}[3\u{e4}", "a3\u{e4}");
    }

    /// Text is not hidden by a sequence that ends far behind it, or never.
    #[test]
    fn sequences_above_256_characters_are_text() {
        for (start, inside, end, longest) in [
            ("\u{1b}[", "1", "m", 255),
            ("\u{1b}]", "\u{e4}", "\u{7}", 255),
            ("\u{1b}P", "x", "\u{1b}\\", 254),
            ("\u{1b}", " ", "0", 256),
        ] {
            check(&format!("{start}{}{end}", inside.repeat(longest)), "");
            let rest = format!("{}{end}", inside.repeat(longest + 1));
            check(&format!("{start}{rest}"), &strip_invisible(&rest));
        }
    }

    #[test]
    fn controls_are_removed_line_breaks_kept() {
        check("a\0\u{8}\r\n\tb\u{7f}\u{85}", "a\n\tb");
        check("\u{feff}a\u{202e}b\u{200b}c\u{2066}d\u{ad}e\u{e0041}", "abcde");
        check("plain \u{e4} \u{1f600}", "plain \u{e4} \u{1f600}");
        check("a\u{a0}b\u{3000}c\u{2028}d\u{2029}", "a\u{a0}b\u{3000}cd");
    }
}
