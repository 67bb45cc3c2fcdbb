//! Conversations that are shortened at the caller's request.

use std::time::Duration;

use oa_client::{Client, Compaction, ErrorKind};
use oa_context::{ContextPolicy, Overflow, counter_fn};
use oa_hooks::{HookDecision, Hooks, PermissionMode};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_types::{Message, MessageRole};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use suite::talk::{
    adder, auto, cases, client, interrupt_after, manual, read_on, strict, talk, told,
};

fn long(number: usize) -> Reply {
    Reply::text(format!("Answer {number}. {}", "And so on and on it goes. ".repeat(20)))
}

/// A server with long answers that can summarize.
fn server() -> MemoryServer {
    let answer = |request: &Request| {
        let last = request.messages().last().expect("something was said");
        match last["content"].as_str() {
            Some(text) if text.starts_with("Summarize") => {
                Reply::text("They spoke of bees.").usage(500, 7)
            }
            _ => long(request.number()),
        }
    };
    MemoryServer::new(Script::new().otherwise(Reply::by(answer)).strict())
}

async fn grown(client: &mut Client, turns: usize) -> usize {
    for turn in 0..turns {
        talk(client, &format!("Question {turn}?")).await;
    }
    client.history().len()
}

/// Without a call of `compact`, nothing is dropped either.
#[tokio::test]
async fn short_conversations_are_kept() {
    let server = server();
    let mut client = client(manual(&server));
    assert_eq!(grown(&mut client, 10).await, 20);
    let large = ContextPolicy::new(100_000).with_overflow(Overflow::Summarize);
    assert_eq!(client.compact(&large).await.unwrap(), Compaction::Kept);
    assert_eq!((client.history().len(), server.requests().len()), (20, 10));
}

#[tokio::test]
async fn useless_policies_shorten_nothing() {
    let server = server();
    let mut client = client(manual(&server));
    grown(&mut client, 2).await;
    for policy in [ContextPolicy::new(0), ContextPolicy::new(10).with_target(60.0)] {
        let error = client.compact(&policy).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }
    assert_eq!(client.history().len(), 4);
}

/// The system prompt counts against the limit.
#[tokio::test]
async fn the_oldest_exchanges_are_dropped() {
    for (prompt, left) in [("Be brief.", 6), (&*"Be brief. ".repeat(100), 4)] {
        let server = server();
        let mut client = client(manual(&server).system_prompt(prompt));
        grown(&mut client, 10).await;
        let done = client.compact(&ContextPolicy::new(1_000)).await.unwrap();
        assert_eq!(done, Compaction::Dropped { messages: 20 - client.history().len() });
        assert!(client.history().len() <= left, "{}", client.history().len());
        assert_eq!(client.history()[0].role, MessageRole::User);
        assert_eq!(server.requests().len(), 10, "no model is needed");
        talk(&mut client, "And now?").await;
    }
}

/// Thinking that a server leaves in the text is no summary, and would leave no room for one.
#[tokio::test]
async fn summaries_contain_no_thinking() {
    let thinking = "They spoke of much, I think. ".repeat(100);
    for (begin, end) in [("<think>", "</think>\n\n"), ("", "</think>"), ("[THINK]", "[/THINK]")] {
        let summary = format!("{begin}{thinking}{end}They spoke of bees.");
        let answer = move |request: &Request| {
            let last = request.messages().last().expect("something was said");
            match last["content"].as_str() {
                Some(text) if text.starts_with("Summarize") => Reply::text(summary.clone()),
                _ => long(request.number()),
            }
        };
        let server = MemoryServer::new(Script::new().otherwise(Reply::by(answer)).strict());
        let mut client = client(manual(&server));
        grown(&mut client, 10).await;
        let policy = ContextPolicy::new(1_500).with_overflow(Overflow::Summarize);
        client.compact(&policy).await.unwrap();
        let text = client.history()[0].text();
        assert!(text.contains("They spoke of bees.") && !text.contains("I think"), "{text}");
    }
}

#[tokio::test]
async fn summaries_replace_dropped_messages() {
    let server = server();
    let hooks = Hooks::new().add_user_prompt_submit(|event| async move {
        event.prompt.starts_with("Summarize").then(|| HookDecision::block("no"))
    });
    let mut client =
        client(manual(&server).hooks(hooks).tool(adder()).system_prompt("Be brief.").stop("STOP"));
    grown(&mut client, 10).await;
    let before = client.turn_metadata();
    let policy = ContextPolicy::new(1_500).with_overflow(Overflow::Summarize);
    let done = client.compact(&policy).await.unwrap();
    let Compaction::Summarized { messages, usage } = done else { panic!("{done:?}") };
    assert_eq!(messages, 20 - client.history().len());
    let asked = server.requests().split_off(10);
    assert_eq!(usage.completion_tokens, Some(7 * asked.len() as u64));
    let spent = client.turn_metadata().total_usage.completion_tokens.unwrap()
        - before.total_usage.completion_tokens.unwrap();
    assert_eq!(spent, 7 * asked.len() as u64);
    assert_eq!(client.turn_metadata().turns, before.turns, "it is no turn");
    for request in asked {
        let [only] = request.messages() else { panic!("{request:?}") };
        assert_eq!(only["role"], "user", "without the system prompt");
        assert!(request.json()["tools"].is_null() && request.json()["stop"].is_null());
    }
    let first = client.history()[0].text();
    assert!(first.contains("They spoke of bees.") && first.contains("Question"), "{first}");
    talk(&mut client, "And now?").await;
    assert_eq!(server.requests().pop().unwrap().messages()[0]["content"], "Be brief.");
}

