//! Servers that report how much of the prompt they have processed.

use std::time::Duration;

use oa_aggregate::{Aggregator, Delta, Options, TemplateCache};
use oa_types::PromptProgress;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn chunk(delta: &Value, progress: Option<&Value>) -> Vec<u8> {
    let mut chunk = json!({
        "choices": [{"finish_reason": null, "index": 0, "delta": delta}],
        "created": 1, "id": "chatcmpl-1", "model": "any", "object": "chat.completion.chunk",
    });
    if let Some(progress) = progress {
        chunk["prompt_progress"] = progress.clone();
    }
    chunk.to_string().into_bytes()
}

fn empty(progress: &Value) -> Vec<u8> {
    chunk(&json!({"role": "assistant", "content": null}), Some(progress))
}

/// All progress, and the text.
fn read(
    payloads: &[Vec<u8>],
    cache: TemplateCache,
) -> (Vec<PromptProgress>, String, TemplateCache) {
    let mut aggregator = Aggregator::with_templates(Options::default(), cache);
    let (mut progress, mut text) = (Vec::new(), String::new());
    for payload in payloads {
        aggregator.push(payload).expect("no limit is exceeded");
        while let Some(delta) = aggregator.next_delta() {
            match delta {
                Delta::PromptProgress(told) => progress.push(told),
                Delta::Text(words) => text.push_str(words),
                delta => panic!("{delta:?}"),
            }
        }
        assert_eq!(aggregator.has_begun(), !text.is_empty(), "a progress is no beginning");
    }
    (progress, text, aggregator.take_templates())
}

proptest! {
    /// Whatever the numbers are, cold or with templates of earlier answers: each is told, and the text is the same.
    #[test]
    fn each_progress_is_a_delta(
        numbers in vec((any::<u32>(), any::<u32>(), any::<u32>(), 0..1_000_000_u32), 0..8),
    ) {
        let member = |&(total, cached, processed, millis): &(u32, u32, u32, u32)| {
            json!({"total": total, "cache": cached, "processed": processed, "time_ms": millis})
        };
        let words = ["The ", "red mill ", "turns."];
        let mut payloads: Vec<Vec<u8>> = numbers.iter().map(|it| empty(&member(it))).collect();
        payloads.extend(words.iter().map(|word| chunk(&json!({"content": word}), None)));
        let expected: Vec<PromptProgress> = numbers.iter().map(|&(total, cached, processed, millis)| {
            let elapsed = Duration::from_millis(millis.into());
            PromptProgress::new(total.into(), cached.into(), processed.into(), elapsed)
        }).collect();
        let mut cache = TemplateCache::default();
        for _ in 0..3 {
            let (progress, text, templates) = read(&payloads, cache);
            prop_assert_eq!(&progress, &expected);
            prop_assert_eq!(text, words.concat());
            cache = templates;
        }
    }
}

#[test]
fn invalid_progress_is_ignored() {
    let long =
        json!({"total": 1, "cache": 0, "processed": 1, "time_ms": 1, "x": "x".repeat(2_000)});
    let odd =
        [json!(null), json!(5), json!([1]), json!({"total": -1}), json!({"total": "1"}), long];
    let mut payloads: Vec<Vec<u8>> = odd.iter().map(empty).collect();
    payloads.push(chunk(&json!({"content": "Hi"}), None));
    let (progress, text, _) = read(&payloads, TemplateCache::default());
    assert_eq!((progress, text), (Vec::new(), "Hi".to_owned()));
    // Members that are missing are zero, and further ones are nothing.
    let (progress, _, _) = read(&[empty(&json!({"total": 9, "eta": 1}))], TemplateCache::default());
    assert_eq!(progress, [PromptProgress::new(9, 0, 0, Duration::ZERO)]);
}
