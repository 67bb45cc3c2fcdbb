//! Canceling or dropping a batch midway: nothing starts afterwards, nothing is left running.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use insta::assert_snapshot;
use oa_executor::{
    Batch, ExecutorOptions, Outcome, Placement, RetryPolicy, RunGuard, RunSignal, ToolEvent,
};
use oa_tools::{Cancel, FnTool, tool};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::{Alive, calls, executor, lines, sleep, sleeper};

/// A tool that counts its live and started calls, and never ends.
fn hanging() -> (FnTool, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (alive, begun) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (lives, begins) = (Arc::clone(&alive), Arc::clone(&begun));
    let tool = tool("hangs", "").build(move |_| {
        let alive = Alive::new(&lives);
        begins.fetch_add(1, Ordering::SeqCst);
        async move {
            let _alive = alive;
            std::future::pending().await
        }
    });
    (tool, alive, begun)
}

#[tokio::test(start_paused = true)]
async fn cancel_drops_running_and_waiting_calls() {
    let mut seen = Vec::new();
    for placement in [Placement::Inline, Placement::Spawned] {
        let (hangs, alive, begun) = hanging();
        let options = ExecutorOptions::new().max_parallel(3).placement(placement);
        let executor = executor([hangs, sleeper("s").build(sleep)], options);
        let mut given = vec![("s", json!({ "ms": 10, "n": 7 }))];
        given.extend(vec![("hangs", json!({})); 4]);
        let cancel = Cancel::new();
        let batch = Batch::new().cancel(cancel.clone());
        let mut events = executor.execute_batch_streaming(calls(given), batch);
        while !matches!(events.next().await, Some(ToolEvent::CallComplete(_))) {}
        // The next call starts in place of the one that ended.
        assert_eq!(line(events.next().await), "c3 starts hangs");
        let pending = tokio::time::timeout(Duration::from_secs(1), events.next()).await;
        assert!(pending.is_err());
        assert_eq!(alive.load(Ordering::SeqCst), 3);

        let started = Instant::now();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            cancel.cancel();
        });
        seen.push(lines(&mut events).await);
        assert_eq!(started.elapsed().as_millis(), 5);
        settle().await;
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        assert_eq!(begun.load(Ordering::SeqCst), 3);
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    }
    assert_snapshot!(seen[0], @r#"
    c1 cancelled: {"error":"cancelled while it ran; it may have taken effect","tool":"hangs"}
    c2 cancelled: {"error":"cancelled while it ran; it may have taken effect","tool":"hangs"}
    c3 cancelled: {"error":"cancelled while it ran; it may have taken effect","tool":"hangs"}
    c4 starts hangs
    c4 cancelled: {"error":"cancelled before it ran","tool":"hangs"}
    end of c0 c1 c2 c3 c4
    "#);
    assert_eq!(seen[0], seen[1]);
}

fn line(event: Option<ToolEvent>) -> String {
    event.as_ref().map(crate::line).unwrap_or_default()
}

