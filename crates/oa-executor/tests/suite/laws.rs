//! Laws that hold for every batch.

use std::collections::BTreeMap;
use std::time::Duration;

use oa_executor::{
    Batch, BatchMetrics, ExecutionMode, ExecutorOptions, Outcome, Placement, RetryPolicy, RunCaps,
    ToolCache, ToolEvent, ToolExecutor,
};
use oa_tools::{FnTool, tool};
use oa_types::{ContentBlock, ToolUseBlock};
use proptest::prelude::*;
use serde_json::json;

use crate::{calls, executor, sleep, sleeper};

fn tools() -> Vec<FnTool> {
    vec![
        sleeper("sleeps").build(sleep),
        sleeper("alone").exclusive().build(sleep),
        sleeper("cached").cacheable().build(sleep),
        sleeper("talks").build_with_context(|args, cx| async move {
            cx.emit_status("before");
            sleep(args).await?;
            cx.emit_progress((1, 1));
            Ok(json!("said"))
        }),
        sleeper("fails").build(|args| async move {
            sleep(args).await?;
            Err("no".into())
        }),
        sleeper("panics").build(|args| async move {
            sleep(args).await?;
            std::panic::panic_any(1_u8)
        }),
        tool("hangs", "").build(|_| std::future::pending()),
    ]
}

const NAMES: [&str; 9] =
    ["sleeps", "alone", "cached", "talks", "fails", "panics", "hangs", "unknown", "invalid"];

#[derive(Clone, Debug)]
struct Plan {
    calls: Vec<ToolUseBlock>,
    options: ExecutorOptions,
    emits: bool,
    /// The time of cancellation in milliseconds, if any.
    cancelled: Option<u64>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let call = (prop::sample::select(NAMES.to_vec()), 0_u64..40);
    let given = prop::collection::vec(call, 0..12).prop_map(|given| {
        calls(given.into_iter().map(|(name, ms)| match name {
            "invalid" => ("sleeps", json!({ "ms": "soon" })),
            name => (name, json!({ "ms": ms, "n": ms })),
        }))
    });
    let options = (
        prop::sample::select(vec![ExecutionMode::Parallel, ExecutionMode::Sequential]),
        prop::sample::select(vec![Placement::Inline, Placement::Spawned]),
        1_usize..6,
        any::<[bool; 4]>(),
    );
    let options = options.prop_map(|(mode, placement, most, [retries, caches, skips, capped])| {
        let mut options = ExecutorOptions::new()
            .mode(mode)
            .placement(placement)
            .max_parallel(most)
            .timeout(Duration::from_millis(60))
            .with_metrics();
        if retries {
            options = options.retry(RetryPolicy::new(1).initial_delay(Duration::from_millis(5)));
        }
        if caches {
            options = options.cache(ToolCache::new(4));
        }
        if skips {
            let odd = |n: Option<u64>| n.is_some_and(|n| n % 3 == 1);
            options = options
                .skip_if(move |call, _| odd(call.input["n"].as_u64()).then(|| "odd".to_owned()));
        }
        if capped {
            options = options.caps(RunCaps::none().calls(5).time(Duration::from_millis(150)));
        }
        options
    });
    (given, options, any::<bool>(), prop::option::of(0_u64..80))
        .prop_map(|(calls, options, emits, cancelled)| Plan { calls, options, emits, cancelled })
}