#[tokio::test]
async fn failed_summaries_leave_history_unchanged() {
    let policy = ContextPolicy::new(1_000).with_overflow(Overflow::Summarize);
    for (reply, kind) in [
        (Reply::error(500, "out of memory"), ErrorKind::Api),
        (Reply::text(" \n"), ErrorKind::Stream),
        (Reply::new().refuse("I cannot."), ErrorKind::Stream),
        (Reply::text("They spoke of").reset_after(200), ErrorKind::Stream),
        (Reply::text("They spoke of").finish("length"), ErrorKind::Stream),
        (Reply::text("They spoke of").finish("content_filter"), ErrorKind::Stream),
        (Reply::text("They spoke of").without_finish().without_done(), ErrorKind::Stream),
    ] {
        let replies = [long(1), long(2), long(3), long(4), long(5), long(6), reply, long(7)];
        let mut client = client(manual(&strict(replies)));
        grown(&mut client, 6).await;
        let before = client.history().to_vec();
        let error = client.compact(&policy).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(client.history(), before);
        talk(&mut client, "And now?").await;
    }
}

#[tokio::test(start_paused = true)]
async fn summaries_cut_by_run_time_are_discarded() {
    let policy = ContextPolicy::new(1_000).with_overflow(Overflow::Summarize);
    let cut = Reply::text("They spoke of bees.").stall_after(300);
    let replies = [long(1), long(2), long(3), long(4), long(5), long(6), cut, long(7)];
    let mut client = client(manual(&strict(replies)).max_run_time(5));
    grown(&mut client, 6).await;
    let before = client.history().to_vec();
    let error = client.compact(&policy).await.unwrap_err();
    assert!(error.to_string().contains("max_run_time"), "{error}");
    assert_eq!(client.history(), before);
    talk(&mut client, "And now?").await;
}

#[tokio::test(start_paused = true)]
async fn interrupts_and_drops_keep_history() {
    let policy = ContextPolicy::new(1_000).with_overflow(Overflow::Summarize);
    let stalled = || Reply::text("They spoke of bees.").stall_after(300);
    let replies =
        [long(1), long(2), long(3), long(4), long(5), long(6), stalled(), stalled(), long(7)];
    let mut client = client(manual(&strict(replies)));
    grown(&mut client, 6).await;
    let before = client.history().to_vec();

    let handle = client.interrupt_handle();
    let (done, ()) = tokio::join!(client.compact(&policy), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        handle.interrupt();
    });
    assert_eq!(done.unwrap(), Compaction::Interrupted);
    assert_eq!(client.history(), before);

    let second = Duration::from_secs(1);
    assert!(tokio::time::timeout(second, client.compact(&policy)).await.is_err());
    assert_eq!(client.history(), before);
    talk(&mut client, "And now?").await;
    assert_eq!(client.history().len(), before.len() + 2);
}

#[tokio::test]
async fn open_turns_and_calls_forbid_compaction() {
    let policy = ContextPolicy::new(10);
    let server = strict([
        Reply::new().call_with_id("call_1", "add", json!({"a": 1, "b": 2})),
        Reply::text("3."),
    ]);
    let mut client = client(manual(&server).tool(adder()));
    client.send("Add.").await.unwrap();
    let error = client.compact(&policy).await.unwrap_err();
    assert_eq!(error.to_string(), "a turn is in progress: read it to its end first");
    read_on(&mut client).await;
    let error = client.compact(&policy).await.unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (ErrorKind::InvalidInput, "calls have no result yet")
    );
    client.add_tool_result("call_1", json!(3)).unwrap();
    client.continue_turn().await.unwrap();
    read_on(&mut client).await;
    // The prompt stays, and the last answer.
    assert_eq!(client.compact(&policy).await.unwrap(), Compaction::Dropped { messages: 2 });
    assert_eq!(client.compact(&policy).await.unwrap(), Compaction::Stuck);
    assert_eq!(client.history().len(), 2);
}

