//! Prompts that are retried.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oa_batch::{BatchOptions, run_batch};
use oa_chat::RetryConfig;
use oa_client::{AgentOptions, ErrorKind};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{MemoryServer, Reply};
use oa_tools::tool;
use serde_json::json;
use tokio::time::Instant;

use crate::model::{Asked, agent, all, echo, prompts, server};

#[tokio::test(start_paused = true)]
async fn temporary_failures_are_retried() {
    for failure in [
        Reply::error(503, "loading"),
        Reply::error(429, "slow down"),
        Reply::hang_up(),
        Reply::text("Broken off in the middle").close_after(150),
        Reply::new().say("Broken").event(json!({"error": {"message": "out of memory"}})),
    ] {
        let asked = Asked::default();
        let server = server(&asked, move |_, times| (times == 1).then(|| failure.clone()));
        let options = BatchOptions::new(agent(server)).in_input_order(true);
        let mut batch = run_batch(prompts(30), options).unwrap();
        let mut number = 0;
        while let Some((index, reply)) = batch.next().await {
            assert_eq!(reply.unwrap().text, echo(&format!("prompt {index}")));
            number += 1;
        }
        assert_eq!((number, asked.total()), (30, 60));
        assert_eq!(batch.progress().retries, 30);
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_failures_are_yielded_at_once() {
    let asked = Asked::default();
    let server = server(&asked, |prompt, _| {
        (prompt == "prompt 7").then(|| Reply::error(400, "no such thing"))
    });
    let outcomes = all(run_batch(prompts(20), BatchOptions::new(agent(server))).unwrap()).await;
    let failed: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_err()).collect();
    assert_eq!((failed.len(), failed[0].0), (1, 7));
    assert!(failed[0].1.as_ref().unwrap_err().to_string().contains("no such thing"));
    assert_eq!(asked.total(), 20);
}

#[tokio::test(start_paused = true)]
async fn one_prompt_cannot_exhaust_the_budget() {
    let asked = Asked::default();
    let server =
        server(&asked, |prompt, _| (prompt == "prompt 1").then(|| Reply::error(500, "crash")));
    let options = BatchOptions::new(agent(server)).concurrency(2).max_retries(5);
    let outcomes = all(run_batch(prompts(50), options).unwrap()).await;
    assert_eq!(outcomes.iter().filter(|(_, outcome)| outcome.is_err()).count(), 1);
    assert_eq!(asked.times("prompt 1"), 6);
}

#[tokio::test(start_paused = true)]
async fn all_prompts_share_the_budget() {
    let asked = Asked::default();
    let server = server(&asked, |_, _| Some(Reply::error(503, "down")));
    let options = BatchOptions::new(agent(server)).retry_budget(10);
    let outcomes = all(run_batch(prompts(100), options).unwrap()).await;
    assert_eq!(outcomes.len(), 100);
    for (_, outcome) in outcomes {
        assert_eq!(outcome.unwrap_err().status(), Some(503));
    }
    assert_eq!(asked.total(), 110);
}

#[tokio::test(start_paused = true)]
async fn batch_outlives_minutes_of_downtime() {
    let began = Instant::now();
    let asked = Asked::default();
    let server = server(&asked, move |_, _| {
        let is_down = (5..300).contains(&began.elapsed().as_secs());
        let reply = if is_down { Reply::hang_up() } else { Reply::text("So.") };
        Some(reply.delay_head(Duration::from_millis(if is_down { 0 } else { 100 })))
    });
    let options = BatchOptions::new(agent(server)).concurrency(8).retry_budget(30);
    let outcomes = all(run_batch(prompts(2_000), options).unwrap()).await;
    assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok()));
    assert!(asked.total() <= 2_030, "{}", asked.total());
}

