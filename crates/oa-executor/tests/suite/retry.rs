//! Retries of failed tools.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use oa_executor::{Batch, ExecutorOptions, Outcome, Placement, RetryPolicy, RunCaps, ToolEvent};
use oa_tools::{FnTool, IdempotencyKey, ToolContext, ToolError, tool};
use oa_types::Backoff;
use serde_json::json;
use tokio::time::Instant;

use crate::{calls, executor, lines, one};

/// Fails with this error until it has run `fails` times.
fn flaky(fails: usize, error: ToolError) -> (FnTool, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let tool = tool("flaky", "").build(move |_| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        let error = error.clone();
        async move { if run < fails { Err(error) } else { Ok(json!(run + 1)) } }
    });
    (tool, runs)
}

#[tokio::test(start_paused = true)]
async fn a_call_is_tried_again_until_it_works() {
    let (tool, _) = flaky(2, ToolError::new("busy"));
    let executor = executor([tool], ExecutorOptions::new().retry(RetryPolicy::new(2)));
    let mut events = executor.execute_batch_streaming(calls([("flaky", json!({}))]), Batch::new());
    let started = Instant::now();
    assert_snapshot!(lines(&mut events).await, @"
    c0 starts flaky
    c0 retries after 1: busy
    c0 retries after 2: busy
    c0 ok: 3
    end of c0
    ");
    let took = started.elapsed();
    // Timers have a resolution of a millisecond.
    assert!(took <= Duration::from_millis(302), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn each_attempt_of_a_call_sees_its_key() {
    for placement in [Placement::Inline, Placement::Spawned] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = {
            let seen = Arc::clone(&seen);
            move |cx: &ToolContext| {
                let key = cx.idempotency_key().map(str::to_owned);
                seen.lock().unwrap().push((cx.call_id().to_owned(), key));
                Err(ToolError::new("busy"))
            }
        };
        let pooled = note.clone();
        let tools = [
            tool("waits", "").build_with_context(move |_, cx| ready(note(&cx))),
            tool("blocks", "").build_blocking_with_context(move |_, cx| pooled(&cx)),
        ];
        let options = ExecutorOptions::new().placement(placement).retry(RetryPolicy::new(2));
        let executor = executor(tools, options);
        let given = calls([("waits", json!({})), ("blocks", json!({})), ("waits", json!({}))]);
        let computed = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&computed);
        let lazy = IdempotencyKey::lazy(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            "k1".to_owned()
        });
        let batch = Batch::new()
            .idempotency_key("c0", "k0")
            .prepared("c0", Ok(()))
            .prepared("c1", Ok(()))
            .idempotency_key("c1", lazy);
        let end = executor.execute_batch_streaming(given, batch).end().await;
        assert!(end.execution_results.iter().all(|result| result.attempts == 3));
        assert_eq!(computed.load(Ordering::SeqCst), 1);
        for (id, key) in [("c0", Some("k0")), ("c1", Some("k1")), ("c2", None)] {
            let seen = seen.lock().unwrap();
            let of_call: Vec<_> = seen.iter().filter(|(of, _)| of == id).collect();
            assert_eq!(of_call.len(), 3);
            assert!(of_call.iter().all(|(_, seen)| seen.as_deref() == key), "{of_call:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_retryable_errors_are_retried() {
    let plain = || ToolError::new("busy");
    let never = || ToolError::new("busy").retryable(false);
    let marked = || ToolError::new("busy").retryable(true);
    let policy = || RetryPolicy::new(2);
    let picky = || policy().when(|error| error.message().contains("busy"));
    for (policy, error, runs) in [
        (policy(), plain(), 3),
        (policy(), never(), 1),
        (policy(), marked(), 3),
        (policy().only_marked(), plain(), 1),
        (policy().only_marked(), marked(), 3),
        (picky(), never(), 3),
        (picky(), ToolError::new("gone"), 1),
        (RetryPolicy::new(0), plain(), 1),
    ] {
        let (tool, counted) = flaky(usize::MAX, error);
        let executor = executor([tool], ExecutorOptions::new().retry(policy));
        let result = one(&executor, "flaky", json!({})).await;
        assert_eq!((result.outcome, result.attempts), (Outcome::Failed, runs));
        assert_eq!(counted.load(Ordering::SeqCst), runs as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn timeouts_are_retried_on_request_only() {
    let hangs = tool("hangs", "").build(|_| std::future::pending());
    let panics = tool("panics", "").build(|_| async { panic!("boom") });
    let options = |retry| ExecutorOptions::new().timeout(Duration::from_secs(1)).retry(retry);
    let plain = executor([hangs.clone(), panics], options(RetryPolicy::new(1)));
    assert_eq!(one(&plain, "hangs", json!({})).await.attempts, 1);
    assert_eq!(one(&plain, "panics", json!({})).await.attempts, 1);
    let asked = executor([hangs], options(RetryPolicy::new(1).with_timeouts()));
    let result = one(&asked, "hangs", json!({})).await;
    assert_eq!((result.outcome, result.attempts), (Outcome::TimedOut, 2));
    assert!(result.duration > Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn panicking_condition_prevents_a_retry() {
    for placement in [Placement::Inline, Placement::Spawned] {
        let (tool, counted) = flaky(usize::MAX, ToolError::new("busy"));
        let policy = RetryPolicy::new(2).when(|error| panic!("what is {error}?"));
        let options = ExecutorOptions::new().placement(placement).retry(policy);
        let executor = executor([tool], options);
        let mut events =
            executor.execute_batch_streaming(calls([("flaky", json!({}))]), Batch::new());
        let seen = lines(&mut events).await;
        assert_eq!(
            seen,
            "c0 starts flaky
c0 failed: {\"error\":\"busy\",\"tool\":\"flaky\"}
end of c0"
        );
        assert_eq!(counted.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_beyond_the_clock_is_beyond_the_run() {
    let (tool, _) = flaky(usize::MAX, ToolError::new("busy"));
    let policy = RetryPolicy::new(9).initial_delay(Duration::MAX).max_delay(Duration::MAX);
    let caps = RunCaps::none().time(Duration::from_secs(9));
    let executor = executor([tool], ExecutorOptions::new().retry(policy).caps(caps));
    let result = one(&executor, "flaky", json!({})).await;
    assert_eq!((result.outcome, result.attempts), (Outcome::Failed, 1));
}

#[tokio::test(start_paused = true)]
async fn no_delay_exceeds_the_run() {
    let (tool, _) = flaky(usize::MAX, ToolError::new("busy"));
    let policy =
        RetryPolicy::new(9).initial_delay(Duration::from_secs(8)).max_delay(Duration::from_secs(8));
    let caps = RunCaps::none().time(Duration::from_secs(9));
    let executor = executor([tool], ExecutorOptions::new().retry(policy).caps(caps));
    let result = one(&executor, "flaky", json!({})).await;
    assert_eq!(result.outcome, Outcome::Failed);
    assert!(result.duration < Duration::from_secs(9) && result.attempts >= 2, "{result:?}");
}

#[test]
fn delays_are_those_of_the_backoff() {
    let default = RetryPolicy::new(2);
    assert_eq!(default.backoff.bound(0), Duration::from_millis(100));
    assert_eq!(default.backoff.bound(u32::MAX), Duration::from_secs(5));
    let (initial, max) = (Duration::from_secs(3), Duration::from_secs(50));
    let policy = RetryPolicy::new(8).max_delay(max).initial_delay(initial);
    assert_eq!(policy.backoff, Backoff::new(initial, max));
    for (retry, seed) in (0..20).flat_map(|retry| (0..20).map(move |seed| (retry, seed))) {
        assert_eq!(policy.delay(retry, seed), policy.backoff.delay(retry, seed));
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_retry_is_number_0() {
    let (tool, _) = flaky(usize::MAX, ToolError::new("busy"));
    let policy = RetryPolicy::new(8).initial_delay(Duration::from_millis(50));
    let backoff = policy.backoff;
    let executor = executor([tool], ExecutorOptions::new().retry(policy));
    let given = calls((0..64).map(|_| ("flaky", json!({}))));
    let mut events = executor.execute_batch_streaming(given, Batch::new());
    let mut longest = [Duration::ZERO; 8];
    while let Some(event) = events.next().await {
        if let ToolEvent::Retry(event) = event {
            let longest = &mut longest[event.attempt as usize - 1];
            *longest = event.delay.max(*longest);
        }
    }
    // The longest of 64 delays is close to the bound of its retry.
    for (retry, longest) in (0..).zip(longest) {
        let bound = backoff.bound(retry);
        assert!(bound * 2 / 3 < longest && longest <= bound, "{longest:?} of {bound:?}");
    }
}
