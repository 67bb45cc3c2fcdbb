//! Tools: their runs are recorded, and they are otherwise unchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oa_executor::{Batch, ExecutorOptions, RetryPolicy, ToolExecutor};
use oa_hooks::ToolRule;
use oa_tools::{BlockingHandler, Registry, Tool, ToolContext, ToolError, ToolFuture, tool};
use oa_types::ToolUseBlock;
use serde_json::{Value, json};

use super::*;

const DURATION: &str = "gen_ai.execute_tool.duration";

fn line(name: &str, error: &str, count: u32, seconds: f64) -> String {
    let error = if error.is_empty() { String::new() } else { format!("error.type={error},") };
    format!("{{{error}gen_ai.tool.name={name},gen_ai.tool.type=function}} {count} x, {seconds}")
}

/// Runs a call of each of the tools, and checks what was recorded.
#[track_caller]
fn ran(lab: &Lab, expected: &[String]) {
    check(lab, DURATION, &expected.iter().map(String::as_str).collect::<Vec<_>>());
}

async fn run(lab: &Lab, tools: Vec<impl Tool + 'static>, options: ExecutorOptions) {
    let mut registry = Registry::new();
    let mut calls = Vec::new();
    for one in tools {
        calls.push(ToolUseBlock::new(format!("call-{}", calls.len()), one.name(), json!({})));
        registry.add(lab.metrics.tool(one)).unwrap_or_else(|error| panic!("{error}"));
    }
    let executor =
        ToolExecutor::with_options(registry, options).unwrap_or_else(|error| panic!("{error}"));
    let mut events = executor.execute_batch_streaming(calls, Batch::new());
    while events.next().await.is_some() {}
}

fn lasting(name: &str, seconds: u64) -> impl Tool + 'static {
    tool(name, "Takes a while").build(move |_| async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(json!("done"))
    })
}

#[tokio::test(start_paused = true)]
async fn successful_runs_are_recorded() {
    let lab = Lab::new();
    run(&lab, vec![lasting("a", 3), lasting("b", 1)], ExecutorOptions::new()).await;
    ran(&lab, &[line("a", "", 1, 3.0), line("b", "", 1, 1.0)]);
}

#[tokio::test(start_paused = true)]
async fn failed_runs_have_an_error_type() {
    let lab = Lab::new();
    let fails = tool("fails", "Fails").build(|_| async { Err::<Value, _>("no such file".into()) });
    let panics = tool("panics", "Panics").build(|_| async { panic!("a bug") });
    run(&lab, vec![fails], ExecutorOptions::new()).await;
    run(&lab, vec![panics], ExecutorOptions::new()).await;
    ran(&lab, &[line("fails", "failed", 1, 0.0), line("panics", "panicked", 1, 0.0)]);
}

/// A timeout of the tool itself is told from one of the executor, which looks like an interrupt from inside.
#[tokio::test(start_paused = true)]
async fn dropped_runs_tell_timeouts_from_cancels() {
    let lab = Lab::new();
    let own = tool("own", "Waits").timeout(Duration::from_secs(2)).build(|_| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(json!("done"))
    });
    let options = || ExecutorOptions::new().timeout(Duration::from_secs(5));
    run(&lab, vec![own], options()).await;
    run(&lab, vec![lasting("other", 60)], options()).await;
    let lines = lab.lines();
    let errors: Vec<_> =
        lines.iter().map(|line| line.split(',').next().unwrap_or_default()).collect();
    assert_eq!(
        errors,
        [format!("{DURATION}{{error.type=cancelled"), format!("{DURATION}{{error.type=timed_out")]
    );
}

/// Each attempt is a run.
#[tokio::test(start_paused = true)]
async fn each_retry_is_a_run() {
    let lab = Lab::new();
    let has_failed = Arc::new(AtomicBool::new(false));
    let shaky = tool("shaky", "Fails once").build(move |_| {
        let fails = !has_failed.swap(true, Ordering::Relaxed);
        async move { if fails { Err("busy".into()) } else { Ok(json!("done")) } }
    });
    let retry = RetryPolicy::new(2);
    run(&lab, vec![shaky], ExecutorOptions::new().retry(retry)).await;
    ran(&lab, &[line("shaky", "failed", 1, 0.0), line("shaky", "", 1, 0.0)]);
}

