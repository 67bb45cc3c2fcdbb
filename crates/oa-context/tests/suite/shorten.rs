//! Conversations that are shortened while a turn runs.

use oa_context::{ContextPolicy, Estimator, Overflow, RunningTurn, Shortened, TokenCounter};
use oa_testkit::Strict;
use oa_types::wire::{MessageFormat, write_message};
use oa_types::{ContentBlock, Message, MessageRole, TextBlock, ToolResultBlock, ToolUseBlock};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversation::{conversation, tokens};

/// A step: a call and its result.
fn step(number: usize, result: &str) -> [Message; 2] {
    let id = format!("call_{number}");
    let call = ToolUseBlock::new(&*id, "read", json!({ "page": number }));
    let mut result = ToolResultBlock::new(id, json!(result));
    result.name = Some("read".into());
    [Message::assistant(vec![call.into()]), Message::tool(result)]
}

fn long(number: usize) -> String {
    format!("Page {number}. {}", "It goes on and on. ".repeat(30))
}

/// An earlier exchange, then a turn of so many steps.
fn run(steps: usize) -> Vec<Message> {
    let answer = Message::assistant(vec![TextBlock::new("Hello.").into()]);
    let mut messages =
        vec![Message::system("Be brief."), Message::user("Hi."), answer, Message::user("Go.")];
    messages.extend((0..steps).flat_map(|number| step(number, &long(number))));
    messages
}

fn contents(messages: &[Message]) -> Vec<&str> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    blocks
        .filter_map(|block| match block {
            ContentBlock::ToolResult(result) => result.content.as_str(),
            _ => None,
        })
        .collect()
}

#[track_caller]
fn shortened(policy: &ContextPolicy, turn: &RunningTurn<'_>) -> Shortened {
    policy.shorten(turn, &Estimator::new()).expect("it is too long").finish(&Estimator::new())
}

#[test]
fn old_results_are_cleared_first() {
    let messages = run(8);
    let turn = RunningTurn::new(&messages, Some(3), 18);
    let policy = ContextPolicy::new(1_500).with_kept_results(2);
    let Shortened { messages: kept, cleared, dropped, archived, before, after, .. } =
        shortened(&policy, &turn);
    assert_eq!((cleared, dropped, archived.len()), (6, 0, 6));
    assert_eq!((before, after), (tokens(&messages), tokens(&kept)));
    let note = "[This result had 578 characters and was cleared to save space. Call the tool again if you need it.]";
    assert_eq!(contents(&kept)[..6], [note; 6]);
    assert_eq!(contents(&kept)[6..], contents(&messages)[6..]);
    assert_eq!(contents(&archived), contents(&messages)[..6]);
    // Notes stay notes.
    let turn = RunningTurn::new(&kept, Some(3), 18).after_overflow(true);
    let again = shortened(&policy, &turn);
    assert!(contents(&again.messages).iter().all(|text| !text.contains("had 9")));
}

#[test]
fn stored_results_say_how_to_read_them() {
    let messages = run(8);
    let readable = |result: &ToolResultBlock| Some(format!("Read it: {}.", result.tool_use_id));
    let turn = RunningTurn::new(&messages, Some(3), 18).with_readable(&readable);
    let policy = ContextPolicy::new(1_500).with_kept_results(2);
    let kept = shortened(&policy, &turn).messages;
    assert!(contents(&kept)[0].ends_with("Read it: call_0.]"), "{}", contents(&kept)[0]);
}

#[test]
fn exchanges_are_dropped_before_steps() {
    let messages = run(40);
    let turn = RunningTurn::new(&messages, Some(3), 82);
    let policy = ContextPolicy::new(1_500).with_target(0.4);
    let Shortened { messages: kept, dropped, after, is_summarized, .. } = shortened(&policy, &turn);
    assert!(after <= 600 && !is_summarized, "{after}");
    assert_eq!(kept[..2], [messages[0].clone(), messages[3].clone()]);
    assert_eq!(kept.last(), messages.last());
    assert_eq!((dropped, dropped + kept.len()), (84 - kept.len(), 84));
}

