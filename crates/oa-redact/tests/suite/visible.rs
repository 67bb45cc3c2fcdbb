//! Foreign text as shown on a terminal.

use std::borrow::Cow;

use oa_redact::{printable, visible};
use proptest::prelude::*;

/// The kinds of characters that are invisible or control a terminal, each with its first and last character.
const KINDS: &[(&str, char, char)] = &[
    ("C0 controls", '\u{0}', '\u{1f}'),
    ("delete and C1 controls", '\u{7f}', '\u{9f}'),
    ("no-break space", '\u{a0}', '\u{a0}'),
    ("soft hyphen", '\u{ad}', '\u{ad}'),
    ("combining grapheme joiner", '\u{34f}', '\u{34f}'),
    ("Arabic number signs", '\u{600}', '\u{605}'),
    ("Arabic letter mark", '\u{61c}', '\u{61c}'),
    ("end of ayah", '\u{6dd}', '\u{6dd}'),
    ("Syriac abbreviation mark", '\u{70f}', '\u{70f}'),
    ("Arabic pound marks", '\u{890}', '\u{891}'),
    ("disputed end of ayah", '\u{8e2}', '\u{8e2}'),
    ("Hangul fillers", '\u{115f}', '\u{1160}'),
    ("Ogham space", '\u{1680}', '\u{1680}'),
    ("Khmer inherent vowels", '\u{17b4}', '\u{17b5}'),
    ("Mongolian selectors", '\u{180b}', '\u{180f}'),
    ("typographic spaces", '\u{2000}', '\u{200a}'),
    ("zero widths and marks", '\u{200b}', '\u{200f}'),
    ("line and paragraph separators", '\u{2028}', '\u{2029}'),
    ("bidi embeddings and overrides", '\u{202a}', '\u{202e}'),
    ("narrow no-break space", '\u{202f}', '\u{202f}'),
    ("mathematical space", '\u{205f}', '\u{205f}'),
    ("word joiner and invisible operators", '\u{2060}', '\u{2064}'),
    ("reserved as ignorable", '\u{2065}', '\u{2065}'),
    ("bidi isolates", '\u{2066}', '\u{2069}'),
    ("deprecated format characters", '\u{206a}', '\u{206f}'),
    ("empty Braille pattern", '\u{2800}', '\u{2800}'),
    ("ideographic space", '\u{3000}', '\u{3000}'),
    ("Hangul filler", '\u{3164}', '\u{3164}'),
    ("variation selectors", '\u{fe00}', '\u{fe0f}'),
    ("byte order mark", '\u{feff}', '\u{feff}'),
    ("half-width Hangul filler", '\u{ffa0}', '\u{ffa0}'),
    ("reserved specials and interlinear annotation", '\u{fff0}', '\u{fffb}'),
    ("Kaithi number signs", '\u{110bd}', '\u{110bd}'),
    ("Kaithi number sign above", '\u{110cd}', '\u{110cd}'),
    ("hieroglyph joiners", '\u{13430}', '\u{1343f}'),
    ("Khitan filler", '\u{16fe4}', '\u{16fe4}'),
    ("shorthand controls", '\u{1bca0}', '\u{1bca3}'),
    ("null notehead", '\u{1d159}', '\u{1d159}'),
    ("musical controls", '\u{1d173}', '\u{1d17a}'),
    ("tags", '\u{e0000}', '\u{e007f}'),
    ("more variation selectors", '\u{e0100}', '\u{e01ef}'),
    ("reserved as ignorable", '\u{e0fff}', '\u{e0fff}'),
    ("noncharacters", '\u{fdd0}', '\u{fdef}'),
    ("last of a plane", '\u{10fffe}', '\u{10ffff}'),
];

#[test]
fn every_invisible_kind_is_escaped() {
    for (kind, first, last) in KINDS {
        for c in *first..=*last {
            let escaped = c.escape_unicode().to_string();
            assert_eq!(visible(&format!("a{c}b")), format!("a{escaped}b"), "{kind}");
        }
    }
}

#[test]
fn neighbors_of_invisible_characters_are_kept() {
    let kept = "a ~\u{a1}\u{ac}\u{ae}\u{34e}\u{350}\u{5ff}\u{606}\u{115e}\u{1161}\u{17b3}\u{17b6}\u{180a}\u{1810}\
                \u{2010}\u{2027}\u{2030}\u{205e}\u{2070}\u{27ff}\u{2801}\u{2fff}\u{3001}\u{3163}\u{3165}\
                \u{fdcf}\u{fdf0}\u{fdff}\u{fe10}\u{ff9f}\u{ffa1}\u{fffc}\u{fffd}\u{e000}\u{f8ff}\u{1f980}";
    assert!(matches!(visible(kept), Cow::Borrowed(same) if same == kept));
    assert!(matches!(printable(kept), Cow::Borrowed(same) if same == kept));
}

#[test]
fn prose_keeps_its_layout_and_joined_emoji() {
    let prose = "One\n\ttwo\u{202f}%, \u{2764}\u{fe0f} \u{1f469}\u{200d}\u{1f680}\n";
    assert!(matches!(printable(prose), Cow::Borrowed(same) if same == prose));
    assert_eq!(visible("a\r\n"), r"a\u{d}\u{a}");
    assert_eq!(printable("a\r\n"), "a\\u{d}\n");
}

/// Text that is likely to contain every kind of character.
fn text() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(KINDS)
        .prop_flat_map(|(_, first, last)| proptest::char::range(first, last));
    let c = prop_oneof![any::<char>(), kind, proptest::char::range(' ', '~')];
    prop::collection::vec(c, 0..40).prop_map(String::from_iter)
}

/// Decodes escapes.
fn unescaped(text: &str) -> String {
    let mut pieces = text.split("\\u{");
    let mut read = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (number, rest) = piece.split_once('}').expect("an escape has an end");
        let number = u32::from_str_radix(number, 16).expect("an escape is a number");
        read.push(char::from_u32(number).expect("an escape is a character"));
        read.push_str(rest);
    }
    read
}

proptest! {
    #[test]
    fn escaping_is_lossless_and_hides_nothing(text in text()) {
        let text = text.replace('\\', "/");
        for shown in [visible(&text), printable(&text)] {
            prop_assert_eq!(unescaped(&shown), &*text);
            prop_assert!(shown.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        }
        let shown = visible(&text);
        prop_assert_eq!(visible(&shown), &*shown, "what is visible stays as it is");
        let kept = |text: &str| {
            text.chars().filter(|c| !KINDS.iter().any(|(_, a, b)| (a..=b).contains(&c))).count()
        };
        prop_assert_eq!(kept(&shown), shown.chars().count());
    }

    #[test]
    fn pieces_are_escaped_like_the_whole(text in text(), cut in 0_usize..40) {
        let at = text.char_indices().nth(cut).map_or(text.len(), |(at, _)| at);
        let (a, b) = text.split_at(at);
        prop_assert_eq!(format!("{}{}", visible(a), visible(b)), visible(&text));
        prop_assert_eq!(format!("{}{}", printable(a), printable(b)), printable(&text));
    }
}
