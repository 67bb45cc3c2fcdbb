//! Notices of proxies that load a model, in front of an answer (QUIRKS row 149).

use oa_types::wire::LoadingNotice;
use proptest::prelude::*;

const NOTICE: &str = "━━━━━\nllama-swap loading model: a/b:c\n...\nWaking up (slowly)...... .\n━ is a bar\n\
                      Queue position: #2 .\nDone! (50.26s)\n━━━━━\n \n";

/// Returns what is left of these pieces.
fn left(pieces: &[&str]) -> String {
    let mut notice = LoadingNotice::default();
    let mut left: String = pieces.iter().map(|piece| notice.rest(piece).into_owned()).collect();
    left += &notice.close();
    left
}

/// Cuts a text at these places, each counted in characters.
fn cut(text: &str, mut places: Vec<usize>) -> Vec<&str> {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places {
        let to = starts.get(place).copied().unwrap_or(text.len());
        pieces.push(&text[from..to]);
        from = to;
    }
    pieces.push(&text[from..]);
    pieces
}

#[test]
fn a_notice_is_no_thinking() {
    assert_eq!(left(&[NOTICE]), "");
    assert_eq!(left(&[NOTICE, "Hm."]), "Hm.");
    assert_eq!(left(&[NOTICE, " Hm."]), " Hm.");
    assert_eq!(left(&[NOTICE, NOTICE]), NOTICE, "only the first one is the proxy's");
    let long = NOTICE.replace("━━━━━", &"━".repeat(25));
    assert_eq!(left(&[&long, "Hm."]), "Hm.");
    let without_blank_line = NOTICE.strip_suffix(" \n").unwrap();
    assert_eq!(left(&[without_blank_line, "Hm."]), "Hm.");
    assert_eq!(left(&["", NOTICE, "Hm."]), "Hm.");
}

#[test]
fn a_notice_that_breaks_off_has_no_thinking() {
    for (end, _) in NOTICE.char_indices().skip(33) {
        assert_eq!(left(&[&NOTICE[..end]]), "", "{:?}", &NOTICE[..end]);
    }
}

#[test]
fn other_thinking_stays() {
    let bars = "━".repeat(41);
    for text in [
        "",
        "Hm.",
        " Hm.",
        "━",
        "━━━━━",
        "━━━━━\n",
        "━━━━━\nllama-swap",
        "━━━━━\nllama-swap loading a model\n━━━━━\n \nHm.",
        "\nllama-swap loading model: a\n━━━━━\n \nHm.",
        "llama-swap loading model: a\n━━━━━\n \nHm.",
        "It says:\n━━━━━\nllama-swap loading model: a\n━━━━━\n \nHm.",
        &format!("{bars}\nllama-swap loading model: a\n━━━━━\n \nHm."),
    ] {
        assert_eq!(left(&[text]), text);
        let characters: Vec<&str> = text.split_inclusive(|_: char| true).collect();
        assert_eq!(left(&characters), text);
    }
}

#[test]
fn it_is_open_while_more_of_it_may_come() {
    let mut notice = LoadingNotice::default();
    assert!(!notice.is_open());
    let (most, last) = NOTICE.split_at(NOTICE.len() - 1);
    for character in most.split_inclusive(|_: char| true) {
        let _ = notice.rest(character);
        assert!(notice.is_open(), "{character:?}");
    }
    let _ = notice.rest(last);
    assert!(!notice.is_open());
    let mut other = LoadingNotice::default();
    let _ = other.rest("━");
    assert!(other.is_open());
    assert_eq!(other.rest("b"), "━b");
    assert!(!other.is_open());
}

proptest! {
    #[test]
    fn cuts_of_a_notice_do_not_matter(
        places in prop::collection::vec(0..160_usize, 0..20),
        thinking in "[━\n a-c]{0,12}",
    ) {
        let text = format!("{NOTICE}{thinking}");
        prop_assert_eq!(left(&cut(&text, places)), thinking.as_str());
    }

    #[test]
    fn cuts_of_other_thinking_do_not_matter(
        places in prop::collection::vec(0..60_usize, 0..20),
        thinking in "━{0,6}[\n a-m━-]{0,30}",
    ) {
        prop_assert_eq!(left(&cut(&thinking, places)), thinking.as_str());
    }
}