#[test]
fn later_system_messages_go_with_their_exchange() {
    let mut messages = run(40);
    messages.insert(2, Message::system("Speak French."));
    for overflow in [Overflow::DropOldest, Overflow::Summarize] {
        let policy = ContextPolicy::new(1_500).with_target(0.4).with_overflow(overflow);
        let turn = RunningTurn::new(&messages, Some(4), 83);
        let mut shortening = policy.shorten(&turn, &Estimator::new()).unwrap();
        let request = shortening.summary().and_then(|summary| summary.next_request());
        let is_told = request.map(|request| request[0].text().contains("Speak French."));
        assert_eq!(is_told, (overflow == Overflow::Summarize).then_some(true));
        assert_eq!(shortening.archived()[1], messages[2]);
        let kept = shortening.finish(&Estimator::new()).messages;
        assert_eq!(kept[..2], [messages[0].clone(), messages[4].clone()]);
    }
}

#[test]
fn later_summaries_replace_earlier_ones() {
    let policy = ContextPolicy::new(1_500).with_overflow(Overflow::Summarize);
    let mut messages = run(40);
    for round in 1..=2 {
        let keep_from = messages.len() - 2;
        let prompt = messages.iter().position(|message| message.text() == "Go.");
        let turn = RunningTurn::new(&messages, prompt, keep_from);
        let mut shortening = policy.shorten(&turn, &Estimator::new()).unwrap();
        let summary = shortening.summary().unwrap();
        let mut first = true;
        while let Some(request) = summary.next_request() {
            assert!(tokens(&request) < 1_000);
            let has_old = request[0].text().contains("They read 1.");
            assert_eq!(has_old, round == 2 && first, "the old one is summarized again");
            first = false;
            summary.push(if has_old { "So far." } else { "They read a lot." });
        }
        summary.push("ignored");
        let done = shortening.finish(&Estimator::new());
        assert!(done.is_summarized && done.after < 750, "{}", done.after);
        messages = done.messages;
        let [system, summary, prompt] = &messages[..3] else { panic!("{messages:?}") };
        assert_eq!((&*system.text(), &*prompt.text()), ("Be brief.", "Go."));
        assert!(summary.text().contains("They read a lot."), "{}", summary.text());
        assert_eq!(summary.role, MessageRole::User);
        let mut words = summary.clone();
        if let Some(ContentBlock::Text(text)) = words.content.first_mut() {
            text.text = text.text.replace("They read a lot.", "They read 1.");
        }
        messages[1] = words;
        messages.extend((0..40).flat_map(|number| step(100 * round + number, &long(number))));
    }
}

/// The prompt alone is longer than the target, so every step exceeds it again.
#[test]
fn summaries_are_shorter_than_their_source() {
    let policy = ContextPolicy::new(3_000).with_overflow(Overflow::Summarize);
    let mut messages = run(0);
    messages[3] = Message::user("word ".repeat(2_500));
    let turn = RunningTurn::new(&messages, Some(3), 3);
    let mut shortening = policy.shorten(&turn, &Estimator::new()).unwrap();
    assert!(shortening.summary().is_none(), "a greeting is shorter than its summary");
    messages = shortening.finish(&Estimator::new()).messages;
    assert_eq!(messages.len(), 2);
    for number in 0..9 {
        messages.extend(step(number, &long(number)));
        let prompt = messages.iter().position(|message| message.text().starts_with("word"));
        let turn = RunningTurn::new(&messages, prompt, messages.len() - 2);
        let Some(mut shortening) = policy.shorten(&turn, &Estimator::new()) else {
            assert!(number == 0, "there is a step to be summarized");
            continue;
        };
        let summary = shortening.summary().unwrap();
        while summary.next_request().is_some() {
            summary.push("They read. ".repeat(500));
        }
        let Shortened { messages: kept, before, after, .. } = shortening.finish(&Estimator::new());
        assert!(after < before, "{after} of {before}");
        messages = kept;
        // Nothing but the summary could go, and it is no news.
        let prompt = messages.iter().position(|message| message.text().starts_with("word"));
        let turn = RunningTurn::new(&messages, prompt, messages.len() - 2);
        assert!(policy.shorten(&turn, &Estimator::new()).is_none());
        let overflow = policy.shorten(&turn.after_overflow(true), &Estimator::new());
        let mut overflow = overflow.expect("the summary goes");
        assert!(overflow.summary().is_none());
        assert_eq!(overflow.finish(&Estimator::new()).dropped, 1);
    }
}

#[test]
fn summaries_are_cut_by_server_tokens() {
    let policy = ContextPolicy::new(2_000).with_overflow(Overflow::Summarize);
    let messages = run(40);
    for ratio in 1..=3 {
        let reported = ratio * tokens(&messages) as u64;
        let turn = RunningTurn::new(&messages, Some(3), 82)
            .with_reported(Some((reported, messages.len())));
        let mut shortening = policy.shorten(&turn, &Estimator::new()).unwrap();
        let summary = shortening.summary().unwrap();
        while summary.next_request().is_some() {
            summary.push("They read. ".repeat(500));
        }
        let after = shortening.finish(&Estimator::new()).after;
        assert!(after <= 1_000, "{after} at a ratio of {ratio}");
    }
}

