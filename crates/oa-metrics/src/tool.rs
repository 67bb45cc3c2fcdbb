//! Recording of a tool's runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oa_tools::{ArgumentError, BlockingHandler, Error, Tool, ToolContext, ToolError, ToolFuture};
use oa_types::{Outcome, ToolSpec};
use serde_json::Value;
use tokio::time::Instant;

use crate::measurement::tool_run;
use crate::recorder::Recorder;

/// A tool that records each of its runs and otherwise behaves like the wrapped tool, from
/// [`Metrics::tool`](crate::Metrics::tool).
///
/// A retry is recorded as another run. `error.type` is `failed` or `panicked`, `timed_out` if the run was dropped after
/// the tool's own [timeout](Tool::timeout), or `cancelled` if it was dropped earlier, by an interrupt or a shorter
/// timeout of the agent. Calls that never ran (denied, invalid, answered from a cache) are not recorded.
pub struct MeteredTool<T> {
    tool: T,
    recorder: Recorder,
}

impl<T: Tool> MeteredTool<T> {
    pub(crate) fn new(tool: T, recorder: Recorder) -> Self {
        Self { tool, recorder }
    }

    fn start(&self) -> Run {
        Run::start(self.recorder.clone(), self.tool.name(), self.tool.timeout())
    }
}

/// A run in progress. If dropped before its end, it is recorded as dropped.
struct Run {
    recorder: Recorder,
    name: String,
    started: Instant,
    timeout: Option<Duration>,
    outcome: Option<Outcome>,
}

impl Run {
    fn start(recorder: Recorder, name: &str, timeout: Option<Duration>) -> Self {
        Self { recorder, name: name.to_owned(), started: Instant::now(), timeout, outcome: None }
    }

    fn end(mut self, result: &Result<Value, ToolError>) {
        self.outcome = Some(if result.is_ok() { Outcome::Ok } else { Outcome::Failed });
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let duration = self.started.elapsed();
        // Also while unwinding: a panic of the tool drops the run without an outcome.
        let outcome = self
            .outcome
            .unwrap_or_else(|| dropped(duration, self.timeout, std::thread::panicking()));
        let error = outcome.is_error().then(|| outcome.as_str());
        let name = self.recorder.labels().tool(&self.name);
        self.recorder.record(&tool_run(name, duration, error));
    }
}

/// Returns the outcome of a run that was dropped before its end.
fn dropped(after: Duration, timeout: Option<Duration>, is_panicking: bool) -> Outcome {
    match timeout {
        // A panic comes first: it can happen after the timeout, too. A drop does not say why, so a run that
        // lasted as long as its timeout is taken to have been ended by it.
        _ if is_panicking => Outcome::Panicked,
        Some(timeout) if after >= timeout => Outcome::TimedOut,
        _ => Outcome::Cancelled,
    }
}

impl<T: Tool> Tool for MeteredTool<T> {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn description(&self) -> &str {
        self.tool.description()
    }

    fn input_schema(&self) -> &Value {
        self.tool.input_schema()
    }

    fn output_schema(&self) -> Option<&Value> {
        self.tool.output_schema()
    }

    fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let run = self.start();
            let result = self.tool.call(input, cx).await;
            run.end(&result);
            result
        })
    }

    fn prepare(&self, input: Value) -> Result<Value, ArgumentError> {
        self.tool.prepare(input)
    }

    fn blocking(&self) -> Option<BlockingHandler> {
        let handler = self.tool.blocking()?;
        let (recorder, name) = (self.recorder.clone(), self.tool.name().to_owned());
        let timeout = self.tool.timeout();
        Some(BlockingHandler::new(move |input, cx| {
            let run = Run::start(recorder.clone(), &name, timeout);
            let result = handler.run(input, cx);
            run.end(&result);
            result
        }))
    }

    fn category(&self) -> Option<&str> {
        self.tool.category()
    }

    fn is_exclusive(&self) -> bool {
        self.tool.is_exclusive()
    }

    fn max_parallel(&self) -> Option<usize> {
        self.tool.max_parallel()
    }

    fn is_cacheable(&self) -> bool {
        self.tool.is_cacheable()
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout()
    }

    fn is_external(&self) -> bool {
        self.tool.is_external()
    }

    fn is_agent(&self) -> bool {
        self.tool.is_agent()
    }

    fn agent_tools(&self) -> Option<Vec<Arc<dyn Tool>>> {
        self.tool.agent_tools()
    }

    fn check(&self) -> Result<(), Error> {
        self.tool.check()
    }

    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    fn to_openai_format(&self) -> Value {
        self.tool.to_openai_format()
    }
}

impl<T: Tool> fmt::Debug for MeteredTool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredTool").field("name", &self.tool.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_runs_have_a_cause() {
        let second = Duration::from_secs(1);
        assert_eq!(dropped(second, None, false), Outcome::Cancelled);
        assert_eq!(dropped(second, Some(2 * second), false), Outcome::Cancelled);
        assert_eq!(dropped(second, Some(second), false), Outcome::TimedOut);
        assert_eq!(dropped(second, Some(second), true), Outcome::Panicked);
    }
}
