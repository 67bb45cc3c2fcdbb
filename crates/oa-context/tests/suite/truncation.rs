//! A truncated conversation is still a valid conversation.

use oa_context::{Estimator, Truncated, Truncation, Unit, truncate_messages};
use oa_types::{Message, MessageRole, TextBlock, ToolResultBlock, ToolUseBlock};
use proptest::prelude::*;
use serde_json::json;

use crate::conversation::{check_sent, conversation, tokens};

fn is_system(message: &Message) -> bool {
    message.role == MessageRole::System
}

/// Returns true if `few` is a subsequence of `many`.
fn is_part(few: &[Message], many: &[Message]) -> bool {
    let mut rest = many.iter();
    few.iter().all(|message| rest.any(|other| other == message))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn truncated_conversations_stay_valid(messages in conversation()) {
        check_sent(&messages)?;
        for preserve_system in [true, false] {
            let least = truncate_messages(&messages, 1, preserve_system);
            let mut before = 0;
            for keep in 1..=messages.len() + 1 {
                let kept = truncate_messages(&messages, keep, preserve_system);
                check_sent(&kept)?;
                prop_assert!(is_part(&kept, &messages));
                prop_assert_eq!(kept.last(), messages.last());
                let counted = kept.iter().filter(|m| !(preserve_system && is_system(m))).count();
                prop_assert!(counted <= keep || kept == least, "{} of {}", counted, keep);
                prop_assert!(before <= kept.len(), "more is kept where less was asked for");
                before = kept.len();
                if keep >= messages.len() {
                    prop_assert_eq!(&kept, &messages);
                }
                let first = kept.iter().find(|message| !is_system(message));
                prop_assert_eq!(first.map(|first| first.role), Some(MessageRole::User));
                if preserve_system {
                    prop_assert_eq!(is_system(&messages[0]), is_system(&kept[0]));
                }
            }
        }
    }

    #[test]
    fn truncation_stays_within_the_tokens(
        messages in conversation(),
        shares in prop::collection::vec(0.0..1.1_f64, 4),
    ) {
        let counter = Estimator::new();
        let least = Truncation::new().within(&messages, 0, &counter).apply(&messages);
        for share in shares {
            let budget = (tokens(&messages) as f64 * share) as usize;
            let cut = Truncation::new().within(&messages, budget, &counter);
            let kept = cut.apply(&messages);
            check_sent(&kept)?;
            prop_assert!(tokens(&kept) <= budget || kept == least);
            prop_assert_eq!(cut.is_whole(), kept.len() == messages.len());
            let gone: usize = cut.dropped().iter().map(ExactSizeIterator::len).sum();
            prop_assert_eq!(gone + kept.len(), messages.len());
        }
    }

    #[test]
    fn unit_message_keeps_exactly_the_last(messages in conversation(), keep in 0..20_usize) {
        let cut = Truncation::new().without_system().with_unit(Unit::Message).last(&messages, keep);
        let from = messages.len().saturating_sub(keep);
        prop_assert_eq!(cut.apply(&messages), &messages[from..]);
    }
}

fn said(text: &str) -> Message {
    Message::assistant(vec![TextBlock::new(text).into()])
}

fn calls(ids: &[&str]) -> Message {
    let call = |id: &&str| ToolUseBlock::new(*id, "add", json!({})).into();
    Message::assistant(ids.iter().map(call).collect())
}

fn result(id: &str) -> Message {
    Message::tool(ToolResultBlock::new(id, json!(1)))
}

/// One prompt with three rounds and an answer, after a complete exchange.
fn long() -> Vec<Message> {
    vec![
        Message::system("Be brief."),
        Message::user("Hello."),
        said("Hello."),
        Message::user("Add."),
        calls(&["1", "2"]),
        result("1"),
        result("2"),
        calls(&["3"]),
        result("3"),
        calls(&["4"]),
        result("4"),
        said("Done."),
    ]
}

#[track_caller]
fn check(messages: &[Message], keep: usize, places: &[usize]) {
    let kept = truncate_messages(messages, keep, true);
    let expected: Vec<Message> = places.iter().map(|place| messages[*place].clone()).collect();
    assert_eq!(kept, expected, "the last {keep}");
}

#[test]
fn long_exchange_keeps_its_prompt() {
    let messages = long();
    check(&messages, 0, &[0]);
    check(&messages, 1, &[0, 3, 11]);
    check(&messages, 3, &[0, 3, 11]);
    check(&messages, 4, &[0, 3, 9, 10, 11]);
    check(&messages, 6, &[0, 3, 7, 8, 9, 10, 11]);
    check(&messages, 8, &[0, 3, 7, 8, 9, 10, 11]);
    check(&messages, 9, &[0, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    check(&messages, 10, &[0, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    check(&messages, 11, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
}

#[test]
fn open_calls_stay_with_their_results() {
    let mut messages = long();
    messages.truncate(11);
    check(&messages, 1, &[0, 3, 9, 10]);
    messages.truncate(10);
    check(&messages, 1, &[0, 3, 9]);
}

#[test]
fn last_of_adjacent_prompts_stays() {
    let messages = [Message::user("a"), Message::user("b"), Message::user("c"), said("d")];
    check(&messages, 2, &[2, 3]);
    check(&messages, 3, &[1, 2, 3]);
    check(&messages[..3], 2, &[1, 2]);
}

#[test]
fn invalid_conversations_do_not_panic() {
    let orphans = [result("1"), said("a"), result("2"), Message::user(""), calls(&["3"])];
    for keep in 0..=6 {
        for length in 0..=orphans.len() {
            let kept = truncate_messages(&orphans[..length], keep, true);
            assert!(kept.len() <= length);
        }
    }
    assert_eq!(truncate_messages(&[], 3, true), []);
    let system = [Message::system("a"), Message::system("b")];
    assert_eq!(truncate_messages(&system, 1, true), system);
    assert_eq!(truncate_messages(&system, 0, true), system);
    assert_eq!(truncate_messages(&system, 0, false), []);
}

fn gone(cut: &Truncated) -> Vec<usize> {
    cut.dropped().into_iter().flatten().collect()
}

#[test]
fn a_budget_counts_the_system_message_too() {
    let messages = long();
    let counter = Estimator::new();
    let all = tokens(&messages);
    assert!(Truncation::new().within(&messages, all, &counter).is_whole());
    let cut = Truncation::new().within(&messages, all - 1, &counter);
    assert_eq!(gone(&cut), [1, 2]);
    let without = Truncation::new().without_system().within(&messages, all - 1, &counter);
    assert_eq!(gone(&without), [0]);
}
