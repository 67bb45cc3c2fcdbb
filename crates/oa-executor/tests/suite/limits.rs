//! Limits on time, size and count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use insta::assert_snapshot;
use oa_executor::{
    Batch, ExecutorOptions, Outcome, Placement, Run, RunCaps, TimeoutPolicy, TruncationPolicy,
};
use oa_tools::tool;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{Alive, calls, end, executor, lines, one, sleep, sleeper};

/// Deeper values cannot be read from stored conversations, and writing them could overflow the stack.
#[tokio::test]
async fn deep_results_become_text() {
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    let deep = tool("deep", "").param("levels", "integer").build(move |args| async move {
        Ok(nested(args["levels"].as_u64().expect("it is required")))
    });
    let executor = executor([deep], ExecutorOptions::new());
    for (levels, expected) in [
        (100, nested(100)),
        (101, json!(nested(101).to_string())),
        (50_000, json!("[a value that is nested more than 500 levels deep]")),
    ] {
        let result = one(&executor, "deep", json!({ "levels": levels })).await;
        assert_eq!((result.outcome, &result.result), (Outcome::Ok, &expected), "{levels}");
    }
}

/// The end of a log says why a command failed; the note and its hint stand before it.
#[tokio::test]
async fn the_end_of_a_log_can_be_kept() {
    let log = format!("make\n{}error: no rule", "Compiling é\n".repeat(1_000));
    let returned = json!({ "log": log, "exit_code": 2 });
    let make = tool("make", "").build(move |_| std::future::ready(Ok(returned.clone())));
    let policy = TruncationPolicy::max_chars(60).keep_end(40);
    let options = ExecutorOptions::new().truncation(policy);
    let tools = executor([make], options);
    let result = one(&tools, "make", json!({})).await;
    let shown = result.result.as_str().unwrap();
    let (head, rest) = shown.split_once("\n[").unwrap();
    let (note, tail) = rest.split_once("]\n").unwrap();
    assert!(note.ends_with(" characters left out"), "{note}");
    assert_eq!((head.chars().count(), tail.chars().count()), (30, 30), "at most half: {shown}");
    assert!(result.full().to_string().starts_with(head), "{shown}");
    assert!(result.full().to_string().ends_with(tail) && shown.contains("no rule"), "{shown}");

    let error = format!("start {}the end", "of a log ".repeat(100));
    let fails = tool("fails", "").build(move |_| std::future::ready(Err(error.clone().into())));
    let tools = executor([fails], ExecutorOptions::new().truncation(policy));
    let result = one(&tools, "fails", json!({})).await;
    let error = result.result["error"].as_str().unwrap();
    assert!(error.starts_with("start ") && error.ends_with(" the end"), "{error}");
}

