//! The decoder of escapes, against serde_json's.

use oa_json::{Escape, EscapeError, unescape, unescape_lossy};
use proptest::prelude::*;

/// The contents of strings: escapes of every kind, surrogates whole and in halves, and what is none.
fn contents() -> impl Strategy<Value = String> {
    "(\\\\[\"\\\\/bfnrtuxU'0]|\\\\u[0-9a-fA-F]{0,4}|\\\\u[dD][89abAB][0-9a-f]{2}|\\\\u[dD][c-fC-F][0-9a-f]{2}\
     |\\\\ud83d\\\\ude42|[a-z\"\\\\éー🙂\n ]){0,8}"
}

fn strict(raw: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{raw}\"")).ok()
}

fn lossy(raw: &str) -> String {
    let mut text = "before ".to_owned();
    unescape_lossy(raw, &mut text);
    text.strip_prefix("before ").expect("it is appended").to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn strings_match_serde_json(raw in contents()) {
        let theirs = strict(&raw);
        prop_assert_eq!(unescape(&raw).ok().map(String::from), theirs.clone());
        if let Some(theirs) = theirs {
            prop_assert_eq!(lossy(&raw), theirs);
        }
    }

    /// Every character survives being written as an escape.
    #[test]
    fn any_character_can_be_escaped(text in "\\PC{0,8}") {
        let raw: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        prop_assert_eq!(unescape(&raw).unwrap(), &*text);
        prop_assert_eq!(lossy(&raw), text);
    }

    /// More text changes nothing once an escape was read, and decides it where it was incomplete.
    #[test]
    fn following_text_does_not_change_an_escape(raw in contents(), more in contents()) {
        let longer = format!("{raw}{more}");
        match Escape::read(&raw) {
            Err(EscapeError::Incomplete) => {
                prop_assert!(raw.len() < 12);
                let last = Escape::read_last(&raw);
                prop_assert_eq!(last.is_ok(), raw.len() >= 6);
                prop_assert!(last.is_err() || last.is_ok_and(|escape| escape.character.is_none()));
            }
            read => {
                prop_assert_eq!(Escape::read(&longer), read);
                prop_assert_eq!(Escape::read_last(&raw), read);
                prop_assert!(read.is_err() || raw.is_char_boundary(read.map_or(0, |escape| escape.length)));
            }
        }
    }
}

#[test]
fn lossy_keeps_unknown_escapes() {
    assert_eq!(
        lossy(r"\ud83dx\ude42\ud83d\ud83d\ude42\ud83d"),
        "\u{fffd}x\u{fffd}\u{fffd}🙂\u{fffd}"
    );
    assert_eq!(lossy(r"\x \u12 C:\Temp \"), r"\x \u12 C:".to_owned() + "\\Temp \\");
    assert_eq!(lossy(""), "");
}

#[test]
fn errors_say_what_is_wrong() {
    let error = |raw| unescape(raw).unwrap_err().to_string();
    assert_eq!(error(r"C:\Temp"), r"a string contains `\T`: write `\\` for a backslash");
    assert_eq!(error(r"\u12"), r"a string contains `\u` without four hexadecimal digits");
    assert_eq!(error(r"\ude42"), r"a string contains an unpaired surrogate, `\ude42`");
    assert_eq!(error("\u{7}"), r"a string contains `\u{7}`, which must be escaped");
    assert_eq!(error("\\"), "a string ends with a backslash");
}

#[test]
fn values_and_names_are_counted_outside_text() {
    for (json, expected) in
        [("1", 1), (r#"["a,\",[b\\",{"c,":[2]}]"#, 6), ("[]", 2), (r#"{"a":1,"b":{}}"#, 6)]
    {
        assert_eq!(oa_json::count_values(json.as_bytes()), expected, "{json}");
    }
}

#[test]
fn only_lone_surrogates_are_replaced() {
    for (json, expected) in [
        (
            r#"["\ude00 \ud83d\ud83d\ude00\ud83dx"]"#,
            "[\"\u{fffd} \u{fffd}\\ud83d\\ude00\u{fffd}x\"]",
        ),
        (r#"["\\ud83d\n\ud83d\\"]"#, "[\"\\\\ud83d\\n\u{fffd}\\\\\"]"),
        (r#"{"caf\u00e9": "\u12"}"#, r#"{"caf\u00e9": "\u12"}"#),
        ("\\", "\\"),
    ] {
        assert_eq!(oa_json::replace_lone_surrogates(json), expected);
    }
}

#[test]
fn control_characters_are_escaped_in_strings() {
    for (json, expected) in [
        ("{\n\"a\tb\":\t[\"\0\u{1f}\"]}\n", r#"{_"a\u0009b":-["\u0000\u001f"]}_"#),
        ("[\"\\\"\n\", \"\\\\\",\n1]", r#"["\"\u000a", "\\",_1]"#),
        ("\"open\n", r#""open\u000a"#),
        // An escape that JSON does not have stays one.
        ("\"\\\n\"", "\"\\_\""),
        ("\"\u{7f}é\"", "\"\u{7f}é\""),
        ("\\", "\\"),
    ] {
        let expected = expected.replace('_', "\n").replace('-', "\t");
        assert_eq!(oa_json::escape_control_characters(json), expected);
    }
}
