//! Call rates, and limits on parallel calls of one tool.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use oa_executor::{
    Batch, CallRate, ExecutorOptions, Outcome, Placement, Run, RunCaps, ToolCache, ToolEvent,
};
use oa_tools::FnTool;
use serde_json::json;
use tokio::time::Instant;

use crate::{calls, counting, end, executor, lines, sleep, sleeper};

/// A tool that records its start times, in whole seconds.
fn noting(name: &str) -> (FnTool, Arc<Mutex<Vec<u64>>>) {
    let (began, seconds) = (Instant::now(), Arc::<Mutex<Vec<u64>>>::default());
    let noted = Arc::clone(&seconds);
    let tool = sleeper(name).build(move |args| {
        noted.lock().expect("nothing panics here").push(began.elapsed().as_secs());
        sleep(args)
    });
    (tool, seconds)
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_rate_wait_in_call_order() {
    for placement in [Placement::Inline, Placement::Spawned] {
        let (tool, seconds) = noting("s");
        let options = ExecutorOptions::new().rate(CallRate::per_minute(2)).placement(placement);
        let executor = executor([tool], options);
        let given = || calls((0..5).map(|n| ("s", json!({ "n": n }))));
        let mut events = executor.execute_batch_streaming(given(), Batch::new());
        let mut started = Vec::new();
        let began = Instant::now();
        while let Some(event) = events.next().await {
            match event {
                ToolEvent::CallStart(start) => {
                    started.push((start.call_id, began.elapsed().as_secs()));
                }
                ToolEvent::CallComplete(result) => {
                    assert_eq!((result.outcome, result.duration.as_secs()), (Outcome::Ok, 0));
                }
                _ => {}
            }
        }
        // Start events come at the start time.
        let ids = ["c0", "c1", "c2", "c3", "c4"].map(str::to_owned);
        assert_eq!(started, ids.into_iter().zip([0, 0, 60, 60, 120]).collect::<Vec<_>>());
        assert_eq!(*seconds.lock().unwrap(), [0, 0, 60, 60, 120]);
        // The next batch shares the limit.
        end(&executor, calls([("s", json!({})), ("s", json!({}))]), Batch::new()).await;
        assert_eq!(seconds.lock().unwrap()[5..], [120, 180]);
    }
}

#[tokio::test(start_paused = true)]
async fn only_calls_that_run_are_counted() {
    let (cached, runs) = counting("cached");
    let (tool, seconds) = noting("s");
    let options = ExecutorOptions::new()
        .rate(CallRate::per_minute(1))
        .cache(ToolCache::new(4))
        .max_parallel(1);
    let executor = executor([cached, tool], options);
    let one = || calls([("cached", json!({}))]);
    end(&executor, one(), Batch::new()).await;
    let began = Instant::now();
    let given = calls([
        ("cached", json!({})),
        ("unknown", json!({})),
        ("s", json!({ "ms": "soon" })),
        ("s", json!({})),
    ]);
    let mut events = executor.execute_batch_streaming(given, Batch::new());
    let mut completed = Vec::new();
    while let Some(event) = events.next().await {
        if let ToolEvent::CallComplete(_) = event {
            completed.push(began.elapsed().as_secs());
        }
    }
    assert_eq!(completed, [0, 0, 0, 60]);
    assert_eq!(*seconds.lock().unwrap(), [60]);
    assert_eq!(runs.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn canceled_wait_frees_its_slot() {
    let (tool, seconds) = noting("s");
    let rate = CallRate::per_minute(1);
    let executor = executor([tool], ExecutorOptions::new().rate(rate));
    let two = || calls([("s", json!({})), ("s", json!({}))]);
    let mut events = executor.execute_batch_streaming(two(), Batch::new());
    let signal = events.cancel_signal();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        signal.cancel();
    });
    assert_snapshot!(lines(&mut events).await, @r#"
    c0 starts s
    c0 ok: null
    c1 starts s
    c1 cancelled: {"error":"cancelled before it ran","tool":"s"}
    end of c0 c1
    "#);
    // So is the slot of a dropped batch.
    let mut events = executor.execute_batch_streaming(two(), Batch::new());
    let waits = tokio::time::timeout(Duration::from_secs(5), events.next()).await;
    assert!(waits.is_err(), "{waits:?}");
    drop(events);
    end(&executor, calls([("s", json!({}))]), Batch::new()).await;
    assert_eq!(*seconds.lock().unwrap(), [0, 60]);
}

#[tokio::test(start_paused = true)]
async fn agents_that_share_a_rate_have_one_limit() {
    let rate = CallRate::per_minute(2);
    let (tool, seconds) = noting("s");
    let batches = (0..4).map(|_| {
        let executor = executor([tool.clone()], ExecutorOptions::new().rate(rate.clone()));
        tokio::spawn(async move { end(&executor, calls([("s", json!({}))]), Batch::new()).await })
    });
    for batch in batches.collect::<Vec<_>>() {
        assert_eq!(batch.await.unwrap().execution_results[0].outcome, Outcome::Ok);
    }
    assert_eq!(*seconds.lock().unwrap(), [0, 0, 60, 60]);
}

#[tokio::test(start_paused = true)]
async fn call_delayed_past_the_run_is_not_run() {
    let (tool, _) = noting("s");
    let caps = RunCaps::none().time(Duration::from_secs(30));
    let options = ExecutorOptions::new().rate(CallRate::per_minute(1)).caps(caps);
    let began = Instant::now();
    let two = calls([("s", json!({})), ("s", json!({}))]);
    let end = end(&executor([tool], options), two, Batch::new()).await;
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_snapshot!(end.execution_results[1].result, @r#"{"error":"not run","tool":"s","reason":"the rate limit of 1 call per minute would delay the call past the time limit of the run"}"#);
}

#[tokio::test(start_paused = true)]
async fn calls_that_the_rate_stops_do_not_count() {
    let (tool, _) = noting("s");
    let caps = RunCaps::none().calls(3).time(Duration::from_secs(90));
    let options = ExecutorOptions::new().rate(CallRate::per_minute(1)).caps(caps);
    let executor = executor([tool], options);
    let given = || calls([("s", json!({})), ("s", json!({}))]);
    let run = Run::new();
    // The second call waits for the rate, until its batch is dropped or canceled.
    let mut events = executor.execute_batch_streaming(given(), Batch::new().run(run.clone()));
    while run.calls() < 2 {
        assert!(events.next().await.is_some());
    }
    drop(events);
    assert_eq!(run.calls(), 1);
    let events = executor.execute_batch_streaming(given(), Batch::new().run(run.clone()));
    events.cancel();
    assert_eq!(events.end().await.execution_results[0].outcome, Outcome::Cancelled);
    assert_eq!(run.calls(), 1);
    // The first call waits a minute, and the second one would wait too long.
    let end = end(&executor, given(), Batch::new().run(run.clone())).await;
    let outcomes = [0, 1].map(|call: usize| end.execution_results[call].outcome);
    assert_eq!(outcomes, [Outcome::Ok, Outcome::NotRun]);
    assert_eq!(run.calls(), 2);
}

#[test]
fn zero_rate_is_rejected() {
    let error = ExecutorOptions::new().rate(CallRate::per_minute(0)).check().unwrap_err();
    assert_snapshot!(error, @"the call rate must be at least 1 per minute");
}

#[tokio::test(start_paused = true)]
async fn tool_cap_does_not_delay_other_tools() {
    for placement in [Placement::Inline, Placement::Spawned] {
        let capped = sleeper("capped").max_parallel(2).build(sleep);
        let free = sleeper("free").build(sleep);
        let options = ExecutorOptions::new().placement(placement);
        let given = ["capped", "capped", "capped", "free", "capped", "free"];
        let executor = executor([capped, free], options);
        let given = calls(given.map(|name| (name, json!({}))));
        let mut events = executor.execute_batch_streaming(given, Batch::new());
        let began = Instant::now();
        let mut starts = Vec::new();
        while let Some(event) = events.next().await {
            if let ToolEvent::CallStart(start) = event {
                starts.push((start.call_id, began.elapsed().as_millis() / 100));
            }
        }
        let ids = ["c0", "c1", "c3", "c5", "c2", "c4"].map(str::to_owned);
        assert_eq!(starts, ids.into_iter().zip([0, 0, 0, 0, 1, 1]).collect::<Vec<_>>());
    }
}
