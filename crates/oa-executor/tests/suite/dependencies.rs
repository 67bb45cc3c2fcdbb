//! Dependencies between calls.

use insta::assert_snapshot;
use oa_executor::{Batch, Dependencies, ErrorKind, ExecutionMode, ExecutorOptions};
use oa_tools::tool;
use proptest::prelude::*;
use serde_json::json;

use crate::{calls, executor, lines, sleep, sleeper};

fn waits(edges: &[(&str, &str)]) -> Dependencies {
    edges.iter().fold(Dependencies::new(), |dependencies, (call, other)| {
        dependencies.run_after(call, other).expect("no circle")
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_others() {
    let executor = executor([sleeper("s").build(sleep)], ExecutorOptions::new());
    let given = calls((0..4).map(|n| ("s", json!({ "ms": 10 * (4 - n), "n": n }))));
    let batch = Batch::new().dependencies(waits(&[("c0", "c2"), ("c3", "c0")]));
    let mut events = executor.execute_batch_streaming(given, batch);
    assert_snapshot!(lines(&mut events).await, @"
    c1 starts s
    c2 starts s
    c2 ok: 2
    c0 starts s
    c1 ok: 1
    c0 ok: 0
    c3 starts s
    c3 ok: 3
    end of c0 c1 c2 c3
    ");
}

#[tokio::test(start_paused = true)]
async fn sequential_mode_follows_dependencies() {
    let options = ExecutorOptions::new().mode(ExecutionMode::Sequential);
    let executor = executor([sleeper("s").build(sleep)], options);
    let given = calls((0..3).map(|n| ("s", json!({ "n": n }))));
    let batch = Batch::new().dependencies(waits(&[("c0", "c2")]));
    let mut events = executor.execute_batch_streaming(given, batch);
    assert_snapshot!(lines(&mut events).await, @"
    c1 starts s
    c1 ok: 1
    c2 starts s
    c2 ok: 2
    c0 starts s
    c0 ok: 0
    end of c0 c1 c2
    ");
}

#[tokio::test(start_paused = true)]
async fn needs_requires_success() {
    let fails = tool("fails", "").build(|_| async { Err("no".into()) });
    let executor = executor([fails, sleeper("s").build(sleep)], ExecutorOptions::new());
    let given = calls([
        ("fails", json!({})),
        ("s", json!({ "n": 1 })),
        ("s", json!({ "n": 2 })),
        ("s", json!({ "n": 3 })),
        ("s", json!({ "n": 4 })),
    ]);
    let dependencies = waits(&[("c1", "c0"), ("c4", "elsewhere")])
        .needs("c2", "c0")
        .and_then(|dependencies| dependencies.needs("c3", "c2"))
        .unwrap();
    let batch = Batch::new().dependencies(dependencies);
    let mut events = executor.execute_batch_streaming(given, batch);
    assert_snapshot!(lines(&mut events).await, @r#"
    c0 starts fails
    c4 starts s
    c4 not_run: {"error":"not run","tool":"s","reason":"it depends on call elsewhere, which is not in this batch"}
    c0 failed: {"error":"no","tool":"fails"}
    c1 starts s
    c2 starts s
    c2 not_run: {"error":"not run","tool":"s","reason":"it depends on call c0, which did not succeed"}
    c3 starts s
    c3 not_run: {"error":"not run","tool":"s","reason":"it depends on call c2, which did not succeed"}
    c1 ok: 1
    end of c0 c1 c2 c3 c4
    "#);
}

#[test]
fn cycles_are_rejected() {
    let line = waits(&[("b", "a"), ("c", "b"), ("d", "c")]);
    for (call, other) in [("a", "b"), ("a", "d"), ("b", "d"), ("a", "a")] {
        for refused in [line.clone().run_after(call, other), line.clone().needs(call, other)] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
    }
    assert!(line.run_after("d", "a").is_ok(), "a shortcut is no circle");
}

proptest! {
    /// With arbitrary edges a batch ends, and no call starts before its dependencies end.
    #[test]
    fn no_dependency_order_deadlocks(
        edges in prop::collection::vec((0_usize..8, 0_usize..8), 0..20),
        exclusive in prop::collection::vec(any::<bool>(), 8),
        most in 1_usize..9,
    ) {
        let mut dependencies = Dependencies::new();
        let mut kept = Vec::new();
        for (call, other) in edges {
            if let Ok(more) = dependencies.clone().run_after(&format!("c{call}"), &format!("c{other}")) {
                dependencies = more;
                kept.push((call, other));
            }
        }
        let tools = [
            tool("shared", "").build(|a| async { Ok(a) }),
            tool("alone", "").exclusive().build(|a| async { Ok(a) }),
        ];
        let executor = executor(tools, ExecutorOptions::new().max_parallel(most));
        let names = exclusive.iter().map(|alone| if *alone { "alone" } else { "shared" });
        let given = calls(names.map(|name| (name, json!({}))));
        let mut events =
            executor.execute_batch_streaming(given, Batch::new().dependencies(dependencies));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let seen = runtime.block_on(lines(&mut events));
        let place = |what: String| seen.lines().position(|line| line.starts_with(&what)).unwrap();
        for (call, other) in kept {
            prop_assert!(place(format!("c{other} ok")) < place(format!("c{call} starts")), "{}", seen);
        }
        prop_assert!(seen.ends_with("end of c0 c1 c2 c3 c4 c5 c6 c7"));
    }
}
