//! Text that adds to the text, or repeats all of it (rule 10).

use oa_aggregate::{Options, TextMode};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::{delta, run, text};

/// The rule's words, with all deltas at hand.
fn reference(mode: TextMode, deltas: &[String]) -> String {
    let mut so_far = String::new();
    let mut chain: Vec<&str> = Vec::new();
    let mut cumulative = mode == TextMode::Cumulative;
    // Empty deltas take no part.
    for delta in deltas.iter().filter(|delta| !delta.is_empty()) {
        if mode == TextMode::Incremental {
            so_far.push_str(delta);
            continue;
        }
        if cumulative {
            // Only suffixes go out.
            so_far = match delta.starts_with(&so_far) {
                true => delta.clone(),
                false => so_far + delta,
            };
            continue;
        }
        if let Some(last) = chain.last() {
            if delta.starts_with(last) {
                chain.push(delta);
                let two = delta.chars().any(|c| !delta.starts_with(c));
                if chain.len() >= 3 && delta.len() >= 16 && two {
                    cumulative = true;
                    chain.clear();
                    so_far.clone_from(delta);
                }
                continue;
            }
            // The chain breaks: what was held goes out unchanged.
            so_far.extend(chain.drain(..));
        }
        if !so_far.is_empty() && delta.starts_with(&so_far) {
            chain.push(delta);
        } else {
            so_far.push_str(delta);
        }
    }
    so_far.extend(chain);
    so_far
}

fn mode() -> impl Strategy<Value = TextMode> {
    select(vec![TextMode::Detect, TextMode::Cumulative, TextMode::Incremental])
}

fn options(mode: TextMode) -> Options {
    let mut options = Options::default();
    options.quirks.text = mode;
    options
}

fn joined(mode: TextMode, deltas: &[String]) -> String {
    let outcome = run(options(mode), deltas.iter().map(|delta| text(delta)));
    let blocks = outcome.answer.blocks.iter().filter_map(|block| block.as_text());
    assert_eq!(blocks.collect::<String>(), outcome.text());
    outcome.text()
}

/// Deltas that repeat each other in part: words, prefixes of one long text, and doublings.
fn deltas() -> impl Strategy<Value = Vec<String>> {
    const LONG: &str = "ha ha ha, said the müller of the old mill by the river";
    let cut = |at: usize| {
        let mut at = at;
        while !LONG.is_char_boundary(at) {
            at += 1;
        }
        LONG[..at].to_owned()
    };
    let piece = prop_oneof![
        3 => select(vec!["", "a", "aa", "aaa", "ha", "ha ", "-", "--", "----------------", "b", " ", "é"])
            .prop_map(str::to_owned),
        1 => (0..LONG.len()).prop_map(cut),
        1 => (select(vec!["a", "é", "─", "🎉"]), 1..24_usize).prop_map(|(row, count)| row.repeat(count)),
    ];
    prop_oneof![
        vec(piece, 0..12),
        // Mostly cumulative, with something odd between.
        (vec(0..LONG.len(), 0..10), vec("[ah ]{0,4}", 0..2), any::<prop::sample::Index>())
            .prop_map(move |(mut cuts, odd, at)| {
                cuts.sort_unstable();
                let mut deltas: Vec<String> = cuts.into_iter().map(cut).collect();
                let at = at.index(deltas.len() + 1);
                deltas.splice(at..at, odd);
                deltas
            }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn text_matches_the_rule(mode in mode(), deltas in deltas()) {
        prop_assert_eq!(joined(mode, &deltas), reference(mode, &deltas));
    }

    #[test]
    fn incremental_text_is_never_changed(words in vec("[a-z]{1,6} ", 0..30)) {
        // No word begins with all before it but by repeating the very first.
        let mut deltas = vec!["> ".to_owned()];
        deltas.extend(words);
        for mode in [TextMode::Detect, TextMode::Incremental, TextMode::Cumulative] {
            prop_assert_eq!(joined(mode, &deltas), deltas.concat());
        }
    }

    #[test]
    fn cumulative_text_is_delivered_once(words in vec("[a-z]{4,6} ", 6..20)) {
        let deltas: Vec<String> = (1..=words.len()).map(|count| words[..count].concat()).collect();
        for mode in [TextMode::Detect, TextMode::Cumulative] {
            prop_assert_eq!(joined(mode, &deltas), words.concat());
        }
    }

    #[test]
    fn whole_thinking_beside_text_is_said_once(
        thoughts in vec("[a-z]{1,6} ", 1..8),
        words in vec("[a-z]{4,6} ", 6..20),
        cumulative in any::<bool>(),
        in_parts in any::<bool>(),
    ) {
        // Shorter thinking is no evidence.
        let begin = std::iter::once("Let me think about it. ".to_owned());
        let thoughts: Vec<String> = begin.chain(thoughts).collect();
        let mut payloads: Vec<String> = (1..=thoughts.len())
            .map(|count| delta(&format!(r#""reasoning_content":{:?}"#, thoughts[..count].concat())))
            .collect();
        payloads.extend((1..=words.len()).map(|count| {
            let first = if cumulative { 0 } else { count - 1 };
            let (said, thought) = (words[first..count].concat(), thoughts.concat());
            delta(&if in_parts {
                format!(r#""content":[{{"thinking":{thought:?}}},{{"text":{said:?}}}]"#)
            } else {
                format!(r#""reasoning_content":{thought:?},"content":{said:?}"#)
            })
        }));
        let outcome = run(Options::default(), payloads);
        prop_assert_eq!(outcome.thinking(), thoughts.concat());
        prop_assert_eq!(outcome.text(), words.concat());
        prop_assert_eq!(outcome.answer.blocks.len(), 2);
    }

    #[test]
    fn stammering_text_is_kept(
        word in prop_oneof![
            "[a-z]{1,3}",
            "[a-zé─]{1,3}",
            (select(vec!["─", "哈", "🎉"]), 1..10_usize).prop_map(|(row, count)| row.repeat(count)),
        ],
        count in 0..40_usize,
    ) {
        let deltas = vec![word.clone(); count];
        let said = joined(TextMode::Detect, &deltas);
        prop_assert_eq!(said, word.repeat(count));
    }

    #[test]
    fn text_is_delivered_as_it_arrives(deltas in vec("[a-z]{1,4}", 0..10)) {
        let outcome = run(options(TextMode::Incremental), deltas.iter().map(|delta| text(delta)));
        prop_assert_eq!(outcome.told.len(), deltas.len());
    }
}