#[tokio::test(start_paused = true)]
async fn a_server_may_ask_for_a_delay() {
    let began = Instant::now();
    let server = server(&Asked::default(), |_, times| {
        (times == 1).then(|| Reply::error(429, "later").header("retry-after", "50"))
    });
    let outcomes = all(run_batch(["a"], BatchOptions::new(agent(server))).unwrap()).await;
    assert!(outcomes[0].1.is_ok());
    assert_eq!(began.elapsed().as_secs(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_retry_continues_the_conversation() {
    let (runs, prompts) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (ran, hooked) = (Arc::clone(&runs), Arc::clone(&prompts));
    let model = MemoryServer::new([
        Reply::new().say("First I pay. ").call("pay", json!({})),
        Reply::text("This breaks off before its end").close_after(150),
        Reply::error(503, "down"),
        Reply::text("Done."),
    ]);
    let pay = tool("pay", "Pays").build(move |_| {
        ran.fetch_add(1, Ordering::Relaxed);
        async { Ok(json!("paid")) }
    });
    let hooks = Hooks::new().add_user_prompt_submit(move |_| {
        hooked.fetch_add(1, Ordering::Relaxed);
        async { None }
    });
    let options = AgentOptions::builder().model("any").transport(model.clone()).tool(pay);
    let options = options.auto_execute_tools(true).hooks(hooks).retry(RetryConfig::none());
    let options = BatchOptions::new(options.build().unwrap());
    let outcomes = all(run_batch(["Pay."], options).unwrap()).await;
    assert_eq!(outcomes[0].1.as_ref().unwrap().text, "First I pay. Done.");
    assert_eq!(runs.load(Ordering::Relaxed), 1, "paid once");
    assert_eq!(prompts.load(Ordering::Relaxed), 1, "the prompt was shown once");
    model.verify();
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_to_final_text_only() {
    let model = MemoryServer::new([
        Reply::new().say("First I pay. ").call("pay", json!({})),
        Reply::error(503, "down"),
        Reply::text("Done."),
    ]);
    let pay = tool("pay", "Pays").build(|_| async { Ok(json!("paid")) });
    let options = AgentOptions::builder().model("any").transport(model.clone()).tool(pay);
    let options = options.auto_execute_tools(true).final_text_only(true).retry(RetryConfig::none());
    let options = BatchOptions::new(options.build().unwrap());
    let outcomes = all(run_batch(["Pay."], options).unwrap()).await;
    assert_eq!(outcomes[0].1.as_ref().unwrap().text, "Done.");
    model.verify();
}

#[tokio::test(start_paused = true)]
async fn retry_omits_text_that_a_hook_refused() {
    let model = MemoryServer::new([
        Reply::new().say("First I look. ").call("look", json!({})),
        Reply::text("Bad one."),
        Reply::error(503, "down"),
        Reply::text("Good one."),
    ]);
    let hooks = Hooks::new().add_answer(|event| async move {
        event.message.text().starts_with("Bad").then(|| HookDecision::retry("no sources"))
    });
    let look = tool("look", "Looks").build(|_| async { Ok(json!("seen")) });
    let options = AgentOptions::builder().model("any").transport(model.clone()).tool(look);
    let options = options.auto_execute_tools(true).hooks(hooks).retry(RetryConfig::none());
    let options = BatchOptions::new(options.build().unwrap());
    let outcomes = all(run_batch(["Look."], options).unwrap()).await;
    assert_eq!(outcomes[0].1.as_ref().unwrap().text, "First I look. Good one.");
    model.verify();
}

#[tokio::test(start_paused = true)]
async fn total_timeouts_are_not_retried() {
    let asked = Asked::default();
    let model = server(&asked, |_, _| Some(Reply::text("a b c").delay(Duration::from_secs(60))));
    let options = AgentOptions::builder().model("any").transport(model);
    let options = options.total_timeout(Duration::from_secs(90)).retry(RetryConfig::none());
    let options = BatchOptions::new(options.build().unwrap());
    let outcomes = all(run_batch(["a"], options).unwrap()).await;
    assert_eq!(outcomes[0].1.as_ref().unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(asked.total(), 1);
}
