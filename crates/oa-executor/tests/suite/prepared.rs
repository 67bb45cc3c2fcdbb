//! Input prepared before the batch, and input that was not.

use oa_executor::{Batch, ExecutorOptions, ToolEvent, ToolExecutor};
use oa_tools::{ArgumentError, Registry, Tool, ToolContext, ToolFuture, tool};
use oa_types::Outcome;
use serde_json::{Value, json};

use crate::{calls, end, executor};

/// Returns its input, marked each time it was prepared.
struct Marked(Value);

impl Tool for Marked {
    fn name(&self) -> &str {
        "marked"
    }

    fn description(&self) -> &str {
        ""
    }

    fn input_schema(&self) -> &Value {
        &self.0
    }

    fn prepare(&self, input: Value) -> Result<Value, ArgumentError> {
        Ok(json!([input]))
    }

    fn call(&self, input: Value, _: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move { Ok(input) })
    }
}

#[tokio::test]
async fn prepared_input_runs_as_it_is() {
    let tools = Registry::from_tools([Marked(json!({ "type": "object" }))]).unwrap();
    let executor = ToolExecutor::new(tools);
    let given = calls([("marked", json!(1)), ("marked", json!(2)), ("marked", json!(3))]);
    let unfit = ArgumentError::new("`n`: required, but missing");
    let batch = Batch::new().prepared("c0", Ok(())).prepared("c2", Err(unfit));
    let results = end(&executor, given, batch).await.execution_results;
    assert_eq!((&results[0].result, &results[0].input), (&json!(1), &json!(1)));
    assert_eq!((&results[1].result, &results[1].input), (&json!([2]), &json!([2])));
    assert_eq!((results[2].outcome, results[2].attempts), (Outcome::InvalidInput, 0));
    assert!(results[2].result["reason"].as_str().unwrap().contains("`n`"));
}

#[tokio::test]
async fn a_start_tells_the_input_that_runs() {
    let list = tool("list", "").param("path", "string").default("path", "/");
    let executor = executor([list.build(|args| async { Ok(args) })], ExecutorOptions::new());
    let given = calls([("list", json!({})), ("list", json!({ "path": 5 })), ("none", json!({}))]);
    let mut events = executor.execute_batch_streaming(given, Batch::new());
    let mut starts = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            ToolEvent::CallStart(start) => starts.push(start.input),
            ToolEvent::CallComplete(result) => assert!(starts.contains(&result.input)),
            _ => {}
        }
    }
    assert_eq!(starts, [json!({ "path": "/" }), json!({ "path": 5 }), json!({})]);
}
