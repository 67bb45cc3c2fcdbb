//! Characters that a server cuts in two: text cut between any units of UTF-16 (QUIRKS row 124).

use oa_aggregate::{Options, TemplateCache};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::{delta, finish, fragment, run, run_with};

/// Writes units of UTF-16 as a gateway in JavaScript does: halves of characters as escapes.
fn escaped(units: &[u16]) -> String {
    let mut json = String::new();
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(c) => json += serde_json::Value::from(c.to_string()).to_string().trim_matches('"'),
            Err(half) => json += &format!("\\u{:04x}", half.unpaired_surrogate()),
        }
    }
    json
}

/// The pieces of a text, each as the contents of a JSON string.
fn pieces(text: &str, sizes: &[usize]) -> Vec<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let (mut rest, mut pieces) = (&units[..], Vec::new());
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at(size.min(rest.len()));
        pieces.push(escaped(piece));
        rest = behind;
    }
    pieces
}

fn words() -> impl Strategy<Value = String> {
    vec(select(vec!["a", "é", " ", "🎉", "🎉🎈", "𝕏", "\n", "\\\\", "ud83d"]), 1..20)
        .prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn words_cut_anywhere_are_whole(words in words(), sizes in vec(1..4_usize, 1..4)) {
        let pieces = pieces(&words, &sizes);
        let mut templates = TemplateCache::default();
        let mut check = |payload: &dyn Fn(&String) -> String| {
            let mut payloads = vec![fragment(r#""index":0,"id":"a","function":{"name":"f"}"#)];
            payloads.extend(pieces.iter().map(payload));
            payloads.push(finish("stop"));
            let alone = run(Options::default(), &payloads);
            assert_eq!(run_with(Options::default(), &mut templates, &payloads), alone);
            assert_eq!(run_with(Options::default(), &mut templates, &payloads), alone);
            alone
        };
        prop_assert_eq!(check(&|piece| delta(&format!(r#""content":"{piece}""#))).text(), &*words);
        let thinking = check(&|piece| delta(&format!(r#""reasoning":"{piece}""#))).thinking();
        prop_assert_eq!(thinking, &*words);
        let told = check(&|piece| {
            fragment(&format!(r#""index":0,"function":{{"arguments":"{piece}"}}"#))
        });
        let arguments: String = told.told.iter().filter_map(|told| match told {
            crate::Told::CallArguments(_, fragment) => Some(&**fragment),
            _ => None,
        }).collect();
        prop_assert_eq!(arguments, words);
    }
}

#[test]
fn a_half_alone_is_a_replacement_character() {
    let text = |piece: &str| delta(&format!(r#""content":"{piece}""#));
    let said = |payloads: &[String]| run(Options::default(), payloads).text();
    let (first, second) = (text(r"Hi \ud83d"), text(r"\ude42!"));
    assert_eq!(said(&[first.clone(), second.clone()]), "Hi 🙂!");
    assert_eq!(said(std::slice::from_ref(&first)), "Hi \u{fffd}");
    assert_eq!(said(&[first.clone(), text("there")]), "Hi \u{fffd}there");
    assert_eq!(
        said(&[second.clone(), first.clone(), first.clone()]),
        "\u{fffd}!Hi \u{fffd}Hi \u{fffd}"
    );
    // Nothing between, and thinking between.
    assert_eq!(said(&[first.clone(), text(""), finish("stop"), second.clone()]), "Hi 🙂!");
    let between = delta(r#""reasoning":"Hm.""#);
    let outcome = run(Options::default(), [first, between, second]);
    assert_eq!(outcome.blocks(), "text \"Hi �\"\nthinking \"Hm.\"\ntext \"�!\"");
}

#[test]
fn halves_of_two_calls_are_not_joined() {
    let begin = |call: usize| {
        let arguments = r#"{\"emoji\":\"\ud83d"#;
        fragment(&format!(
            r#""index":{call},"id":"c{call}","function":{{"name":"send","arguments":"{arguments}"}}"#
        ))
    };
    let end = |call: usize| {
        let arguments = r#"\ude42\"}"#;
        fragment(&format!(r#""index":{call},"function":{{"arguments":"{arguments}"}}"#))
    };
    let blocks = |order: &[String]| run(Options::default(), order).blocks();
    assert_eq!(
        blocks(&[begin(0), end(0), begin(1), end(1)]),
        "call c0 send {\"emoji\":\"🙂\"}\ncall c1 send {\"emoji\":\"🙂\"}"
    );
    assert_eq!(
        blocks(&[begin(0), begin(1), end(0), end(1)]),
        "call c0 send {\"emoji\":\"��\"}\ncall c1 send {\"emoji\":\"��\"}"
    );
}