#[test]
fn missing_summaries_drop_the_messages() {
    let messages = run(40);
    let turn = RunningTurn::new(&messages, Some(3), 82);
    let policy = ContextPolicy::new(1_500).with_overflow(Overflow::Summarize);
    let mut given_up = policy.shorten(&turn, &Estimator::new()).unwrap();
    given_up.give_up();
    let given_up = given_up.finish(&Estimator::new());
    assert!(!given_up.is_summarized);
    assert_eq!(shortened(&policy, &turn), given_up);
    let without = turn.without_summary(true);
    assert!(policy.shorten(&without, &Estimator::new()).unwrap().summary().is_none());
}

#[test]
fn reported_size_wins_over_the_estimate() {
    let messages = run(8);
    let estimated = tokens(&messages) as u64;
    let policy = ContextPolicy::new(4_000);
    let turn = RunningTurn::new(&messages, Some(3), 18);
    assert!(policy.shorten(&turn, &Estimator::new()).is_none(), "{estimated}");
    let long = turn.with_reported(Some((3 * estimated, messages.len())));
    let Shortened { before, after, .. } = shortened(&policy, &long);
    assert_eq!(before as u64, 3 * estimated);
    assert!(after > tokens(&messages) && after <= 2_000, "what stays is counted by the same ratio");
    // What was added since counts by the same ratio.
    let part = tokens(&messages[..18]) as u64;
    let grown = shortened(&policy, &turn.with_reported(Some((3 * part, 18)))).before as u64;
    assert!(grown.abs_diff(3 * estimated) < 20, "{grown}");
    // A server that has cut the prompt reports too few.
    let policy = ContextPolicy::new(1_500);
    assert_eq!(shortened(&policy, &turn.with_reported(Some((100, 18)))).before as u64, estimated);
}

#[test]
fn an_overflow_shortens_more() {
    let messages = run(8);
    let turn = RunningTurn::new(&messages, Some(3), 18);
    let policy = ContextPolicy::new(100_000);
    assert!(policy.shorten(&turn, &Estimator::new()).is_none());
    let harder = shortened(&policy, &turn.after_overflow(true));
    assert_eq!((harder.cleared, harder.dropped), (7, 0), "all but the last one");
    let policy = ContextPolicy::new(1_500);
    let once = shortened(&policy, &turn);
    let harder = shortened(&policy, &turn.after_overflow(true));
    assert!(harder.after < once.after && harder.after <= 375, "{}", harder.after);
}

/// The context of the server may be far smaller than the policy says.
#[test]
fn an_overflow_below_the_target_shortens() {
    let answer = || Message::assistant(vec![TextBlock::new("Words. ".repeat(100)).into()]);
    let mut messages: Vec<Message> =
        (0..8).flat_map(|_| [Message::user("Go on."), answer()]).collect();
    messages.push(Message::user("Go."));
    let before = tokens(&messages);
    let turn = RunningTurn::new(&messages, Some(16), 16).after_overflow(true);
    let policy = ContextPolicy::new(100_000);
    let done = shortened(&policy, &turn);
    assert!(done.after <= before / 2 && done.dropped < 16, "{done:?}");
    check(&done.messages).unwrap();
    // The text to summarize takes requests that the same server accepts.
    let mut done =
        policy.with_overflow(Overflow::Summarize).shorten(&turn, &Estimator::new()).unwrap();
    while let Some(summary) = done.summary()
        && let Some(request) = summary.next_request()
    {
        assert!(tokens(&request) < before / 2 + 20, "{} of {before}", tokens(&request));
        summary.push("Words.");
    }
    assert!(done.finish(&Estimator::new()).is_summarized);
}

