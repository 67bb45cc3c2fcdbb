//! However a server encodes a key and wherever it is cut, an excerpt does not reveal it.

use oa_redact::{Secrets, base64, strip_invisible};
use proptest::prelude::*;

/// Keys of all characters that a header can carry, long enough to count as keys.
fn key() -> impl Strategy<Value = String> {
    prop_oneof!["sk-[a-zA-Z0-9_-]{16,60}", "[!-~]{12,60}"]
}

/// Writes each character of a key in one of several ways.
fn written(key: &str, ways: &[u8]) -> String {
    let mut text = String::new();
    for (c, way) in key.chars().zip(ways.iter().cycle()) {
        match way % 8 {
            0 => text += &format!("%{:02X}", u32::from(c)),
            1 => text += &format!("%{:02x}", u32::from(c)),
            2 => text += &format!("\\u{:04x}", u32::from(c)),
            3 => text += &format!("&#{};", u32::from(c)),
            4 => text += &format!("&#x{:X};", u32::from(c)),
            5 => text += &format!("\\x{:02x}", u32::from(c)),
            // Alone, each of these may start an unintended escape.
            _ if "%\\&".contains(c) => text += &format!("%{:02X}", u32::from(c)),
            _ => text.push(c),
        }
    }
    text
}

#[derive(Clone, Debug)]
enum Form {
    Base64 { user: String },
    Escaped(Vec<u8>),
    Json,
    Plain,
}

fn form() -> impl Strategy<Value = Form> {
    prop_oneof![
        "[a-z@.:]{0,5}".prop_map(|user| Form::Base64 { user }),
        prop::collection::vec(any::<u8>(), 1..9).prop_map(Form::Escaped),
        Just(Form::Json),
        Just(Form::Plain),
    ]
}

impl Form {
    fn of(&self, key: &str) -> String {
        match self {
            Self::Base64 { user } => base64::encode(format!("{user}{key}").as_bytes()),
            Self::Escaped(ways) => written(key, ways),
            Self::Json => key.replace('\\', "\\\\").replace('"', "\\\""),
            Self::Plain => key.to_owned(),
        }
    }
}

proptest! {
    #[test]
    fn a_key_is_masked_in_every_form(
        key in key(),
        form in form(),
        before in "[ a-zé\n\u{1b}%&\\\\.]{0,40} ",
        behind in " [ a-zé\n\u{1b}%&\\\\.]{0,40}",
    ) {
        let mut secrets = Secrets::new();
        secrets.add(&key);
        let told = form.of(&key);
        let masked = secrets.mask(&format!("{before}{told}{behind}")).into_owned();
        prop_assert!(!masked.contains(&told), "{masked:?} has {told:?}");
        prop_assert!(masked.contains("****"));
    }

    /// A text that was cut within a key, by the server or a bounded buffer, and then cut again.
    #[test]
    fn no_cut_reveals_eight_bytes_of_a_key(
        key in key(),
        form in form(),
        before in "[ a-zé]{0,30} ",
        cut in 0..400_usize,
        limit in 0..90_usize,
    ) {
        let mut secrets = Secrets::new();
        secrets.add(&key);
        let told = form.of(&key);
        let mut end = cut.min(told.len());
        while !told.is_char_boundary(end) {
            end -= 1;
        }
        let text = format!("{before}{}", &told[..end]);
        let excerpt = secrets.excerpt(&text, limit);
        for start in 0..key.len().saturating_sub(8) {
            let part = &key[start..start + 8];
            prop_assert!(before.contains(part) || !excerpt.contains(part), "{excerpt:?} has {part:?}");
        }
        let whole = form.of(&key);
        // Eight escapes of six bytes each.
        for start in 0..whole.len().saturating_sub(48) {
            let part = &whole[start..start + 48];
            prop_assert!(!excerpt.contains(part), "{excerpt:?} has {part:?}");
        }
    }

    #[test]
    fn excerpts_have_no_control_characters(text in "(\\PC|[\u{0}-\u{2f}\u{7f}-\u{9f}\u{1b}\u{202e}]|\u{1b}\\[){0,60}", limit in 0..80_usize) {
        let excerpt = Secrets::new().excerpt(&text, limit);
        prop_assert!(!excerpt.chars().any(|c| c.is_control() || c == '\u{202e}'), "{excerpt:?}");
        prop_assert!(excerpt.chars().count() <= limit + 3);
        prop_assert_eq!(strip_invisible(&excerpt), excerpt.clone());
    }

    #[test]
    fn spans_are_sorted_and_within_the_text(text in any::<String>(), key in key()) {
        let mut secrets = Secrets::new();
        secrets.add(&key);
        let mut last = 0;
        for span in secrets.spans(&text) {
            prop_assert!(last <= span.start && span.start < span.end && span.end <= text.len());
            last = span.end + 1;
        }
    }
}