/// A blocking handler is recorded on its own thread, once.
#[tokio::test]
async fn blocking_runs_are_recorded_once() {
    let lab = Lab::new();
    let blocking = tool("files", "Counts").build_blocking(|_| Ok(json!(3)));
    run(&lab, vec![blocking], ExecutorOptions::new()).await;
    let lines = lab.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with(&format!("{DURATION}{{gen_ai.tool.name=files"))
            && lines[0].contains("} 1 x"),
        "{lines:?}"
    );
}

/// An agent's tools: a call that was denied or named no tool is no run, and no name that a model makes up is recorded.
#[tokio::test(start_paused = true)]
async fn calls_that_never_run_are_not_recorded() {
    let lab = Lab::new();
    let calls =
        Reply::new().call("add", json!({})).call("rm", json!({})).call("made_up", json!({}));
    let server = server(Script::new().reply(calls).reply(answer("Done.")));
    let options = options(&lab, &server)
        .tool(lab.metrics.tool(lasting("add", 0)))
        .tool(lab.metrics.tool(lasting("rm", 0)))
        .tool_rule(ToolRule::deny("rm"))
        .auto_execute_tools(true);
    client(options).ask("Go.").await.unwrap();
    ran(&lab, &[line("add", "", 1, 0.0)]);
    assert!(!lab.exported().contains("made_up"));
}

/// A tool that differs from the default in everything.
struct Odd(Value, Value);

impl Tool for Odd {
    fn name(&self) -> &str {
        "odd"
    }
    fn description(&self) -> &str {
        "Is odd"
    }
    fn input_schema(&self) -> &Value {
        &self.0
    }
    fn output_schema(&self) -> Option<&Value> {
        Some(&self.1)
    }
    fn call(&self, _: Value, _: ToolContext) -> ToolFuture<'_> {
        Box::pin(async { Ok(json!(1)) })
    }
    fn prepare(&self, input: Value) -> Result<Value, oa_tools::ArgumentError> {
        Ok(json!([input]))
    }
    fn blocking(&self) -> Option<BlockingHandler> {
        Some(BlockingHandler::new(|input, _| Err::<Value, ToolError>(input.to_string().into())))
    }
    fn category(&self) -> Option<&str> {
        Some("odds")
    }
    fn is_exclusive(&self) -> bool {
        true
    }
    fn max_parallel(&self) -> Option<usize> {
        Some(0)
    }
    fn is_cacheable(&self) -> bool {
        true
    }
    fn timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(7))
    }
    fn is_external(&self) -> bool {
        true
    }
    fn is_agent(&self) -> bool {
        true
    }
    fn agent_tools(&self) -> Option<Vec<Arc<dyn Tool>>> {
        Some(vec![Arc::new(tool("inner", "").build(|_| async { Ok(json!(1)) }))])
    }
}

#[test]
fn everything_else_is_forwarded() {
    let lab = Lab::new();
    let odd = || {
        Odd(json!({ "type": "object", "title": "in" }), json!({ "type": "object", "title": "out" }))
    };
    let (inner, outer) = (odd(), lab.metrics.tool(odd()));
    macro_rules! same {
        ($($method:ident),*) => { $(assert_eq!(outer.$method(), inner.$method(), stringify!($method));)* };
    }
    same!(
        name,
        description,
        input_schema,
        output_schema,
        category,
        is_exclusive,
        max_parallel,
        is_cacheable
    );
    same!(timeout, is_external, is_agent, spec, to_openai_format);
    assert_eq!(
        outer.agent_tools().map(|tools| tools[0].name().to_owned()),
        Some("inner".to_owned())
    );
    assert_eq!(outer.prepare(json!(1)).ok(), Some(json!([1])));
    assert!(outer.check().is_err() && inner.check().is_err());
    let cx = ToolContext::new("call-1", "odd");
    let failed = outer.blocking().map(|handler| handler.run(json!(5), cx));
    assert!(failed.is_some_and(|result| result.is_err()));
    ran(&lab, &[lab.lines()[0].strip_prefix(DURATION).unwrap().to_owned()]);
}
