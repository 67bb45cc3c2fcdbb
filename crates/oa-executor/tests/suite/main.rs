//! Batches through the public interface.

mod cache;
mod cancel;
mod dependencies;
mod emissions;
mod events;
mod failures;
mod images;
mod laws;
mod limits;
mod modes;
mod prepared;
mod rate;
mod reading;
mod retry;
mod skip;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oa_executor::{
    Batch, BatchStream, ExecutionResult, ExecutorOptions, ToolEvent, ToolExecutor, ToolsEnd,
};
use oa_tools::{FnTool, Registry, ToolBuilder, tool};
use oa_types::ToolUseBlock;
use serde_json::{Value, json};

/// An executor for these tools.
#[track_caller]
pub(crate) fn executor(
    tools: impl IntoIterator<Item = FnTool>,
    options: ExecutorOptions,
) -> ToolExecutor {
    let tools = Registry::from_tools(tools).expect("the tools can be offered");
    ToolExecutor::with_options(tools, options).expect("every option can act")
}

/// Calls of tools by name, with the ids c0, c1 and so on.
pub(crate) fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Vec<ToolUseBlock> {
    let calls = calls.into_iter().enumerate();
    calls.map(|(n, (name, input))| ToolUseBlock::new(format!("c{n}"), name, input)).collect()
}

/// Sleeps for `ms` and returns `n`.
pub(crate) fn sleeper(name: &str) -> ToolBuilder {
    tool(name, "").param("ms", "integer").default("ms", 100).param("n", "integer").optional("n")
}

pub(crate) async fn sleep(args: Value) -> Result<Value, oa_tools::ToolError> {
    tokio::time::sleep(Duration::from_millis(args["ms"].as_u64().unwrap_or_default())).await;
    Ok(args["n"].clone())
}

pub(crate) async fn end(
    executor: &ToolExecutor,
    calls: Vec<ToolUseBlock>,
    batch: Batch,
) -> ToolsEnd {
    executor.execute_batch_streaming(calls, batch).end().await
}

/// Runs one call to its end.
pub(crate) async fn one(executor: &ToolExecutor, name: &str, input: Value) -> ExecutionResult {
    let end = end(executor, calls([(name, input)]), Batch::new()).await;
    ExecutionResult::clone(&end.execution_results[0])
}

/// The remaining events, one per line.
pub(crate) async fn lines(events: &mut BatchStream) -> String {
    let mut lines = Vec::new();
    while let Some(event) = events.next().await {
        lines.push(line(&event));
    }
    lines.join("\n")
}

pub(crate) fn line(event: &ToolEvent) -> String {
    let id = event.call_id().unwrap_or_default();
    match event {
        ToolEvent::CallStart(start) => format!("{id} starts {}", start.tool_name),
        ToolEvent::Progress(event) => format!("{id} has done {}", event.progress.done),
        ToolEvent::Status(event) => format!("{id} is {}", event.status),
        ToolEvent::Log(event) => format!("{id} logs {}", event.message),
        ToolEvent::Custom(event) => format!("{id} says {} {}", event.name(), event.data),
        ToolEvent::Retry(event) => format!("{id} retries after {}: {}", event.attempt, event.error),
        ToolEvent::CallComplete(result) => format!("{id} {}: {}", result.outcome, result.result),
        ToolEvent::Metrics(metrics) => format!("{metrics:?}"),
        ToolEvent::End(end) => {
            let ids = end.execution_results.iter().map(|result| &*result.call_id);
            format!("end of {}", ids.collect::<Vec<_>>().join(" "))
        }
        other => panic!("an event this suite does not know: {other:?}"),
    }
}

/// Counts live instances.
pub(crate) struct Alive(Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A tool that counts its runs and returns the count.
pub(crate) fn counting(name: &str) -> (FnTool, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let tool = tool(name, "").cacheable().build(move |_| {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(json!(run)) }
    });
    (tool, runs)
}
