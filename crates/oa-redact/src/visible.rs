//! Escapes characters that a terminal acts on or does not show.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes every character that a terminal acts on or does not show, and every line break.
///
/// These are the categories Cc, Cf, Zl and Zp, spaces other than `' '`, the property
/// `Default_Ignorable_Code_Point` (variation selectors, fillers, tags), noncharacters, and a few characters
/// that are blank although Unicode classifies them as symbols or marks, such as the empty Braille pattern.
///
/// ```
/// use oa_redact::visible;
///
/// assert_eq!(visible("ls -l \u{1b}[2K\u{202e}"), r"ls -l \u{1b}[2K\u{202e}");
/// assert_eq!(visible("Größe 大きさ 🦀"), "Größe 大きさ 🦀");
/// ```
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_within(c, INVISIBLE) || is_noncharacter(c))
}

/// Escapes every character that a terminal acts on, except line feeds and tabs.
///
/// These are control characters (which start all escape sequences), line and paragraph separators, and
/// characters that override the text direction.
///
/// ```
/// use oa_redact::printable;
///
/// assert_eq!(printable("one\n\ttwo \u{1b}]0;title\u{7}"), "one\n\ttwo \\u{1b}]0;title\\u{7}");
/// ```
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |c| !matches!(c, '\n' | '\t') && is_within(c, ACTED_ON))
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Most text is ASCII, where only control characters are escaped.
    let is_escaped =
        |c: char| if c.is_ascii() { c.is_control() && is_escaped(c) } else { is_escaped(c) };
    let Some(first) = text.find(is_escaped) else { return Cow::Borrowed(text) };
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_escaped(c) {
            // Writing to a string does not fail.
            let _ = write!(escaped, "{}", c.escape_unicode());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Returns true if a character has zero width or affects the direction or lines of text: all invisible
/// characters except spaces, which separate words.
pub(crate) fn is_format(c: char) -> bool {
    let is_space = c.is_whitespace() && !matches!(c, '\u{2028}' | '\u{2029}');
    !c.is_ascii() && !is_space && (is_within(c, INVISIBLE) || is_noncharacter(c))
}

fn is_within(c: char, ranges: &[(char, char)]) -> bool {
    let at = ranges.partition_point(|(_, last)| *last < c);
    ranges.get(at).is_some_and(|(first, _)| *first <= c)
}

/// Returns true for a code point reserved for internal use: text does not contain it, and terminals show it in
/// different ways or not at all.
fn is_noncharacter(c: char) -> bool {
    // The last two code points of each of the 17 planes end in FFFE and FFFF.
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// Sorted. From Unicode 16.0: `DerivedGeneralCategory.txt` (Cc, Cf, Zl, Zp, and Zs except `' '`) merged with
/// `Default_Ignorable_Code_Point` of `DerivedCoreProperties.txt`, including its unassigned code points so that
/// later versions add nothing invisible, and with the characters marked "blank" below.
const INVISIBLE: &[(char, char)] = &[
    ('\u{0}', '\u{1f}'),
    ('\u{7f}', '\u{a0}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'), // combining grapheme joiner
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'), // Hangul fillers
    ('\u{1680}', '\u{1680}'),
    ('\u{17b4}', '\u{17b5}'), // inherent vowels of Khmer
    ('\u{180b}', '\u{180f}'), // Mongolian variation selectors and vowel separator
    ('\u{2000}', '\u{200f}'), // spaces, zero widths, marks of direction
    ('\u{2028}', '\u{202f}'), // separators, embeddings and overrides of direction
    ('\u{205f}', '\u{206f}'), // joiners, invisible operators, isolates
    ('\u{2800}', '\u{2800}'), // blank: empty Braille pattern
    ('\u{3000}', '\u{3000}'),
    ('\u{3164}', '\u{3164}'), // Hangul filler
    ('\u{fe00}', '\u{fe0f}'), // variation selectors
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'), // Hangul filler of half width
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'), // joiners of hieroglyphs
    ('\u{13441}', '\u{13442}'), // blank: hieroglyphs
    ('\u{16fe4}', '\u{16fe4}'), // blank: filler of the Khitan small script
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d159}', '\u{1d159}'), // blank: null notehead
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'), // tags, variation selectors
];

/// Sorted: Cc, Zl, Zp, and `Bidi_Control` of `PropList.txt`.
const ACTED_ON: &[(char, char)] = &[
    ('\u{0}', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{200e}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2066}', '\u{2069}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        for table in [INVISIBLE, ACTED_ON] {
            assert!(table.iter().all(|(first, last)| first <= last));
            assert!(table.is_sorted_by(|(_, last), (first, _)| last < first));
        }
    }

    #[test]
    fn printable_escapes_a_subset_of_visible() {
        let acted_on = ACTED_ON.iter().flat_map(|(first, last)| *first..=*last);
        assert!(acted_on.into_iter().all(|c| is_within(c, INVISIBLE)));
    }
}
