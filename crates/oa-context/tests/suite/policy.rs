//! Plans for conversations that are too long.

use oa_context::{ContextPolicy, Estimator, Overflow, Plan, TokenCounter, Truncation};
use oa_types::{Message, TextBlock, ToolSpec};
use proptest::prelude::*;
use serde_json::json;

use crate::conversation::{check_sent, conversation, tokens};

fn exchanges(count: usize) -> Vec<Message> {
    let exchange = |number| {
        let answer = TextBlock::new(format!("Answer {number}. {}", "It is so. ".repeat(20)));
        [Message::user(format!("Question {number}?")), Message::assistant(vec![answer.into()])]
    };
    (0..count).flat_map(exchange).collect()
}

#[test]
fn nothing_is_dropped_below_the_trigger() {
    let policy = ContextPolicy::new(1_000);
    let counter = Estimator::new();
    assert!(matches!(policy.plan(&[], &[], &counter), Plan::Keep));
    let mut messages = exchanges(8);
    assert!(tokens(&messages) < 800);
    assert!(matches!(policy.plan(&messages, &[], &counter), Plan::Keep));
    messages.extend(exchanges(3));
    assert!(tokens(&messages) >= 800);
    let Plan::Drop(cut) = policy.plan(&messages, &[], &counter) else {
        panic!("it is too long");
    };
    let kept = cut.apply(&messages);
    assert!(tokens(&kept) <= 500);
    assert_eq!(kept.last(), messages.last());
    assert!(matches!(policy.plan(&kept, &[], &counter), Plan::Keep));
}

#[test]
fn tools_count_toward_the_limit() {
    let policy = ContextPolicy::new(1_000);
    let counter = Estimator::new();
    let messages = exchanges(8);
    let tool = ToolSpec::new("look", "Looks it up. ".repeat(60), json!({"type": "object"}));
    let Plan::Drop(cut) = policy.plan(&messages, &[tool], &counter) else {
        panic!("with the tool it is too long");
    };
    assert!(!cut.is_whole());
}

#[test]
fn single_long_prompt_is_stuck() {
    let policy = ContextPolicy::new(100);
    let messages = [Message::user("word ".repeat(200))];
    for overflow in [Overflow::DropOldest, Overflow::Summarize] {
        let policy = policy.clone().with_overflow(overflow);
        assert!(matches!(policy.plan(&messages, &[], &Estimator::new()), Plan::Stuck));
    }
}

#[test]
fn exactly_the_trigger_is_shortened() {
    let messages = exchanges(12);
    let policy = ContextPolicy::new(tokens(&messages)).with_trigger(1.0).with_target(1.0);
    let Plan::Drop(cut) = policy.plan(&messages, &[], &Estimator::new()) else {
        panic!("it is as long as the trigger");
    };
    let kept = cut.apply(&messages);
    assert!(kept.len() < messages.len());
    assert!(matches!(policy.plan(&kept, &[], &Estimator::new()), Plan::Keep));
}

#[test]
fn summary_replaces_dropped_messages() {
    let policy =
        ContextPolicy::new(1_000).with_overflow(Overflow::Summarize).with_instructions("Sum up.");
    let counter = Estimator::new();
    let mut messages = vec![Message::system("Be brief.")];
    messages.extend(exchanges(12));
    let Plan::Summarize(mut summary) = policy.plan(&messages, &[], &counter) else {
        panic!("it is too long");
    };
    let mut asked = Vec::new();
    while let Some(request) = summary.next_request() {
        assert_eq!(summary.next_request().as_ref(), Some(&request), "asking changes nothing");
        assert!(tokens(&request) <= 520);
        asked.push(request[0].text());
        summary.push(format!(" Summary {}.\n", asked.len()));
    }
    summary.push("One too many.");
    assert!(asked.len() > 1 && asked[0].starts_with("Sum up.\n\nUse at most "), "{asked:?}");
    assert!(asked[0].contains("user: Question 0?\nassistant: Answer 0. It is so."));
    assert!(!asked[0].contains("What came before") && asked[1].contains("Summary 1."));

    let kept = summary.finish(&messages);
    assert_eq!(kept[0], messages[0]);
    assert_eq!(kept.last(), messages.last());
    let first = kept[1].text();
    assert!(first.contains(&format!("Summary {}.\n", asked.len())), "{first}");
    assert!(first.contains("continues here.)Question "), "{first}");
    assert!(matches!(policy.plan(&kept, &[], &counter), Plan::Keep));

    // An existing summary is summarized again with the rest.
    let mut longer = kept;
    longer.extend(exchanges(12));
    let Plan::Summarize(again) = policy.plan(&longer, &[], &counter) else {
        panic!("it is too long again");
    };
    let request = again.next_request().unwrap();
    assert!(request[0].text().contains(&format!("Summary {}.", asked.len())));
}

