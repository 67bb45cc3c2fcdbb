//! Events emitted by running tools.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use oa_executor::{Batch, Callbacks, ExecutorOptions, Placement, RetryPolicy, ToolEvent};
use oa_tools::{LogLevel, State, tool};
use serde_json::json;

use crate::{calls, executor, line, lines, sleep, sleeper};

#[tokio::test(start_paused = true)]
async fn emissions_are_live_and_inside_the_call() {
    let mut seen = Vec::new();
    for placement in [Placement::Inline, Placement::Spawned] {
        let talks = sleeper("talks").build_with_context(|args, cx| async move {
            cx.emit_status("starting");
            cx.emit_progress((1, 2));
            sleep(args).await?;
            cx.emit_log_at(LogLevel::Warn, "slow");
            cx.emit("preview", json!({ "rows": 3 }));
            cx.emit_progress(1.0);
            Ok(json!("done"))
        });
        let executor = executor([talks], ExecutorOptions::new().placement(placement));
        let given = calls([("talks", json!({ "ms": 20 })), ("talks", json!({ "ms": 10 }))]);
        let mut events = executor.execute_batch_streaming(given, Batch::new());
        seen.push(lines(&mut events).await);
    }
    assert_snapshot!(seen[0], @r#"
    c0 starts talks
    c1 starts talks
    c0 is starting
    c0 has done 1
    c1 is starting
    c1 has done 1
    c1 logs slow
    c1 says preview {"rows":3}
    c1 has done 100
    c1 ok: "done"
    c0 logs slow
    c0 says preview {"rows":3}
    c0 has done 100
    c0 ok: "done"
    end of c0 c1
    "#);
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn blocking_tools_emit_while_running() {
    let (tell, hear) = std::sync::mpsc::channel::<()>();
    let hear = Mutex::new(hear);
    let blocks = tool("blocks", "").build_blocking_with_context(move |_, cx| {
        cx.emit_status("waiting");
        hear.lock().unwrap().recv()?;
        Ok(json!(null))
    });
    let executor = executor([blocks], ExecutorOptions::new());
    let mut events = executor.execute_batch_streaming(calls([("blocks", json!({}))]), Batch::new());
    let mut said = Vec::new();
    while let Some(event) = events.next().await {
        if let ToolEvent::Status(status) = event {
            said.push(status.status);
            tell.send(()).unwrap();
        }
    }
    assert_eq!(said, ["waiting"]);
}

/// Threads that emit, tasks that wake each other, and a reader that keeps up: a lost wakeup would hang.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wakeup_is_lost_between_threads() {
    let blocks = tool("blocks", "").build_blocking_with_context(|_, cx| {
        for n in 0..20 {
            cx.emit_progress((n, 20));
        }
        Ok(json!(null))
    });
    let yields = tool("yields", "").build_with_context(|_, cx| async move {
        for n in 0..20 {
            tokio::task::yield_now().await;
            cx.emit_progress((n, 20));
        }
        Ok(json!(null))
    });
    for placement in [Placement::Inline, Placement::Spawned] {
        let options = ExecutorOptions::new().placement(placement).max_parallel(5);
        let executor = executor([blocks.clone(), yields.clone()], options);
        for _ in 0..200 {
            let given = [("blocks", json!({})), ("yields", json!({}))].into_iter().cycle().take(10);
            let mut events = executor.execute_batch_streaming(calls(given), Batch::new());
            let mut progress = 0;
            while let Some(event) = events.next().await {
                progress += usize::from(matches!(event, ToolEvent::Progress(_)));
            }
            assert_eq!(progress, 200);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_emissions_a_tool_emits_nothing() {
    let talks = tool("talks", "").build_with_context(|_, cx| async move {
        assert!(!cx.is_emitting());
        cx.emit_with("never", || unreachable!("nobody listens"));
        cx.emit_status("never");
        Ok(json!(null))
    });
    let executor = executor([talks], ExecutorOptions::new());
    let batch = Batch::new().without_emissions();
    let mut events = executor.execute_batch_streaming(calls([("talks", json!({}))]), batch);
    assert_snapshot!(lines(&mut events).await, @"
    c0 starts talks
    c0 ok: null
    end of c0
    ");
}

#[tokio::test(start_paused = true)]
async fn full_queue_drops_the_oldest_emission() {
    let floods = sleeper("floods").build_with_context(|args, cx| async move {
        for n in 0..1_000 {
            cx.emit_progress((n, 1_000));
        }
        sleep(args).await
    });
    let executor = executor([floods], ExecutorOptions::new().emission_queue(3));
    let mut events = executor.execute_batch_streaming(calls([("floods", json!({}))]), Batch::new());
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        if let ToolEvent::CallComplete(result) = &event {
            assert_eq!(result.dropped_events, 997);
        }
        seen.push(line(&event));
    }
    assert_snapshot!(seen.join("\n"), @"
    c0 starts floods
    c0 has done 997
    c0 has done 998
    c0 has done 999
    c0 ok: null
    end of c0
    ");
}

/// Tools run in their own tasks, so that all events queue up for a sleeping reader.
#[tokio::test(start_paused = true)]
async fn a_retry_is_never_lost_in_a_flood() {
    let floods = tool("floods", "").build_with_context(|_, cx| async move {
        for n in 0..10 {
            cx.emit_progress((n, 10));
        }
        Err("busy".into())
    });
    for (queue, dropped) in [(1, 60), (5, 60), (15, 50)] {
        let options = ExecutorOptions::new()
            .placement(Placement::Spawned)
            .retry(RetryPolicy::new(5))
            .emission_queue(queue);
        let given = calls([("floods", json!({}))]);
        let mut events =
            executor([floods.clone()], options).execute_batch_streaming(given, Batch::new());
        events.next().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let mut retries = Vec::new();
        while let Some(event) = events.next().await {
            match event {
                ToolEvent::Retry(retry) => retries.push(retry.attempt),
                ToolEvent::CallComplete(result) => assert_eq!(result.dropped_events, dropped),
                _ => {}
            }
        }
        assert_eq!(retries, [1, 2, 3, 4, 5]);
    }
}

#[tokio::test(start_paused = true)]
async fn emissions_after_completion_are_ignored() {
    let contexts = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&contexts);
    let leaves = tool("leaves", "").build_with_context(move |_, cx| {
        keeps.lock().unwrap().push(cx.clone());
        async move {
            cx.emit_status("leaving");
            Ok(json!(null))
        }
    });
    let executor = executor([leaves, sleeper("s").build(sleep)], ExecutorOptions::new());
    let given = calls([("leaves", json!({})), ("s", json!({}))]);
    let mut events = executor.execute_batch_streaming(given, Batch::new());
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(line(&event));
        if matches!(event, ToolEvent::CallComplete(_)) {
            contexts.lock().unwrap()[0].emit_status("too late");
        }
    }
    assert!(!seen.join("\n").contains("too late"), "{seen:?}");
}

#[tokio::test]
async fn state_reaches_the_tools() {
    struct User(&'static str);
    let who = tool("who", "").build_with_context(|_, cx| async move {
        Ok(json!([cx.state::<User>().map(|user| user.0), cx.call_id(), cx.tool_name()]))
    });
    let executor = executor([who], ExecutorOptions::new());
    let batch = Batch::new().state(State::new().with(User("ada")));
    let end = executor.execute_batch_streaming(calls([("who", json!({}))]), batch).end().await;
    assert_eq!(end.execution_results[0].result, json!(["ada", "c0", "who"]));
}

#[tokio::test(start_paused = true)]
async fn callbacks_see_starts_and_completions() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let (starts, ends) = (Arc::clone(&told), Arc::clone(&told));
    let callbacks = Callbacks::new()
        .on_start(move |start| starts.lock().unwrap().push(format!("start {}", start.call_id)))
        .on_complete(move |end| {
            ends.lock().unwrap().push(format!("{} {}", end.outcome, end.call_id));
        });
    let executor = executor([sleeper("s").build(sleep)], ExecutorOptions::new());
    let given = calls([("s", json!({ "ms": 20 })), ("s", json!({ "ms": 10 })), ("x", json!({}))]);
    let mut events = executor.execute_batch_streaming(given, Batch::new()).observe(callbacks);
    let mut count = 0;
    while events.next().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 7);
    assert_eq!(
        *told.lock().unwrap(),
        ["start c0", "start c1", "start c2", "unknown_tool c2", "ok c1", "ok c0"]
    );
    assert!(events.into_inner().next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_panics_is_not_called_again() {
    let told = Arc::new(AtomicUsize::new(0));
    let ended = Arc::new(AtomicUsize::new(0));
    let (starts, ends) = (Arc::clone(&told), Arc::clone(&ended));
    let callbacks = Callbacks::new()
        .on_start(move |start| {
            starts.fetch_add(1, Ordering::Relaxed);
            panic!("{} has started", start.call_id)
        })
        .on_complete(move |_| {
            ends.fetch_add(1, Ordering::Relaxed);
        });
    let executor = executor([sleeper("s").build(sleep)], ExecutorOptions::new());
    let given = calls([("s", json!({})), ("s", json!({}))]);
    let mut events = executor.execute_batch_streaming(given, Batch::new()).observe(callbacks);
    let mut count = 0;
    while events.next().await.is_some() {
        count += 1;
    }
    let (told, ended) = (told.load(Ordering::Relaxed), ended.load(Ordering::Relaxed));
    assert_eq!((count, told, ended), (5, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn metrics_are_an_event() {
    let options = ExecutorOptions::new().with_metrics().timeout(Duration::from_millis(150));
    let executor = executor([sleeper("s").build(sleep)], options);
    let given = calls([
        ("s", json!({})),
        ("s", json!({ "ms": 50 })),
        ("s", json!({ "ms": 500 })),
        ("s", json!({ "ms": "long" })),
        ("x", json!({})),
    ]);
    let mut events = executor.execute_batch_streaming(given, Batch::new());
    let seen = lines(&mut events).await;
    let metrics = seen.lines().rev().nth(1).unwrap();
    assert_snapshot!(metrics, @"BatchMetrics { calls: 5, ok: 2, failed: 0, timed_out: 1, cancelled: 0, refused: 2, not_run: 0, cached: 0, truncated: 0, retries: 0, dropped_events: 0, peak_parallel: 3, duration: 150ms, busy: 300ms }");
}
