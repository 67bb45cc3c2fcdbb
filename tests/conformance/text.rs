//! Plain text: streaming, endings, usage.

use open_agent::FinishReason;
use tower::service_fn;

use crate::answer::{Answer, ask};
use crate::server::{Wanted, check, lacking, skipped};
use crate::wire;

const PROMPT: &str = "Say something about a garden, in three sentences.";

#[test]
fn streamed_text_equals_unstreamed_text() {
    check(Wanted::Any, async |server| {
        let options = server.options().seed(11);
        let streamed = ask(&options.build().unwrap(), PROMPT).await.unwrap();
        assert!(streamed.pieces() > 1, "{streamed:#?}");

        let options = server.options().seed(11).transport(service_fn(wire::unstreamed));
        let whole = ask(&options.build().unwrap(), PROMPT).await.unwrap();
        assert_eq!(whole.pieces(), 1);
        if server.is_tiny {
            assert_eq!(streamed.text(), whole.text());
            assert_eq!(streamed.finish(), whole.finish());
            let tokens = |answer: &Answer| answer.message.usage.and_then(|usage| usage.total());
            assert_eq!(tokens(&streamed), tokens(&whole));
        } else {
            skipped("whether the texts are equal: not every server keeps to a seed");
        }
    });
}

#[test]
fn usage_and_message_are_complete() {
    check(Wanted::Any, async |server| {
        // Every answer is checked for message() being equal to the deltas.
        let answer = ask(&server.options().seed(5).build().unwrap(), PROMPT).await.unwrap();
        assert_eq!(*answer.finish(), FinishReason::Stop, "{answer:#?}");
        assert!(!answer.message.text().is_empty());
        assert_eq!(answer.message.model.is_some(), answer.message.id.is_some());
        let usage = answer.message.usage.filter(|usage| usage.total().is_some());
        let Some(usage) = usage else {
            return server.lacks("usage", &answer);
        };
        println!("{usage:?} in {} pieces of text", answer.pieces());
        let sum = usage.prompt_tokens.unwrap() + usage.completion_tokens.unwrap();
        assert!(usage.prompt_tokens > Some(0) && usage.completion_tokens > Some(0));
        if server.is_tiny {
            assert_eq!(usage.total_tokens, Some(sum));
            assert_eq!(answer.message.model.as_deref(), Some("tiny"));
        }
    });
}

#[test]
fn answers_end_before_the_stop_text() {
    check(Wanted::Any, async |server| {
        let prompt = "Count from one to ten in English words, with spaces between them.";
        let (stop, expected) = if server.is_tiny {
            let whole = ask(&server.options().seed(11).build().unwrap(), prompt).await.unwrap();
            let text = whole.text();
            // A word from the middle.
            let at = text.char_indices().filter(|(_, letter)| *letter == ' ').nth(4).unwrap().0;
            let stop = text[at + 1..].split_once(' ').unwrap().0.to_owned();
            let expected = text.split_once(&stop).unwrap().0.to_owned();
            (stop, Some(expected))
        } else {
            ("five".to_owned(), None)
        };
        let options = server.options().seed(11).stop(&stop).build().unwrap();
        let answer = ask(&options, prompt).await.unwrap();
        assert_eq!(*answer.finish(), FinishReason::Stop);
        assert!(!answer.text().contains(&stop), "{stop:?} in {:?}", answer.text());
        if let Some(expected) = expected {
            assert_eq!(answer.text(), expected);
        }
    });
}

#[test]
fn max_tokens_ends_with_reason_length() {
    check(Wanted::Any, async |server| {
        let options = server.options().seed(11).max_tokens(6).build().unwrap();
        let answer = ask(&options, PROMPT).await.unwrap();
        assert_eq!(*answer.finish(), FinishReason::Length);
        let completion = answer.message.usage.and_then(|usage| usage.completion_tokens);
        if server.is_tiny {
            assert_eq!(completion, Some(6));
            assert!(!answer.text().is_empty());
        }
    });
}

#[test]
fn multi_token_characters_arrive_whole() {
    check(Wanted::Any, async |server| {
        let prompt = "Repeat these signs and nothing else: \u{1F642} \u{e9} \u{1F642} \u{e9}";
        // With an obedient model, one seed is enough.
        for seed in 1..=if server.is_tiny { 50 } else { 1 } {
            let answer = ask(&server.options().seed(seed).build().unwrap(), prompt).await.unwrap();
            let text = answer.text();
            assert!(!text.contains('\u{fffd}'), "{text:?}");
            if text.contains('\u{1F642}') && text.contains('\u{e9}') {
                return println!("seed {seed}: {text}");
            }
        }
        assert!(!server.is_tiny, "the model has lost its signs");
        lacking("signs of several tokens");
    });
}

#[test]
fn text_cut_inside_a_character_is_valid() {
    check(Wanted::Tiny, async |server| {
        // The emoji is near the start of this one.
        let whole = ask(&server.options().seed(10).build().unwrap(), PROMPT).await.unwrap().text();
        for tokens in 1..=16 {
            let options = server.options().seed(10).max_tokens(tokens).build().unwrap();
            let cut = ask(&options, PROMPT).await.unwrap();
            let text = cut.text();
            assert!(whole.starts_with(&text), "{text:?} does not begin {whole:?}");
        }
    });
}
