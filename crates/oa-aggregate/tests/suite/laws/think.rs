//! Thinking between tags in the text.

use oa_aggregate::{Options, TextMode, ThinkTags};
use oa_json::ThinkingTags;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::{Outcome, Told, run, text};

/// Text and thinking of a whole text.
fn reference(tags: ThinkTags, whole: &str) -> (String, String) {
    let (mut text, mut thinking) = (String::new(), String::new());
    let begin = whole.trim_start();
    let known = ThinkingTags::KNOWN.iter().find(|tags| begin.starts_with(tags.open));
    let ThinkingTags { open, close, bridge, .. } = known.copied().unwrap_or(ThinkingTags::THINK);
    let mut rest = whole;
    let mut inside = tags == ThinkTags::StartsInThinking;
    if inside {
        // An opening tag at the start repeats the one in the prompt.
        rest = begin.strip_prefix(open).unwrap_or(rest);
    }
    loop {
        let tag = if inside { close } else { open };
        let part = if inside { &mut thinking } else { &mut text };
        let Some((before, behind)) = rest.split_once(tag) else {
            part.push_str(rest);
            return (text, thinking);
        };
        part.push_str(before);
        rest = if inside { behind.strip_prefix(bridge).unwrap_or(behind) } else { behind };
        inside = !inside;
    }
}

/// The same as the fixtures' oracle has it: it guesses from the whole text where thinking begins.
fn oracle(whole: &str) -> (String, String) {
    let (mut text, mut thinking, mut at) = (String::new(), String::new(), 0);
    let (open, close) = (whole.find("<think>"), whole.find("</think>"));
    if let Some(close) = close
        && open.is_none_or(|open| open > close)
    {
        thinking.push_str(&whole[..close]);
        at = close + 8;
    }
    loop {
        let Some(open) = whole[at..].find("<think>").map(|open| at + open) else {
            return (text + &whole[at..], thinking);
        };
        text.push_str(&whole[at..open]);
        let Some(close) = whole[open..].find("</think>").map(|close| open + close) else {
            return (text, thinking + &whole[open + 7..]);
        };
        thinking.push_str(&whole[open + 7..close]);
        at = close + 8;
    }
}

fn options(tags: ThinkTags, mode: TextMode) -> Options {
    let mut options = Options::default();
    options.quirks.think_tags = tags;
    options.quirks.text = mode;
    options
}

fn whole() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "<think>", "</think>", "<think>", "</think>", "<", ">", "</", "<thi", "nk>", "</thin",
        "think>", "<think", "</think", " ", "\n", "a", "so then", "é", "🙂", "<<", "\u{2003}",
    ]);
    vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

/// Text with tags of any kind, often at its start.
fn of_any_tags() -> impl Strategy<Value = String> {
    let piece = |tags: &ThinkingTags| {
        let ThinkingTags { open, close, bridge, .. } = *tags;
        let half = |tag: &'static str| tag.split_at(tag.len() / 2);
        let (half_open, half_close, half_bridge) = (half(open), half(close), half(bridge));
        prop_oneof![
            4 => select(vec![open, close, close, bridge]),
            2 => select(vec![half_open.0, half_open.1, half_close.0, half_close.1]),
            1 => select(vec![half_bridge.0, half_bridge.1, "<think>", "</think>", "[THINK]"]),
            2 => select(vec![" ", "\n", "a", "so then", "é", "<", "[", "\u{2003}"]),
        ]
    };
    select(ThinkingTags::KNOWN.to_vec()).prop_flat_map(move |tags| {
        let rest = vec(piece(&tags), 0..8).prop_map(|pieces| pieces.concat());
        (select(vec!["", " ", "\n\n"]), select(vec![tags.open, ""]), rest)
            .prop_map(|(blank, open, rest)| format!("{blank}{open}{rest}"))
    })
}

fn cut(whole: &str, cuts: &[Index]) -> Vec<String> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
    places.retain(|&at| whole.is_char_boundary(at));
    places.push(whole.len());
    places.sort_unstable();
    let mut start = 0;
    places
        .into_iter()
        .map(|end| whole[std::mem::replace(&mut start, end)..end].to_owned())
        .collect()
}

fn split(tags: ThinkTags, pieces: &[String]) -> Outcome {
    run(options(tags, TextMode::Incremental), pieces.iter().map(|piece| text(piece)))
}

