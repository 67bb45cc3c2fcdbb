//! Exact counters.

use oa_context::{ErrorKind, HuggingFace, Tiktoken, TokenCounter};
use oa_types::Message;

#[test]
fn known_texts_have_known_counts() {
    let (o200k, cl100k) = (Tiktoken::o200k_base(), Tiktoken::cl100k_base());
    assert_eq!(o200k.count_text(""), 0);
    for (text, by_o200k, by_cl100k) in [
        ("hello world", 2, 2),
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 8, 9),
    ] {
        let counts = (o200k.count_text(text), cl100k.count_text(text));
        assert_eq!(counts, (by_o200k, by_cl100k), "{text}");
    }
    // A special token's name is plain text.
    assert!(o200k.count_text("<|endoftext|>") > 1);
    assert_eq!(o200k.count_messages(&[Message::user("hello world")]), 2 + 4 + 3);
    assert!(format!("{o200k:?}").contains("o200k_base"));
}

/// The library alone panics on a million spaces.
#[test]
fn repetitive_megabytes_can_be_counted() {
    let counter = Tiktoken::o200k_base();
    let spaces = counter.count_text(&" ".repeat(1_000_000));
    assert!((1..=20_000).contains(&spaces), "{spaces}");
    for (unit, least, most) in [
        ("\n", 1, 8_000),
        ("a", 5_000, 20_000),
        ("木", 30_000, 40_000),
        ("\u{301}", 30_000, 70_000),
        ("=/", 30_000, 70_000),
    ] {
        let text = unit.repeat(100_000 / unit.len());
        let count = counter.count_text(&text);
        assert!((least..=most).contains(&count), "{unit:?}: {count}");
    }
}

#[test]
fn cutting_long_prose_changes_nothing() {
    let sentence = "The ferry left the harbour a little after six, and nobody waved. ";
    let counter = Tiktoken::o200k_base();
    let one = counter.count_text(sentence.trim_end());
    assert_eq!(counter.count_text(sentence.repeat(2_000).trim_end()), one * 2_000);
}

const WORDS: &str = r#"{
    "version": "1.0",
    "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
    "padding": {"strategy": {"Fixed": 50}, "direction": "Right", "pad_to_multiple_of": null,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "[UNK]"},
    "added_tokens": [],
    "normalizer": null,
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": null,
    "decoder": null,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "hello": 1}, "unk_token": "[UNK]"}
}"#;

#[test]
fn truncation_and_padding_are_ignored() {
    let counter = HuggingFace::from_bytes(WORDS.as_bytes()).unwrap();
    assert_eq!(counter.count_text("hello big, wide world"), 5);
    assert_eq!(counter.count_text(""), 0);
    assert_eq!(counter.clone().count_text(&"hello ".repeat(100_000)), 100_000);
    assert!(format!("{counter:?}").contains("tokens: 2"));
}

#[test]
fn invalid_tokenizer_files_are_errors() {
    for bytes in [&b""[..], b"{}", b"\xFF\xFE", br#"{"model": {"type": "Abacus"}}"#] {
        let error = HuggingFace::from_bytes(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidTokenizer);
        assert_eq!(error.to_string(), "not a valid tokenizer.json");
        assert!(std::error::Error::source(&error).is_some());
    }
}