proptest! {
    #[test]
    fn truncation_keeps_both_ends(text in "\\PC{0,60}", limit in 0_usize..50, end in 0_usize..50) {
        let policy = TruncationPolicy::max_chars(limit).keep_end(end);
        let end = end.min(limit / 2);
        // As JSON, it is written in pieces.
        let list: Vec<char> = text.chars().collect();
        for value in [json!(text), json!(list)] {
            let whole = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let chars = whole.chars().count();
            let Some(cut) = policy.cut(&value) else {
                prop_assert!(chars <= limit);
                continue;
            };
            prop_assert!(chars > limit);
            let head: String = whole.chars().take(limit - end).collect();
            let tail: String = whole.chars().skip(chars - end).collect();
            let gap = if end == 0 { "" } else { "\n" };
            let note = format!("\n[{} of {chars} characters left out]{gap}", chars - limit);
            prop_assert_eq!(cut, head + &note + &tail);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn timeout_signals_and_drops_the_tool() {
    for placement in [Placement::Inline, Placement::Spawned] {
        let alive = Arc::new(AtomicUsize::new(0));
        let told = Arc::new(AtomicUsize::new(0));
        let (lives, tells) = (Arc::clone(&alive), Arc::clone(&told));
        let hangs = tool("hangs", "").build_with_context(move |_, cx| {
            let alive = Alive::new(&lives);
            let told = Arc::clone(&tells);
            async move {
                struct Tell(oa_tools::ToolContext, Arc<AtomicUsize>);
                impl Drop for Tell {
                    fn drop(&mut self) {
                        self.1.fetch_add(usize::from(self.0.is_cancelled()), Ordering::SeqCst);
                    }
                }
                let _kept = (alive, Tell(cx, told));
                std::future::pending().await
            }
        });
        let options = ExecutorOptions::new().timeout(Duration::from_secs(5)).placement(placement);
        let executor = executor([hangs], options);
        let result = one(&executor, "hangs", json!({})).await;
        assert_eq!((result.outcome, result.attempts), (Outcome::TimedOut, 1));
        assert_eq!(result.duration.as_secs(), 5);
        assert_eq!(result.result, json!({ "error": "timed out after 5s", "tool": "hangs" }));
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        assert_eq!(told.load(Ordering::SeqCst), 1, "the context says so before the drop");
    }
}

#[tokio::test(start_paused = true)]
async fn timeout_by_name_wins_over_the_tools_own() {
    let own = |name| sleeper(name).timeout(Duration::from_millis(50)).build(sleep);
    let policy = TimeoutPolicy::none()
        .otherwise(Duration::from_millis(20))
        .tool("named", Duration::from_millis(500));
    let executor = executor(
        [own("own"), own("named"), sleeper("rest").build(sleep)],
        ExecutorOptions::new().timeouts(policy),
    );
    let outcome = |name, ms| {
        let executor = executor.clone();
        async move { one(&executor, name, json!({ "ms": ms })).await.outcome }
    };
    assert_eq!(outcome("own", 40).await, Outcome::Ok);
    assert_eq!(outcome("own", 60).await, Outcome::TimedOut);
    assert_eq!(outcome("named", 400).await, Outcome::Ok);
    assert_eq!(outcome("rest", 10).await, Outcome::Ok);
    assert_eq!(outcome("rest", 40).await, Outcome::TimedOut);
}

#[tokio::test]
async fn timeout_signals_blocking_handlers() {
    let blocks = tool("blocks", "").build_blocking_with_context(|_, cx| {
        while !cx.is_cancelled() {
            std::thread::yield_now();
        }
        Ok(json!(null))
    });
    let options = ExecutorOptions::new().timeout(Duration::from_millis(20));
    let result = one(&executor([blocks], options), "blocks", json!({})).await;
    // The runtime waits for its threads, so this test ends only if the handler saw the signal.
    assert_eq!(result.outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn a_megabyte_is_truncated_and_kept() {
    let big = "é".repeat(1 << 20);
    let whole = json!(big);
    let returned = whole.clone();
    let tool = tool("big", "").build(move |_| std::future::ready(Ok(returned.clone())));
    let result = one(&executor([tool.clone()], ExecutorOptions::new()), "big", json!({})).await;
    assert!(result.truncated);
    assert_eq!(result.full(), &whole);
    let shown = result.result.as_str().unwrap();
    let (kept, note) = shown.split_at("é".len() * 10_000);
    assert!(big.starts_with(kept));
    assert_eq!(note, "\n[1038576 of 1048576 characters left out]");

    let none = ExecutorOptions::new().truncation(TruncationPolicy::none());
    let result = one(&executor([tool], none), "big", json!({})).await;
    assert_eq!((result.truncated, &result.result), (false, &whole));
    assert!(result.full_result.is_none());
}

#[tokio::test]
async fn a_long_error_is_truncated_inside_its_body() {
    let fails = tool("fails", "").build(|_| async { Err("no ".repeat(10_000).into()) });
    let options = ExecutorOptions::new().truncation(TruncationPolicy::max_chars(6));
    let result = one(&executor([fails], options), "fails", json!({})).await;
    assert_snapshot!(result.result, @r#"{"error":"no no \n[29994 of 30000 characters left out]","tool":"fails"}"#);
    assert!(result.truncated && result.full()["error"].as_str().unwrap().len() == 30_000);
}

#[test]
fn other_values_are_truncated_as_json() {
    let cut = |value: &Value| TruncationPolicy::max_chars(5).cut(value);
    assert_eq!(cut(&json!([1, 2])), None);
    assert_eq!(cut(&json!([1, 2, 3])).unwrap(), "[1,2,\n[2 of 7 characters left out]");
    assert_eq!(cut(&json!({ "é": "ü" })).unwrap(), "{\"é\":\n[4 of 9 characters left out]");
    assert_eq!(cut(&json!(123_456)).unwrap(), "12345\n[1 of 6 characters left out]");
    assert_eq!(cut(&json!("ééééé")), None);
    assert_eq!(
        TruncationPolicy::max_chars(0).cut(&json!("a")).unwrap(),
        "\n[1 of 1 characters left out]"
    );
    assert_eq!(TruncationPolicy::max_chars(0).cut(&json!("")), None);
    for value in [json!("a"), json!({ "a": 1 })] {
        assert_eq!(TruncationPolicy::max_chars(usize::MAX).cut(&value), None);
    }
}

proptest! {
    #[test]
    fn truncation_keeps_the_beginning(text in "\\PC{0,40}", limit in 0_usize..50) {
        let chars = text.chars().count();
        match TruncationPolicy::max_chars(limit).cut(&json!(text)) {
            None => prop_assert!(chars <= limit),
            Some(cut) => {
                prop_assert!(chars > limit);
                let kept: String = text.chars().take(limit).collect();
                let note = format!("\n[{} of {chars} characters left out]", chars - limit);
                prop_assert_eq!(cut, kept + &note);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn call_limit_counts_all_batches_of_a_run() {
    let options = ExecutorOptions::new().caps(RunCaps::none().calls(3));
    let executor = executor([sleeper("s").build(sleep)], options);
    let two = || calls([("s", json!({})), ("s", json!({}))]);
    let run = Run::new();
    let outcomes = async |run: &Run| {
        let end = end(&executor, two(), Batch::new().run(run.clone())).await;
        end.execution_results.iter().map(|result| result.outcome).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(&run).await, [Outcome::Ok, Outcome::Ok]);
    assert_eq!(outcomes(&run).await, [Outcome::Ok, Outcome::NotRun]);
    assert_eq!(outcomes(&run).await, [Outcome::NotRun, Outcome::NotRun]);
    assert_eq!(run.calls(), 3);
    assert_eq!(outcomes(&Run::new()).await, [Outcome::Ok, Outcome::Ok]);
    let end = end(&executor, two(), Batch::new().run(run)).await;
    assert_snapshot!(end.execution_results[0].result, @r#"{"error":"not run","tool":"s","reason":"the run's limit of 3 tool calls is reached"}"#);
}

/// The model reads which of the two limits it was.
#[tokio::test(start_paused = true)]
async fn the_earlier_time_limit_is_named() {
    for (timeout, run, error) in
        [(50, 60, "timed out after 50ms"), (60, 50, "the run's time limit is reached")]
    {
        let options = ExecutorOptions::new()
            .timeouts(TimeoutPolicy::none().otherwise(Duration::from_millis(timeout)))
            .caps(RunCaps::none().time(Duration::from_millis(run)));
        let executor = executor([sleeper("s").build(sleep)], options);
        let end = end(&executor, calls([("s", json!({}))]), Batch::new()).await;
        let result = &end.execution_results[0];
        assert_eq!((result.outcome, &result.result["error"]), (Outcome::TimedOut, &json!(error)));
    }
}

#[tokio::test(start_paused = true)]
async fn time_limit_ends_a_run() {
    let options = ExecutorOptions::new()
        .caps(RunCaps::none().time(Duration::from_millis(250)))
        .max_parallel(1);
    let executor = executor([sleeper("s").build(sleep)], options);
    let started = Instant::now();
    let run = Run::new();
    let given = || calls([("s", json!({})), ("s", json!({})), ("s", json!({})), ("s", json!({}))]);
    let mut events = executor.execute_batch_streaming(given(), Batch::new().run(run.clone()));
    assert_snapshot!(lines(&mut events).await, @r#"
    c0 starts s
    c0 ok: null
    c1 starts s
    c1 ok: null
    c2 starts s
    c2 timed_out: {"error":"the run's time limit is reached","tool":"s"}
    c3 starts s
    c3 not_run: {"error":"not run","tool":"s","reason":"the run's time limit of 250ms is reached"}
    end of c0 c1 c2 c3
    "#);
    assert_eq!(started.elapsed().as_millis() / 10, 25);
    let end = end(&executor, given(), Batch::new().run(run)).await;
    assert!(end.execution_results.iter().all(|result| result.outcome == Outcome::NotRun));
}