/// Runs a plan on paused time.
fn run(plan: &Plan) -> (Vec<ToolEvent>, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let executor: ToolExecutor = executor(tools(), plan.options.clone());
        let batch = if plan.emits { Batch::new() } else { Batch::new().without_emissions() };
        let mut stream = executor.execute_batch_streaming(plan.calls.clone(), batch);
        let signal = stream.cancel_signal();
        let cancelled = plan.cancelled.map(|ms| {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                signal.cancel();
            })
        });
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        assert!(stream.next().await.is_none(), "the end is the end");
        if let Some(task) = cancelled {
            task.await.expect("a sleep does not fail");
        }
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        (events, tokio::runtime::Handle::current().metrics().num_alive_tasks())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The results are in call order.
    #[test]
    fn every_call_starts_and_ends_once(plan in plan()) {
        let (events, alive) = run(&plan);
        prop_assert_eq!(alive, 0);

        // One end, last; metrics right before it.
        let Some(ToolEvent::End(end)) = events.last() else { panic!("{events:?}") };
        let is_end = |event: &&ToolEvent| matches!(event, ToolEvent::End(_));
        prop_assert_eq!(events.iter().filter(is_end).count(), 1);
        let ToolEvent::Metrics(metrics) = &events[events.len() - 2] else { panic!("{events:?}") };

        // Each call has a start, emissions and a completion, and nothing outside.
        let mut phases: BTreeMap<&str, u8> = BTreeMap::new();
        for event in &events[..events.len() - 2] {
            let phase = phases.entry(event.call_id().expect("about a call")).or_default();
            let (before, after) = match event {
                ToolEvent::CallStart(_) => (0, 1),
                ToolEvent::CallComplete(_) => (1, 2),
                ToolEvent::Retry(_) => (1, 1),
                _ => {
                    prop_assert!(plan.emits, "{:?}", event);
                    (1, 1)
                }
            };
            prop_assert_eq!(*phase, before, "{:?}", event);
            *phase = after;
        }
        prop_assert_eq!(phases.len(), plan.calls.len());
        prop_assert!(phases.values().all(|phase| *phase == 2));

        // Results and messages are in call order and equal those of the completions.
        prop_assert_eq!(end.execution_results.len(), plan.calls.len());
        prop_assert_eq!(end.tool_messages.len(), plan.calls.len());
        let mut counted = BatchMetrics::default();
        for ((call, result), message) in
            plan.calls.iter().zip(&end.execution_results).zip(&end.tool_messages)
        {
            prop_assert_eq!((&call.id, &call.name), (&result.call_id, &result.tool_name));
            let completed = ToolEvent::CallComplete(result.clone());
            prop_assert!(events.contains(&completed));
            let [ContentBlock::ToolResult(block)] = &message.content[..] else {
                panic!("{message:?}")
            };
            prop_assert_eq!(block, &result.to_block());
            if result.is_error() {
                prop_assert_eq!(&result.result["tool"], &json!(call.name));
                prop_assert!(result.result["error"].is_string());
            }
            match result.outcome {
                Outcome::InvalidInput | Outcome::NotRun | Outcome::UnknownTool => {
                    prop_assert_eq!(result.attempts, 0);
                }
                Outcome::Ok => prop_assert_eq!(result.attempts == 0, result.cached),
                Outcome::Failed | Outcome::Panicked | Outcome::TimedOut => {
                    prop_assert!(result.attempts > 0);
                }
                _ => prop_assert!(plan.cancelled.is_some()),
            }
            counted.calls += 1;
            counted.busy += result.duration;
            counted.retries += u64::from(result.attempts.saturating_sub(1));
        }
        prop_assert_eq!(
            (counted.calls, counted.busy, counted.retries),
            (metrics.calls, metrics.busy, metrics.retries)
        );
        let most = plan.options.max_parallel.unwrap_or(usize::MAX) as u64;
        prop_assert!(metrics.peak_parallel <= most);
    }

    /// Sequential: a call starts after the previous one has ended.
    #[test]
    fn one_by_one_never_overlaps(mut plan in plan()) {
        plan.options = plan.options.mode(ExecutionMode::Sequential);
        plan.cancelled = None;
        let (events, _) = run(&plan);
        let mut order = Vec::new();
        for event in &events {
            match event {
                ToolEvent::CallStart(start) => order.push(start.call_id.clone()),
                ToolEvent::CallComplete(result) => {
                    prop_assert_eq!(order.last(), Some(&result.call_id));
                }
                _ => {}
            }
        }
        let ids: Vec<String> = plan.calls.iter().map(|call| call.id.clone()).collect();
        prop_assert_eq!(order, ids);
    }
}
