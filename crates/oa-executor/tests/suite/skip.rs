//! Skipped calls.

use insta::assert_snapshot;
use oa_executor::{Batch, ExecutionMode, ExecutorOptions};
use oa_tools::tool;
use serde_json::json;

use crate::{calls, executor, lines};

#[tokio::test]
async fn condition_sees_the_call_and_past_results() {
    let options = ExecutorOptions::new().mode(ExecutionMode::Sequential).skip_if(|call, ended| {
        if call.input["dry"] == true {
            return Some("a dry run".into());
        }
        let failed = ended.iter().find(|result| result.is_error() && result.attempts > 0)?;
        Some(format!("{} failed before", failed.tool_name))
    });
    let tools = [
        tool("t", "").param("dry", "boolean").default("dry", false).build(|a| async { Ok(a) }),
        tool("fails", "").build(|_| async { Err("no".into()) }),
    ];
    let executor = executor(tools, options);
    let given = calls([
        ("t", json!({})),
        ("t", json!({ "dry": true })),
        ("fails", json!({})),
        ("t", json!({})),
    ]);
    let mut events = executor.execute_batch_streaming(given, Batch::new());
    assert_snapshot!(lines(&mut events).await, @r#"
    c0 starts t
    c0 ok: {"dry":false}
    c1 starts t
    c1 not_run: {"error":"not run","tool":"t","reason":"a dry run"}
    c2 starts fails
    c2 failed: {"error":"no","tool":"fails"}
    c3 starts t
    c3 not_run: {"error":"not run","tool":"t","reason":"fails failed before"}
    end of c0 c1 c2 c3
    "#);
}

#[tokio::test]
async fn a_condition_that_panics_runs_nothing() {
    let options = ExecutorOptions::new().skip_if(|_, _| panic!("boom"));
    let executor = executor([tool("t", "").build(|a| async { Ok(a) })], options);
    let mut events = executor.execute_batch_streaming(calls([("t", json!({}))]), Batch::new());
    assert_snapshot!(lines(&mut events).await, @r#"
    c0 starts t
    c0 not_run: {"error":"not run","tool":"t","reason":"the skip condition panicked"}
    end of c0
    "#);
}