/// Lets the runtime clean up aborted tasks.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_count_only_started_calls() {
    let (hangs, ..) = hanging();
    let executor = executor([hangs], ExecutorOptions::new().max_parallel(1));
    let given = calls([("hangs", json!({})), ("hangs", json!({}))]);
    let mut events = executor.execute_batch_streaming(given, Batch::new());
    let wait = Duration::from_secs(3);
    while tokio::time::timeout(wait, events.next()).await.is_ok() {}
    events.cancel();
    let end = events.end().await;
    let of = |place: usize| {
        let result = &end.execution_results[place];
        (result.outcome, result.attempts, result.duration)
    };
    assert_eq!(of(0), (Outcome::Cancelled, 1, wait));
    assert_eq!(of(1), (Outcome::Cancelled, 0, Duration::ZERO));
    let errors = ["cancelled while it ran; it may have taken effect", "cancelled before it ran"];
    for (place, error) in errors.into_iter().enumerate() {
        let result = &end.execution_results[place].result;
        assert_eq!(*result, json!({ "error": error, "tool": "hangs" }));
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_stream_drops_running_calls() {
    for read in 0..12 {
        let (hangs, alive, begun) = hanging();
        let executor = executor([hangs], ExecutorOptions::new());
        let given = calls(vec![("hangs", json!({})); 8]);
        let mut events = executor.execute_batch_streaming(given, Batch::new());
        let signal = events.cancel_signal();
        for _ in 0..read {
            let _ = tokio::time::timeout(Duration::from_secs(1), events.next()).await;
        }
        assert_eq!(alive.load(Ordering::SeqCst), if read > 8 { 8 } else { 0 });
        drop(events);
        assert!(signal.is_cancelled());
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        assert_eq!(begun.load(Ordering::SeqCst), if read > 8 { 8 } else { 0 });
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_stream_aborts_tasks() {
    let (hangs, alive, _) = hanging();
    let executor = executor([hangs], ExecutorOptions::new().placement(Placement::Spawned));
    let given = calls(vec![("hangs", json!({})); 8]);
    let mut events = executor.execute_batch_streaming(given, Batch::new());
    while tokio::time::timeout(Duration::from_secs(1), events.next()).await.is_ok() {}
    assert_eq!(alive.load(Ordering::SeqCst), 8);
    drop(events);
    settle().await;
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn batch_canceled_before_start_runs_nothing() {
    let (hangs, _, begun) = hanging();
    let executor = executor([hangs], ExecutorOptions::new());
    let cancel = Cancel::new();
    cancel.cancel();
    let given = calls(vec![("hangs", json!({})); 2]);
    let mut events = executor.execute_batch_streaming(given, Batch::new().cancel(cancel));
    assert_snapshot!(lines(&mut events).await, @r#"
    c0 starts hangs
    c0 cancelled: {"error":"cancelled before it ran","tool":"hangs"}
    c1 starts hangs
    c1 cancelled: {"error":"cancelled before it ran","tool":"hangs"}
    end of c0 c1
    "#);
    assert_eq!(begun.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn tool_can_cancel_calls_not_yet_begun() {
    let cancel = Cancel::new();
    let stops = {
        let cancel = cancel.clone();
        tool("stops", "").build(move |_| {
            cancel.cancel();
            async { Ok(json!("stopped")) }
        })
    };
    let (hangs, _, begun) = hanging();
    let executor = executor([stops, hangs], ExecutorOptions::new());
    let given = calls([("stops", json!({})), ("hangs", json!({}))]);
    let end = executor.execute_batch_streaming(given, Batch::new().cancel(cancel)).end().await;
    assert_eq!(end.execution_results[0].outcome, Outcome::Ok);
    assert_eq!(end.execution_results[1].outcome, Outcome::Cancelled);
    assert_eq!(begun.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_a_retry_delay() {
    let fails = tool("fails", "").build(|_| async { Err("no".into()) });
    let policy = RetryPolicy::new(4)
        .initial_delay(Duration::from_secs(60))
        .max_delay(Duration::from_secs(60));
    let executor = executor([fails], ExecutorOptions::new().retry(policy));
    let mut events = executor.execute_batch_streaming(calls([("fails", json!({}))]), Batch::new());
    while !matches!(events.next().await, Some(ToolEvent::Retry(_))) {}
    let started = Instant::now();
    events.cancel();
    assert_eq!(events.end().await.execution_results[0].outcome, Outcome::Cancelled);
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_pending_next_may_be_dropped() {
    let executor = executor([sleeper("s").build(sleep)], ExecutorOptions::new());
    let given = calls((0..4).map(|n| ("s", json!({ "ms": n * 30, "n": n }))));
    let mut events = executor.execute_batch_streaming(given, Batch::new());
    let mut seen = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(7), events.next()).await {
            Ok(Some(event)) => seen.push(crate::line(&event)),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    assert_snapshot!(seen.join("\n"), @"
    c0 starts s
    c1 starts s
    c2 starts s
    c3 starts s
    c0 ok: 0
    c1 ok: 1
    c2 ok: 2
    c3 ok: 3
    end of c0 c1 c2 c3
    ");
}

#[tokio::test(start_paused = true)]
async fn signal_stays_unset_after_a_normal_end() {
    let kept = Arc::new(std::sync::Mutex::new(None));
    let keeps = Arc::clone(&kept);
    let tool = tool("t", "").build_with_context(move |_, cx| {
        *keeps.lock().unwrap() = Some(cx);
        async { Ok(json!(null)) }
    });
    let executor = executor([tool], ExecutorOptions::new());
    executor.execute_batch_streaming(calls([("t", json!({}))]), Batch::new()).end().await;
    let cx = kept.lock().unwrap().take().unwrap();
    assert!(!cx.is_cancelled(), "what a tool left running may go on");
    cx.emit_status("too late, and harmless");
}

#[tokio::test]
async fn guarded_run_ends_with_its_guard() {
    let signal = Arc::new(RunSignal::default());
    let run = RunGuard::begin(&signal);
    assert_eq!(run.unless_interrupted(async { 1 }).await, Some(1));
    signal.interrupt();
    assert_eq!(run.unless_interrupted(async { 2 }).await, None, "even if the part is ready");
    drop(run);
    assert!(!signal.is_interrupted());
    let next = RunGuard::begin(&signal);
    assert_eq!(next.unless_interrupted(async { 3 }).await, Some(3), "not kept for the next run");
}
