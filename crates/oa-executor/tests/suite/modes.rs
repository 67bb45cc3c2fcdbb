//! Parallel, sequential and exclusive calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use insta::assert_snapshot;
use oa_executor::{Batch, ExecutionMode, ExecutorOptions, Placement, TimeoutPolicy, ToolExecutor};
use oa_tools::{Registry, tool};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{Alive, calls, end, executor, lines, sleep, sleeper};

const PLACEMENTS: [Placement; 2] = [Placement::Inline, Placement::Spawned];

async fn elapsed(executor: &ToolExecutor, names: &[&str]) -> Duration {
    let calls = calls(names.iter().enumerate().map(|(n, name)| (*name, json!({ "n": n }))));
    let started = Instant::now();
    let end = end(executor, calls, Batch::new()).await;
    let results: Vec<Value> = end.execution_results.iter().map(|r| r.result.clone()).collect();
    assert_eq!(json!(results), json!((0..names.len()).collect::<Vec<_>>()), "in call order");
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn eight_tools_take_as_long_as_one() {
    for placement in PLACEMENTS {
        let options = ExecutorOptions::new().placement(placement);
        let executor = executor([sleeper("s").build(sleep)], options);
        let took = elapsed(&executor, &["s"; 8]).await;
        assert!((100..110).contains(&took.as_millis()), "{placement:?}: {took:?}");
        assert_eq!(elapsed(&executor, &["s"; 9]).await.as_millis() / 100, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn the_cap_holds() {
    for (most, waves) in [(1, 8), (3, 3), (8, 1)] {
        let options = ExecutorOptions::new().max_parallel(most);
        let executor = executor([sleeper("s").build(sleep)], options);
        assert_eq!(elapsed(&executor, &["s"; 8]).await.as_millis() / 100, waves, "{most}");
    }
    let unlimited = ExecutorOptions::new().unlimited_parallel();
    let executor = executor([sleeper("s").build(sleep)], unlimited);
    assert_eq!(elapsed(&executor, &["s"; 200]).await.as_millis() / 100, 1);
}

#[tokio::test(start_paused = true)]
async fn one_by_one_is_in_order() {
    let options = ExecutorOptions::new().mode(ExecutionMode::Sequential);
    let executor = executor([sleeper("s").build(sleep)], options);
    assert_eq!(elapsed(&executor, &["s"; 3]).await.as_millis() / 100, 3);
    let calls = calls([("s", json!({ "ms": 30 })), ("s", json!({ "ms": 10 }))]);
    let mut events = executor.execute_batch_streaming(calls, Batch::new());
    assert_snapshot!(lines(&mut events).await, @"
    c0 starts s
    c0 ok: null
    c1 starts s
    c1 ok: null
    end of c0 c1
    ");
}

#[tokio::test(start_paused = true)]
async fn completions_are_live_results_in_order() {
    let executor = executor([sleeper("s").build(sleep)], ExecutorOptions::new());
    let given = [("s", json!({ "ms": 30, "n": 0 })), ("s", json!({ "ms": 10, "n": 1 }))];
    let mut events = executor.execute_batch_streaming(calls(given), Batch::new());
    assert_snapshot!(lines(&mut events).await, @"
    c0 starts s
    c1 starts s
    c1 ok: 1
    c0 ok: 0
    end of c0 c1
    ");
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_tool_is_a_barrier() {
    for placement in PLACEMENTS {
        let options = ExecutorOptions::new().placement(placement);
        let running = Arc::new(AtomicUsize::new(0));
        let alone = {
            let running = Arc::clone(&running);
            sleeper("alone").exclusive().build(move |args| {
                let running = Arc::clone(&running);
                async move {
                    let _alive = Alive::new(&running);
                    assert_eq!(running.load(Ordering::SeqCst), 1);
                    let result = sleep(args).await;
                    assert_eq!(running.load(Ordering::SeqCst), 1);
                    result
                }
            })
        };
        let shared = {
            let running = Arc::clone(&running);
            sleeper("s").build(move |args| {
                let running = Arc::clone(&running);
                async move {
                    let _alive = Alive::new(&running);
                    sleep(args).await
                }
            })
        };
        let executor = executor([alone, shared], options);
        let took = elapsed(&executor, &["s", "s", "alone", "s", "alone", "alone", "s"]).await;
        assert_eq!(took.as_millis() / 100, 6);
    }
}

#[tokio::test(start_paused = true)]
async fn only_woken_calls_are_polled() {
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let tool = sleeper("s").build(move |args| {
        let polls = Arc::clone(&counted);
        let mut sleeping = Box::pin(sleep(args));
        std::future::poll_fn(move |cx| {
            polls.fetch_add(1, Ordering::SeqCst);
            sleeping.as_mut().poll(cx)
        })
    });
    let executor = executor([tool], ExecutorOptions::new().unlimited_parallel());
    let given = (0..100).map(|n| ("s", json!({ "ms": n * 10, "n": n })));
    end(&executor, calls(given), Batch::new()).await;
    assert!(polls.load(Ordering::SeqCst) <= 200, "{polls:?}");
}

/// Without timers, no runtime is needed.
#[test]
fn batches_run_outside_a_runtime() {
    let executor = ToolExecutor::new(
        Registry::from_tools([tool("t", "").build(|a| async { Ok(a) })]).unwrap(),
    );
    let mut events = executor.execute_batch_streaming(calls([("t", json!({}))]), Batch::new());
    let mut all = Box::pin(lines(&mut events));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(all.as_mut().poll(&mut cx).is_ready());
}

#[tokio::test]
async fn blocking_handlers_leave_the_reader_free() {
    let (tell, hear) = std::sync::mpsc::channel::<()>();
    let hear = std::sync::Mutex::new(hear);
    let blocks = tool("blocks", "").build_blocking_with_context(move |_, cx| {
        cx.emit_status("waiting");
        hear.lock().unwrap().recv()?;
        Ok(json!("done"))
    });
    let tells = tool("tells", "").build(move |_| {
        let told = tell.send(());
        async move { Ok(json!(told.is_ok())) }
    });
    let executor = executor([blocks, tells], ExecutorOptions::new());
    let given = calls([("blocks", json!({})), ("tells", json!({}))]);
    let end = end(&executor, given, Batch::new()).await;
    assert_eq!(end.execution_results[0].result, json!("done"));
    assert_eq!(end.execution_results[1].result, json!(true));
}

#[tokio::test]
async fn an_empty_batch_ends_at_once() {
    let executor = executor([], ExecutorOptions::new().with_metrics());
    let mut events = executor.execute_batch_streaming(Vec::new(), Batch::new());
    let seen = lines(&mut events).await;
    assert!(seen.starts_with("BatchMetrics") && seen.ends_with("end of "), "{seen}");
    assert!(events.next().await.is_none());
}

#[test]
fn zero_options_are_rejected() {
    use oa_executor::{ErrorKind, RunCaps, ToolCache};
    let zero = Duration::ZERO;
    for options in [
        ExecutorOptions::new().max_parallel(0),
        ExecutorOptions::new().emission_queue(0),
        ExecutorOptions::new().timeout(zero),
        ExecutorOptions::new().timeouts(TimeoutPolicy::none().tool("a", zero)),
        ExecutorOptions::new().cache(ToolCache::new(0)),
        ExecutorOptions::new().caps(RunCaps::none().calls(0)),
        ExecutorOptions::new().caps(RunCaps::none().time(zero)),
    ] {
        let error = ToolExecutor::with_options(Registry::new(), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    }
}

#[test]
fn streams_and_their_futures_are_send() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let executor = executor([], ExecutorOptions::new());
    let mut events = is_send(executor.execute_batch_streaming(Vec::new(), Batch::new()));
    drop(is_send(events.next()));
    drop(is_send(events.end()));
}

#[test]
fn timeouts_are_seconds_or_durations() {
    const HALF: Duration = Duration::from_millis(500);
    let slow = tool("slow", "").timeout(9).build(|_| async { Ok(json!(null)) });
    let policy = TimeoutPolicy::none().otherwise(5_u32).tool("never", None).tool("half", HALF);
    let of = |name| policy.of(name, &slow);
    assert_eq!(of("slow"), Some(Duration::from_secs(9)), "its own");
    assert_eq!((of("never"), of("half")), (None, Some(HALF)));
    let plain = tool("plain", "").timeout(None).build(|_| async { Ok(json!(null)) });
    assert_eq!(policy.of("plain", &plain), Some(Duration::from_secs(5)));
    let zero = tool("zero", "").timeout(0).build(|_| async { Ok(json!(null)) });
    let error = Registry::new().add(zero).unwrap_err().to_string();
    assert!(error.contains("timeout must be above 0"), "{error}");
}