#[test]
fn sizes_of_an_overflow_set_the_target() {
    let messages = run(8);
    let estimated = tokens(&messages) as u64;
    let turn = RunningTurn::new(&messages, Some(3), 18).after_overflow(true);
    let policy = ContextPolicy::new(100_000);
    // The context is smaller than the policy says, and the prompt twice its estimate.
    let context = 2 * estimated - 1;
    let known = turn.with_refused(Some(2 * estimated), Some(context));
    let Shortened { before, after, dropped, .. } = shortened(&policy, &known);
    assert_eq!(before as u64, 2 * estimated);
    assert!(after as u64 <= context / 2, "{after} of {context}");
    assert!(dropped <= shortened(&policy, &turn.with_refused(None, Some(context))).dropped);
    // The same prompt is not sent again, even if its size alone fits into the context.
    let fits = turn.with_refused(Some(estimated), Some(100_000));
    let after = shortened(&policy, &fits).after as u64;
    assert!(after <= estimated / 2, "{after} of {estimated}");
    // With a measured size the target is not halved once more.
    let policy = ContextPolicy::new(1_500);
    let measured = shortened(&policy, &turn.with_refused(Some(estimated), Some(1_500)));
    let guessed = shortened(&policy, &turn);
    assert!(guessed.after < measured.after && measured.after <= 750, "{}", measured.after);
    // What cannot be the size of this prompt is not taken for it.
    for wrong in [1, estimated / 3, 100 * estimated, u64::MAX] {
        let unknown = turn.with_refused(Some(wrong), None);
        assert_eq!(shortened(&policy, &unknown), guessed, "{wrong}");
    }
    // Without an overflow the sizes mean nothing.
    let policy = ContextPolicy::new(100_000);
    assert!(policy.shorten(&known.after_overflow(false), &Estimator::new()).is_none());
}

/// A text that does not fit by itself leaves the conversation alone, also after the server has rejected it.
#[test]
fn hopeless_prompts_shorten_nothing() {
    let policy = ContextPolicy::new(1_000).with_overflow(Overflow::Summarize);
    let plan = |length: usize, is_overflow: bool, context: Option<u64>| {
        let mut messages = run(4);
        messages.push(Message::assistant(vec![TextBlock::new("Done.").into()]));
        messages.push(Message::user("a line of a log\n".repeat(length)));
        let turn = RunningTurn::new(&messages, Some(messages.len() - 1), messages.len() - 1)
            .after_overflow(is_overflow)
            .with_refused(None, context);
        policy.shorten(&turn, &Estimator::new()).is_some()
    };
    for is_overflow in [false, true] {
        assert!(plan(300, is_overflow, None), "1.5 contexts may be an overestimate");
        assert!(!plan(900, is_overflow, None));
    }
    assert!(plan(900, true, Some(4_000)), "the server has room");
}

#[test]
fn nothing_to_remove_is_no_plan() {
    let [call, result] = step(1, &long(1));
    let messages = [Message::user("Go."), call, result];
    let turn = RunningTurn::new(&messages, Some(0), 1).after_overflow(true);
    assert!(ContextPolicy::new(10).shorten(&turn, &Estimator::new()).is_none());
    let nobody = RunningTurn::new(&messages[1..], None, 0).after_overflow(true);
    assert!(ContextPolicy::new(10).shorten(&nobody, &Estimator::new()).is_none());
}

/// Ten times the context, step by step, as a turn would have it.
#[test]
fn long_run_stays_within_one_context() {
    for overflow in [Overflow::DropOldest, Overflow::Summarize] {
        let policy = ContextPolicy::new(2_000).with_overflow(overflow);
        let (mut messages, mut sum) = (run(0), 0);
        for number in 0..200 {
            sum += tokens(&step(number, &long(number)));
            messages.extend(step(number, &long(number)));
            let prompt = messages.iter().position(|message| message.text() == "Go.");
            let turn = RunningTurn::new(&messages, prompt, messages.len() - 2);
            let Some(mut shortening) = policy.shorten(&turn, &Estimator::new()) else { continue };
            while let Some(summary) = shortening.summary()
                && let Some(request) = summary.next_request()
            {
                assert!(tokens(&request) < 2_000);
                summary.push("They read. ".repeat(500));
            }
            messages = shortening.finish(&Estimator::new()).messages;
            assert!(tokens(&messages) <= 1_000, "{}", tokens(&messages));
            check(&messages).unwrap();
        }
        assert!(sum > 20_000, "{sum}");
        assert!(messages.iter().any(|message| message.text() == "Go."));
    }
}

