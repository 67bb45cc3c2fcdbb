//! Laws of all estimates, and the parts that are counted.

use std::time::{Duration, Instant};

use allocation_counter::measure;
use oa_context::{
    Costs, Estimator, TokenCounter, counter_fn, estimate_text, estimate_tokens, estimate_tools,
    is_approaching_limit,
};
use oa_types::{
    AudioBlock, ContentBlock, ImageBlock, ImageDetail, Message, MessageRole, TextBlock,
    ThinkingBlock, ToolResultBlock, ToolSpec, ToolUseBlock, ToolUseError,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversation::{conversation, words};
use crate::texts::KINDS;

/// Text with runs of everything that the estimator distinguishes.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        words(),
        "[ \\t\\n]{0,20}",
        "[0-9]{0,12}",
        "[-=_.,:;{}\"'$/]{0,12}",
        "[a-z][a-zA-Z0-9_]{0,20}",
        "[ÀéüñçıłşğŁ]{0,5}",
        "[А-я]{0,12}",
        "[\u{591}-\u{5ea}]{0,12}",
        "[\u{900}-\u{97f}]{0,12}",
        "[\u{e01}-\u{e5b}]{0,12}",
        "[가-힣ぁ-んァ-ヶ、。]{0,12}",
        "[😀-😎🇩🇪👍🏽☀️\u{200d}]{0,6}",
        any::<String>(),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 30, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec(("[a-z_]{1,9}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_longer_text_never_costs_less(text in text()) {
        let mut before = 0;
        for (end, _) in text.char_indices().chain([(text.len(), ' ')]) {
            let count = estimate_text(&text[..end]);
            prop_assert!(before <= count, "{:?}: {before}, then {count}", &text[..end]);
            before = count;
        }
        prop_assert!(before <= 4 * text.chars().count());
    }

    #[test]
    fn longer_conversations_never_cost_less(
        messages in conversation(),
        place in any::<prop::sample::Index>(),
        more in text(),
    ) {
        let before = estimate_tokens(&messages);
        let mut longer = messages.clone();
        let message = place.get_mut(&mut longer);
        message.content.push(TextBlock::new(&more).into());
        prop_assert!(before <= estimate_tokens(&longer));

        let mut longer = messages.clone();
        for block in &mut place.get_mut(&mut longer).content {
            match block {
                ContentBlock::Text(block) => block.text.push_str(&more),
                ContentBlock::Thinking(block) => block.thinking.push_str(&more),
                ContentBlock::ToolResult(block) => {
                    if let Value::Array(items) = &mut block.content {
                        items.push(json!(more));
                    }
                }
                _ => {}
            }
        }
        prop_assert!(before <= estimate_tokens(&longer));

        let mut longer = messages.clone();
        longer.push(Message::user(more));
        prop_assert!(before <= estimate_tokens(&longer));
        prop_assert!(estimate_tokens(&messages[..messages.len() - 1]) < before);
    }

    #[test]
    fn json_costs_what_its_text_costs(value in value()) {
        prop_assert_eq!(Estimator::new().count_json(&value), estimate_text(&value.to_string()));
    }
}

#[test]
fn estimates_allocate_nothing() {
    let call = ToolUseBlock::new("call_1", "add", json!({"a": 1.5, "b": ["x\n\"y\"", null]}));
    let mut messages = vec![
        Message::assistant(vec![ThinkingBlock::new("Hm.").into(), call.into()]),
        Message::tool(ToolResultBlock::new("call_1", json!({"sum": 3, "said": "três"}))),
    ];
    messages.extend(KINDS.iter().map(|kind| Message::user(kind.held_out)));
    let tools = [ToolSpec::new("add", "Adds.", json!({"type": "object", "properties": {}}))];
    let mut counts = (0, 0);
    let cost = measure(|| {
        counts = (estimate_tokens(&messages), estimate_tools(&tools));
        assert!(!is_approaching_limit(&messages, 1_000_000, 0.9));
    });
    assert!(counts.0 > 10_000 && counts.1 > 80);
    assert_eq!(cost.count_total, 0);
}

#[test]
fn time_is_linear() {
    for unit in ["a", " ", "\n", "木", "=", "é", "word ", "{\"a\":", "👍"] {
        let short = unit.repeat(4_096 / unit.len());
        let long = short.repeat(16);
        let (mut least_short, mut least_long) = (Duration::MAX, Duration::MAX);
        // Each run is short enough that some are not interrupted.
        for _ in 0..50 {
            for (text, least) in [(&short, &mut least_short), (&long, &mut least_long)] {
                let start = Instant::now();
                assert!(estimate_text(text) > 0);
                *least = start.elapsed().min(*least);
            }
        }
        let ratio = least_long.as_secs_f64() / least_short.as_secs_f64();
        // Sixteen, plus the noise of a busy machine; quadratic time would be 256.
        assert!(ratio < 100.0, "{unit:?}: {ratio:.1} times as long for 16 times the text");
    }
}

#[test]
fn unsent_blocks_cost_nothing() {
    let thought: ContentBlock = ThinkingBlock::new("long and deep").into();
    let malformed: ContentBlock = ToolUseError::new("not JSON", "{\"a\": and so on").into();
    assert_eq!(estimate_tokens(&[]), 0);
    let silent = [
        Message::user(""),
        Message::assistant(vec![thought.clone()]),
        Message::assistant(vec![malformed]),
        Message::new(MessageRole::Tool, vec![TextBlock::new("no result").into()]),
    ];
    let costs = Costs::default();
    assert_eq!(estimate_tokens(&silent), costs.reply);

    let said = Message::assistant(vec![thought, TextBlock::new("Yes.").into()]);
    let plain = Estimator::new().count_message(&said);
    let mut with_thinking = costs;
    with_thinking.thinking = true;
    let thinking = Estimator::new().with_costs(with_thinking).count_message(&said);
    assert_eq!(plain, costs.message + estimate_text("Yes."));
    assert_eq!(thinking, plain + estimate_text("long and deep"));
}

#[test]
fn images_of_results_have_their_costs() {
    let count = |images: &[ImageDetail]| {
        let mut result = ToolResultBlock::new("call_1", json!("Here."));
        for detail in images {
            let image = ImageBlock::from_url("https://example.com/a.png").unwrap();
            result.images.push(image.with_detail(*detail));
        }
        Estimator::new().count_message(&Message::tool(result))
    };
    let (none, one) = (count(&[]), count(&[ImageDetail::Low]));
    assert!((none + 85..none + 85 + 40).contains(&one), "{none} without, {one} with an image");
    assert_eq!(count(&[ImageDetail::Low, ImageDetail::High]), one + 1_105);
}

#[test]
fn every_kind_of_block_has_its_cost() {
    let costs = Costs::default();
    let image = |detail| {
        let image = ImageBlock::from_url("https://example.com/a.png").unwrap().with_detail(detail);
        Estimator::new().count_message(&Message::user_with_blocks(vec![image.into()]))
    };
    assert_eq!(image(ImageDetail::Low), costs.message + 85);
    assert_eq!(image(ImageDetail::Auto), costs.message + 765);
    assert_eq!(image(ImageDetail::High), costs.message + 1_105);
    // Image data is not text.
    let audio = AudioBlock::from_base64("A".repeat(4 << 10), "audio/wav").unwrap();
    let message = Message::user_with_audio("", audio);
    assert_eq!(Estimator::new().count_message(&message), costs.message + 3);

    let data = ImageBlock::from_base64("A".repeat(1 << 20), "image/png").unwrap();
    assert_eq!(estimate_tokens(&[Message::user_with_blocks(vec![data.into()])]), 765 + 4 + 3);

    let input = json!({"path": "src/main.rs"});
    let call = Message::assistant(vec![ToolUseBlock::new("1", "read", input.clone()).into()]);
    assert_eq!(
        Estimator::new().count_message(&call),
        costs.message + costs.call + estimate_text("read") + estimate_text(&input.to_string())
    );
    let result = Message::tool(ToolResultBlock::new("1", json!("fn main() {}")));
    assert_eq!(
        Estimator::new().count_message(&result),
        costs.message + costs.result + estimate_text("fn main() {}")
    );
    assert_eq!(estimate_tools(&[]), 0);
    let tool = ToolSpec::new("read", "Reads a file.", json!({"type": "object"}));
    let one = estimate_tools(std::slice::from_ref(&tool));
    assert_eq!(estimate_tools(&[tool.clone(), tool]), 2 * one - costs.tools);
}

#[test]
fn overhead_is_the_same_for_any_counter() {
    let counter = counter_fn(|text: &str| text.len());
    let result = Message::tool(ToolResultBlock::new("1", json!({"a": 1})));
    assert_eq!(counter.count_message(&result), 4 + 4 + r#"{"a":1}"#.len());
    assert!(format!("{counter:?}").contains("closure"));
    let mut costs = Costs::default();
    costs.message = 100;
    assert_eq!(counter.with_costs(costs).count_message(&Message::user("abc")), 103);
}

#[test]
fn the_limit_is_near_from_the_margin_on() {
    let messages = [Message::user("word ".repeat(93))];
    let count = estimate_tokens(&messages);
    assert!(is_approaching_limit(&messages, count, 1.0));
    assert!(!is_approaching_limit(&messages, count + 1, 1.0));
    assert!(is_approaching_limit(&messages, 2 * count, 0.5));
    assert!(!is_approaching_limit(&messages, 2 * count + 2, 0.5));
    assert!(is_approaching_limit(&messages, count, 7.0));
    assert!(!is_approaching_limit(&messages, count + 1, 7.0));
    assert!(is_approaching_limit(&[], 0, 0.9));
    assert!(is_approaching_limit(&messages, usize::MAX, f64::NAN));
    assert!(is_approaching_limit(&messages, usize::MAX, -1.0));
    assert!(!is_approaching_limit(&messages, usize::MAX, 0.5));
}