#[test]
fn missing_summaries_drop_the_oldest() {
    let policy = ContextPolicy::new(1_000).with_overflow(Overflow::Summarize);
    let messages = exchanges(12);
    let plan = || match policy.plan(&messages, &[], &Estimator::new()) {
        Plan::Summarize(summary) => summary,
        plan => panic!("{plan:?}"),
    };
    let cut = plan().give_up();
    assert_eq!(plan().finish(&messages), cut.apply(&messages));
    let mut empty = plan();
    while empty.next_request().is_some() {
        empty.push("  ");
    }
    assert_eq!(empty.finish(&messages), cut.apply(&messages));
}

#[test]
fn endless_summaries_are_cut() {
    let policy = ContextPolicy::new(1_000).with_overflow(Overflow::Summarize);
    let messages = exchanges(12);
    let Plan::Summarize(mut summary) = policy.plan(&messages, &[], &Estimator::new()) else {
        panic!("it is too long");
    };
    while summary.next_request().is_some() {
        summary.push("and so on ".repeat(100_000));
    }
    assert!(tokens(&summary.finish(&messages)) < 600);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Such a conversation needs no further plan.
    #[test]
    fn plans_lead_to_valid_conversations(
        messages in conversation(),
        limit in 0..1_500_usize,
        trigger in 0.0..1.0_f64,
        target in 0.0..1.0_f64,
        summarize in any::<bool>(),
        answer in "[a-z]{0,8}( [a-z]{1,8}){0,150}",
    ) {
        let overflow = if summarize { Overflow::Summarize } else { Overflow::DropOldest };
        let policy = ContextPolicy::new(limit)
            .with_trigger(trigger)
            .with_target(target)
            .with_overflow(overflow);
        let counter = Estimator::new();
        let least = Truncation::new().within(&messages, 0, &counter).apply(&messages);
        let at_trigger = (limit as f64 * trigger) as usize;
        match policy.plan(&messages, &[], &counter) {
            Plan::Keep => prop_assert!(counter.count_messages(&messages) < at_trigger),
            Plan::Stuck => prop_assert_eq!(&least, &messages),
            Plan::Drop(cut) => {
                let kept = cut.apply(&messages);
                check_sent(&kept)?;
                prop_assert!(kept.len() < messages.len());
                prop_assert!(tokens(&kept) < at_trigger || kept == least);
            }
            Plan::Summarize(mut summary) => {
                let mut requests = 0;
                while let Some(request) = summary.next_request() {
                    check_sent(&request)?;
                    summary.push(&answer);
                    requests += 1;
                    prop_assert!(requests <= messages.len());
                }
                let kept = summary.finish(&messages);
                check_sent(&kept)?;
                prop_assert!(kept.len() < messages.len() && tokens(&kept) < tokens(&messages));
                prop_assert_eq!(kept.last().map(|last| last.role), messages.last().map(|last| last.role));
            }
            plan => prop_assert!(false, "{:?}", plan),
        }
    }
}