/// Returns the voices in order, runs collapsed.
fn speakers(outcome: &Outcome) -> Vec<Told> {
    let mut runs: Vec<Told> = Vec::new();
    for told in &outcome.told {
        match (runs.last_mut(), told) {
            (Some(Told::Text(run)), Told::Text(more))
            | (Some(Told::Thinking(run)), Told::Thinking(more)) => run.push_str(more),
            _ => runs.push(told.clone()),
        }
    }
    runs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn tags_are_split_the_same_at_any_cut(
        whole in prop_oneof![whole(), of_any_tags()],
        cuts in vec(any::<Index>(), 0..8),
    ) {
        for tags in [ThinkTags::Split, ThinkTags::StartsInThinking] {
            let uncut = split(tags, std::slice::from_ref(&whole));
            prop_assert_eq!((uncut.text(), uncut.thinking()), reference(tags, &whole));
            let chars: Vec<String> = whole.chars().map(String::from).collect();
            for pieces in [cut(&whole, &cuts), chars] {
                let outcome = split(tags, &pieces);
                prop_assert_eq!(speakers(&outcome), speakers(&uncut));
                prop_assert_eq!(outcome.answer.blocks, uncut.answer.blocks.clone());
            }
        }
    }

    #[test]
    fn fixtures_are_split_as_by_the_oracle(whole in whole()) {
        let (open, close) = (whole.find("<think>"), whole.find("</think>"));
        let tags = match (open, close) {
            (None, Some(_)) => ThinkTags::StartsInThinking,
            (Some(open), Some(close)) if close < open => ThinkTags::StartsInThinking,
            _ => ThinkTags::Split,
        };
        let outcome = split(tags, std::slice::from_ref(&whole));
        prop_assert_eq!((outcome.text(), outcome.thinking()), oracle(&whole));
    }

    #[test]
    fn tags_stay_text_when_off(
        whole in whole(),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let outcome = split(ThinkTags::Off, &cut(&whole, &cuts));
        prop_assert_eq!((outcome.text(), outcome.thinking()), (whole, String::new()));
    }

    /// Without a whole tag, all of the text comes out in its order, marked text as thinking.
    #[test]
    fn marked_and_plain_text_keep_their_order(
        pieces in vec(
            (select(vec!["Hm.", "<", "</", "</th", "ought", "\n", " ", "x", "<tho"]), any::<bool>()),
            0..10,
        ),
    ) {
        let list = pieces.iter().map(|(piece, is_marked)| match is_marked {
            false => text(piece),
            true => crate::delta(&format!(
                r#""content":{},"extra_content":{{"google":{{"thought":true}}}}"#,
                serde_json::Value::from(*piece),
            )),
        });
        let outcome = run(options(ThinkTags::Off, TextMode::Incremental), list);
        let joined = |parts: Vec<(&str, bool)>| {
            let mut runs: Vec<(String, bool)> = Vec::new();
            for (part, is_marked) in parts {
                match runs.last_mut() {
                    Some((run, mark)) if *mark == is_marked => run.push_str(part),
                    _ => runs.push((part.to_owned(), is_marked)),
                }
            }
            runs
        };
        let told = outcome.told.iter().filter_map(|told| match told {
            Told::Text(text) => Some((&**text, false)),
            Told::Thinking(text) => Some((&**text, true)),
            _ => None,
        });
        prop_assert_eq!(joined(told.collect()), joined(pieces));
    }

    /// A call between the halves of a tag keeps them apart.
    #[test]
    fn halves_around_a_call_are_text(tags in select(ThinkingTags::KNOWN.to_vec()), at in any::<Index>()) {
        let call = || crate::fragment(r#""index":0,"id":"1","function":{"name":"f","arguments":"{}"}"#);
        let (half, rest) = tags.open.split_at(1 + at.index(tags.open.len() - 1));
        let list = [text(half), call(), text(rest), text(tags.open), text("Hm.")];
        let outcome = run(options(ThinkTags::Split, TextMode::Detect), list);
        if tags == ThinkingTags::THINK {
            prop_assert_eq!((outcome.text(), outcome.thinking()), (tags.open.to_owned(), "Hm.".to_owned()));
        } else {
            prop_assert_eq!((outcome.text(), outcome.thinking()), (format!("{0}{0}Hm.", tags.open), String::new()));
        }
        let (half, rest) = tags.bridge.split_at(at.index(tags.bridge.len().max(1)));
        let list = [text(tags.open), text("Hm."), text(tags.close), text(half), call(), text(rest)];
        let outcome = run(options(ThinkTags::Split, TextMode::Detect), list);
        let shown = if half.is_empty() { "" } else { tags.bridge };
        prop_assert_eq!((outcome.text(), outcome.thinking()), (shown.to_owned(), "Hm.".to_owned()));
    }

    #[test]
    fn half_a_tag_before_a_call_is_text(length in 1..7_usize) {
        let half = &"<think>"[..length];
        let call = crate::fragment(r#""index":0,"id":"1","function":{"name":"f","arguments":"{}"}"#);
        let list = [text("so "), text(half), call, text("then")];
        let outcome = run(options(ThinkTags::Split, TextMode::Detect), list);
        prop_assert_eq!(outcome.answer.blocks[0].as_text(), Some(&*format!("so {half}")));
        prop_assert_eq!(outcome.answer.blocks.len(), 3);
    }
}