/// Its result would be lost, because history has it only once the turn continues.
#[tokio::test]
async fn denied_calls_forbid_compaction() {
    let call = Reply::new().call_with_id("call_1", "add", json!({"a": 1, "b": 2}));
    let server = strict([long(1), call, Reply::text("Well.")]);
    let mut client = client(auto(&server).tool(adder()).permission_mode(PermissionMode::Ask));
    grown(&mut client, 2).await;
    client.deny("call_1", "not today").unwrap();
    let error = client.compact(&ContextPolicy::new(10)).await.unwrap_err();
    assert_eq!(error.to_string(), "calls have no result yet");
    client.continue_turn().await.unwrap();
    read_on(&mut client).await;
    assert!(told(client.history())[4].contains("not today"));
    let done = client.compact(&ContextPolicy::new(10)).await.unwrap();
    assert_eq!(done, Compaction::Dropped { messages: 4 });
}

#[tokio::test]
async fn a_custom_counter_is_used() {
    let mut client = client(manual(&server()));
    grown(&mut client, 3).await;
    let policy = ContextPolicy::new(1_000);
    assert_eq!(client.compact(&policy).await.unwrap(), Compaction::Kept);
    let letters = counter_fn(str::len);
    let done = client.compact_with(&policy, &letters).await.unwrap();
    assert!(matches!(done, Compaction::Dropped { .. }), "{done:?}");
}

proptest! {
    #![proptest_config(cases(48))]

    /// Any conversation, with calls, shortened either way.
    #[test]
    fn compacted_history_stays_valid(
        rounds in vec((0..4_usize, 0..200_usize), 1..12),
        limit in 50..2_000_usize,
        summarizes in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut replies = Vec::new();
        for (calls, words) in &rounds {
            for call in 0..*calls {
                replies.push(Reply::text("Well.").call("add", json!({"a": call, "b": words})));
            }
            replies.push(Reply::text(format!("Done. {}", "word ".repeat(*words))));
        }
        let answer = move |request: &Request| {
            let spoken = request.messages().iter().any(|message| {
                message["content"].as_str().is_some_and(|text| text.starts_with("Summarize"))
            });
            if spoken { Reply::text("They added.") } else { Reply::text("On.") }
        };
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let server = MemoryServer::new(script.otherwise(Reply::by(answer)).strict());
        let mut client = client(auto(&server).tool(adder()).max_tool_iterations(10));
        runtime.block_on(async {
            for (number, _) in rounds.iter().enumerate() {
                talk(&mut client, &format!("Question {number}?")).await;
            }
            let before: Vec<Message> = client.history().to_vec();
            let overflow = if summarizes { Overflow::Summarize } else { Overflow::DropOldest };
            let policy = ContextPolicy::new(limit).with_overflow(overflow);
            let done = client.compact(&policy).await.unwrap();
            match done {
                Compaction::Dropped { messages } | Compaction::Summarized { messages, .. } => {
                    prop_assert_eq!(client.history().len(), before.len() - messages);
                }
                _ => prop_assert_eq!(client.history(), &before),
            }
            talk(&mut client, "And now?").await;
            server.verify();
            Ok(())
        })?;
    }
}

/// A server whose summaries end some time before their streams.
fn slow_to_close() -> MemoryServer {
    let answer = |request: &Request| {
        let last = request.messages().last().expect("something was said");
        match last["content"].as_str() {
            Some(text) if text.starts_with("Summarize") => {
                let choice = json!({"index": 0, "delta": {"content": "They spoke."}, "finish_reason": "stop"});
                let all = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]}));
                Reply::sse(format!("{all}: and more\n\n")).stall_after(all.len())
            }
            _ => long(request.number()),
        }
    };
    MemoryServer::new(Script::new().otherwise(Reply::by(answer)).strict())
}

#[tokio::test(start_paused = true)]
async fn interrupts_count_only_during_compaction() {
    let server = slow_to_close();
    let mut client = client(manual(&server));
    grown(&mut client, 30).await;
    let before = (client.history().to_vec(), server.requests().len());
    let policy = ContextPolicy::new(1_500).with_overflow(Overflow::Summarize);
    // By then the first request was answered, but its stream is not closed.
    interrupt_after(&client, Duration::from_millis(50));
    assert_eq!(client.compact(&policy).await.unwrap(), Compaction::Interrupted);
    assert_eq!((client.history().to_vec(), server.requests().len() - 1), before);
    client.interrupt();
    assert!(!client.interrupt_handle().is_interrupted(), "nothing is in progress");

    let dropped = tokio::time::timeout(Duration::from_millis(50), client.compact(&policy)).await;
    assert!(dropped.is_err());
    client.interrupt();
    assert!(!client.interrupt_handle().is_interrupted(), "nothing is in progress");
    assert!(matches!(client.compact(&policy).await.unwrap(), Compaction::Summarized { .. }));
}