/// Checks what is sent, where neighboring user messages are one.
fn check(messages: &[Message]) -> Result<(), TestCaseError> {
    let mut out = b"{\"model\":\"any\",\"messages\":[".to_vec();
    let last = Message::user("On.");
    let ends = messages.last().is_some_and(|last| last.role == MessageRole::Assistant);
    for message in messages.iter().chain(ends.then_some(&last)) {
        write_message(message, &MessageFormat::default(), &mut out);
    }
    out.extend_from_slice(b"]}");
    Strict::new().allow_repeated_roles().check_bytes(&out).map_err(|violations| {
        TestCaseError::fail(format!("{violations}\n{}", String::from_utf8_lossy(&out)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The rest is within the target, unless nothing more can go.
    #[test]
    fn protected_messages_survive_shortening(
        messages in conversation(),
        prompts_back in 0..3_usize,
        limit in 0..1_500_usize,
        kept_results in 0..5_usize,
        summarizes in any::<bool>(),
        is_overflow in any::<bool>(),
        share in 0.3..3.0_f64,
        answer in "[a-z]{0,8}( [a-z]{1,8}){0,150}",
    ) {
        let users = messages.iter().enumerate().filter(|(_, m)| m.role == MessageRole::User);
        let users: Vec<usize> = users.map(|(place, _)| place).collect();
        let prompt = users[users.len().saturating_sub(1 + prompts_back)];
        let answered = messages.iter().rposition(|m| m.role == MessageRole::Assistant);
        let keep_from = answered.filter(|answer| *answer > prompt).unwrap_or(prompt);
        let reported = (tokens(&messages[..keep_from]) as f64 * share) as u64;
        let turn = RunningTurn::new(&messages, Some(prompt), keep_from)
            .with_reported(Some((reported, keep_from)))
            .after_overflow(is_overflow);
        let overflow = if summarizes { Overflow::Summarize } else { Overflow::DropOldest };
        let policy = ContextPolicy::new(limit).with_overflow(overflow).with_kept_results(kept_results);
        let Some(mut shortening) = policy.shorten(&turn, &Estimator::new()) else { return Ok(()) };
        let archived = shortening.archived().to_vec();
        let mut requests = 0;
        while let Some(summary) = shortening.summary()
            && let Some(request) = summary.next_request()
        {
            check(&request)?;
            summary.push(&answer);
            requests += 1;
            prop_assert!(requests <= messages.len());
        }
        let done = shortening.finish(&Estimator::new());
        let has_words = requests > 0 && !answer.trim().is_empty();
        prop_assert!(has_words || !done.is_summarized);
        prop_assert!(done.is_summarized || !has_words || limit < 200, "there is no room for words");
        prop_assert!(tokens(&done.messages) < tokens(&messages), "it is shorter");
        check(&done.messages)?;
        let tail = messages.len() - keep_from;
        let start = done.messages.len() - tail;
        prop_assert_eq!(&done.messages[start..], &messages[keep_from..]);
        let mut rest = done.messages.iter();
        for place in users.iter().filter(|place| **place >= prompt) {
            prop_assert!(rest.any(|message| *message == messages[*place]), "what the user said");
        }
        let system = messages[0].role == MessageRole::System;
        prop_assert!(!system || done.messages[0] == messages[0]);
        let summaries = usize::from(done.is_summarized);
        prop_assert_eq!(done.messages.len() + done.dropped, messages.len() + summaries);
        prop_assert_eq!(archived.len(), done.dropped + done.cleared);
        prop_assert_eq!(&archived, &done.archived);
        prop_assert!(archived.iter().all(|message| messages.contains(message)));
        // It is within the target, or nothing more can go.
        let is_step = |place: usize| {
            let message = &done.messages[place];
            message.role != MessageRole::User && message.role != MessageRole::System
        };
        let may_go = (0..start).any(is_step);
        let target = limit / if is_overflow { 4 } else { 2 };
        // Each count is rounded.
        let slack = done.messages.len() + 4;
        prop_assert!(done.after <= target + slack || !may_go || done.is_summarized, "{:?}", done);
    }
}

#[test]
fn results_that_are_not_text_are_cleared_too() {
    let mut messages = run(6);
    for message in &mut messages {
        if let Some(ContentBlock::ToolResult(result)) = message.content.first_mut() {
            result.content = json!({ "lines": vec![result.content.clone(); 3] });
        }
    }
    let turn = RunningTurn::new(&messages, Some(3), 14).after_overflow(true);
    let done = shortened(&ContextPolicy::new(4_000), &turn);
    assert_eq!(done.cleared, 5);
    assert!(matches!(
        &done.messages[5].content[0],
        ContentBlock::ToolResult(result) if matches!(&result.content, Value::String(_))
    ));
    assert!(Estimator::new().count_messages(&done.messages) < 1_000);
}
