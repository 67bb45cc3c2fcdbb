//! A failed call has a failed result.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use insta::assert_snapshot;
use oa_executor::{Batch, ExecutorOptions, Outcome, Placement};
use oa_tools::{FnTool, Tool, ToolContext, ToolError, ToolFuture, tool};
use oa_types::{ContentBlock, MessageRole};
use serde_json::{Value, json};

use crate::{calls, executor, lines, one};

fn tools() -> [FnTool; 4] {
    [
        tool("add", "").param("a", "number").build(|args| async move { Ok(args["a"].clone()) }),
        tool("fails", "").build(|_| async {
            Err(ToolError::from(std::io::Error::other("disk full")).context("cannot save"))
        }),
        tool("panics", "").build(|args| async move {
            tokio::task::yield_now().await;
            panic!("lost at {args}")
        }),
        tool("blocks", "").build_blocking(|_| panic!("on the pool")),
    ]
}

#[tokio::test]
async fn the_batch_goes_on_after_calls_that_fail() {
    let mut seen = Vec::new();
    for placement in [Placement::Inline, Placement::Spawned] {
        let executor =
            executor(tools(), ExecutorOptions::new().max_parallel(1).placement(placement));
        let given = calls([
            ("sub", json!({})),
            ("add", json!({ "a": "x" })),
            ("add", json!([])),
            ("fails", json!({})),
            ("panics", json!({})),
            ("blocks", json!({})),
            ("add", json!({ "a": 1 })),
        ]);
        let mut events = executor.execute_batch_streaming(given, Batch::new());
        seen.push(lines(&mut events).await);
    }
    assert_snapshot!(seen[0], @r#"
    c0 starts sub
    c0 unknown_tool: {"error":"there is no such tool","tool":"sub","available":["add","fails","panics","blocks"]}
    c1 starts add
    c1 invalid_input: {"error":"invalid arguments","tool":"add","reason":"`a`: expected number, found string \"x\""}
    c2 starts add
    c2 invalid_input: {"error":"invalid arguments","tool":"add","reason":"expected object, found array of 0"}
    c3 starts fails
    c3 failed: {"error":"cannot save: disk full","tool":"fails"}
    c4 starts panics
    c4 panicked: {"error":"the tool panicked","tool":"panics","reason":"lost at {}"}
    c5 starts blocks
    c5 panicked: {"error":"the tool panicked","tool":"blocks","reason":"on the pool"}
    c6 starts add
    c6 ok: 1
    end of c0 c1 c2 c3 c4 c5 c6
    "#);
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn messages_are_ready_for_the_conversation() {
    let executor = executor(tools(), ExecutorOptions::new());
    let given = calls([("add", json!({ "a": 1 })), ("sub", json!({}))]);
    let end = executor.execute_batch_streaming(given, Batch::new()).end().await;
    assert_eq!(end.tool_messages.len(), 2);
    for (message, result) in end.tool_messages.iter().zip(&end.execution_results) {
        assert_eq!(message.role, MessageRole::Tool);
        let [ContentBlock::ToolResult(block)] = &message.content[..] else { panic!("{message:?}") };
        assert_eq!(block.tool_use_id, result.call_id);
        assert_eq!(block.name.as_deref(), Some(&*result.tool_name));
        assert_eq!((&block.content, block.is_error), (&result.result, result.is_error()));
    }
    assert!(!end.execution_results[0].is_error() && end.execution_results[1].is_error());
}

/// Panics with another of its kind when it is dropped.
struct Hostile;

impl Drop for Hostile {
    fn drop(&mut self) {
        panic_any(Self);
    }
}

#[tokio::test]
async fn panic_payloads_may_panic_on_drop() {
    for placement in [Placement::Inline, Placement::Spawned] {
        let tools = [
            tool("panics", "").build(|_| async { panic_any(Hostile) }),
            tool("blocks", "").build_blocking(|_| panic_any(Hostile)),
            tool("skipped", "").build(|_| async { Ok(json!(1)) }),
        ];
        let options = ExecutorOptions::new().placement(placement).skip_if(|call, _| {
            if call.name == "skipped" {
                panic_any(Hostile)
            }
            None
        });
        let given = ["panics", "blocks", "skipped"].map(|name| (name, json!({})));
        let batch = executor(tools, options).execute_batch_streaming(calls(given), Batch::new());
        let outcomes: Vec<_> =
            batch.end().await.execution_results.iter().map(|r| r.outcome).collect();
        assert_eq!(outcomes, [Outcome::Panicked, Outcome::Panicked, Outcome::NotRun]);
    }
}

/// Panics when asked for its name, once it was added.
struct Nameless(AtomicBool, Value);

impl Tool for Nameless {
    fn name(&self) -> &str {
        if self.0.load(Ordering::Relaxed) {
            panic_any(Hostile);
        }
        "nameless"
    }

    fn description(&self) -> &str {
        ""
    }

    fn input_schema(&self) -> &Value {
        &self.1
    }

    fn call(&self, _: Value, _: ToolContext) -> ToolFuture<'_> {
        Box::pin(async { Ok(json!(1)) })
    }
}

#[tokio::test]
async fn panicking_names_are_left_out_of_the_list() {
    let nameless = Arc::new(Nameless(AtomicBool::new(false), json!({ "type": "object" })));
    let mut registry = oa_tools::Registry::from_tools(tools()).unwrap();
    registry.add(Arc::clone(&nameless)).unwrap();
    nameless.0.store(true, Ordering::Relaxed);
    let result = one(&oa_executor::ToolExecutor::new(registry), "sub", json!({})).await;
    assert_eq!(result.result["available"], json!(["add", "fails", "panics", "blocks"]));
}

/// Panics in the given method.
struct Treacherous(&'static str, Value);

impl Treacherous {
    fn at(&self, place: &str) {
        if self.0 == place {
            panic_any(5_u8);
        }
    }
}

impl Tool for Treacherous {
    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        ""
    }

    fn input_schema(&self) -> &Value {
        &self.1
    }

    fn prepare(&self, input: Value) -> Result<Value, oa_tools::ArgumentError> {
        self.at("prepare");
        Ok(input)
    }

    fn is_exclusive(&self) -> bool {
        self.at("is_exclusive");
        false
    }

    fn is_cacheable(&self) -> bool {
        self.at("is_cacheable");
        false
    }

    fn timeout(&self) -> Option<std::time::Duration> {
        self.at("timeout");
        None
    }

    fn call(&self, _: Value, _: ToolContext) -> ToolFuture<'_> {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic_any(5_u8);
            }
        }
        self.at("call");
        let bomb = (self.0 == "drop").then(|| Bomb);
        Box::pin(async move {
            self.at("poll");
            if bomb.is_some() {
                std::future::pending::<()>().await;
            }
            Ok(json!("fine"))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_anywhere_is_contained() {
    let places = ["prepare", "is_exclusive", "is_cacheable", "timeout", "call", "poll", "drop"];
    let schema = json!({ "type": "object" });
    let tools =
        oa_tools::Registry::from_tools(places.map(|place| Treacherous(place, schema.clone())));
    let options = ExecutorOptions::new()
        .timeouts(
            oa_executor::TimeoutPolicy::none().tool("drop", std::time::Duration::from_secs(1)),
        )
        .cache(oa_executor::ToolCache::new(1));
    let executor = oa_executor::ToolExecutor::with_options(tools.unwrap(), options).unwrap();
    let given = calls(places.map(|place| (place, json!({}))));
    let end = executor.execute_batch_streaming(given.clone(), Batch::new()).end().await;
    let outcomes: Vec<Outcome> = end.execution_results.iter().map(|r| r.outcome).collect();
    let panicked = Outcome::Panicked;
    let expected =
        [panicked, Outcome::Ok, panicked, panicked, panicked, panicked, Outcome::TimedOut];
    assert_eq!(outcomes, expected);

    // Dropped midway.
    let mut events = executor.execute_batch_streaming(given, Batch::new());
    for _ in 0..places.len() * 2 - 1 {
        events.next().await;
    }
    drop(events);
}

#[tokio::test]
async fn duplicate_ids_are_separate_calls() {
    let executor = executor(tools(), ExecutorOptions::new());
    let mut given = calls([("add", json!({ "a": 1 })), ("add", json!({ "a": 2 }))]);
    given[1].id = "c0".into();
    let end = executor.execute_batch_streaming(given, Batch::new()).end().await;
    let results: Vec<&Value> = end.execution_results.iter().map(|r| &r.result).collect();
    assert_eq!(results, [&json!(1), &json!(2)]);
}
