//! The executor on its own, for programs with their own agent loop: it runs a batch of calls and reports
//! everything as events.
//!
//!     cargo run --example executor_events

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use examples::{Arguments, Terminal};
use open_agent::executor::{Batch, RetryPolicy, ToolCache};
use open_agent::tools::Registry;
use open_agent::{
    ExecutorOptions, FnTool, ToolEvent, ToolExecutor, ToolUseBlock, TruncationPolicy, json, tool,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("executor_events.rs"))?;
    let mut terminal = Terminal::new();
    let tools = Registry::from_tools([resize(), fetch(), poem(), rate()])?;
    let options = ExecutorOptions::new()
        .timeout(Duration::from_secs(5))
        .retry(RetryPolicy::new(2).initial_delay(Duration::from_millis(20)))
        .truncation(TruncationPolicy::max_chars(40))
        .cache(ToolCache::new(100))
        .with_metrics();
    let executor = ToolExecutor::with_options(tools, options)?;

    terminal.title("Four calls, as events");
    let calls = vec![
        ToolUseBlock::new("c1", "resize", json!({ "pictures": 3 })),
        ToolUseBlock::new("c2", "fetch", json!({ "page": "/news" })),
        ToolUseBlock::new("c3", "poem", json!({})),
        ToolUseBlock::new("c4", "rate", json!({ "from": "EUR", "to": "NOK" })),
    ];
    let mut events = executor.execute_batch_streaming(calls, Batch::new());
    while let Some(event) = events.next().await {
        show(&event, &mut terminal);
    }

    // Equal arguments in a different order: a cacheable tool is not run again.
    terminal.title("A cached call, as SSE frames for a web front end");
    let call = ToolUseBlock::new("c5", "rate", json!({ "to": "NOK", "from": "EUR" }));
    let mut events = executor.execute_batch_streaming(vec![call], Batch::new());
    let mut frames = Vec::new();
    while let Some(event) = events.next().await {
        // The body of a `text/event-stream` response; `ToolEvent::from_sse` parses it.
        event.write_sse(&mut frames);
    }
    terminal.say(&String::from_utf8(frames)?);
    Ok(())
}

fn show(event: &ToolEvent, terminal: &mut Terminal) {
    let kind = event.event_type();
    let line = match event {
        ToolEvent::CallStart(start) => format!("{} {}", start.tool_name, start.input),
        ToolEvent::Progress(event) => {
            let progress = &event.progress;
            format!("{} {}/{}", event.tool_name, progress.done, progress.total.unwrap_or_default())
        }
        ToolEvent::Status(event) => format!("{} {}", event.tool_name, event.status),
        ToolEvent::Custom(event) => format!("{} {}", event.tool_name, event.data),
        ToolEvent::Retry(event) => {
            format!("{}, attempt {}: {}", event.tool_name, event.attempt, event.error)
        }
        ToolEvent::CallComplete(result) => {
            let of = match result.truncated {
                true => format!(" (of {} characters)", result.full().to_string().len()),
                false => String::new(),
            };
            format!("{} {} {}{of}", result.tool_name, result.outcome, result.result)
        }
        ToolEvent::Metrics(metrics) => {
            let (took, busy) = (metrics.duration.as_millis(), metrics.busy.as_millis());
            format!("{} calls in {took} ms, which would be {busy} ms one by one", metrics.calls)
        }
        // In call order, regardless of the order of completion.
        ToolEvent::End(end) => format!("{} messages for the model", end.tool_messages.len()),
        _ => String::new(),
    };
    terminal.labeled_line(kind, 18, &line);
}

/// Reports a status and progress, and emits custom data.
fn resize() -> FnTool {
    tool("resize", "Resizes pictures").param("pictures", "integer").build_with_context(
        |args, cx| async move {
            let pictures = args["pictures"].as_u64().unwrap_or_default();
            cx.emit_status("resizing");
            for done in 1..=pictures {
                tokio::time::sleep(Duration::from_millis(30)).await;
                cx.emit_progress((done, pictures));
            }
            cx.emit("preview", json!({ "width": 320, "height": 200 }));
            Ok(json!({ "resized": pictures }))
        },
    )
}

/// Fails twice before it succeeds, like a network.
fn fetch() -> FnTool {
    let attempts = AtomicU32::new(0);
    tool("fetch", "Fetches a page").param("page", "string").build(move |args| {
        let attempt = attempts.fetch_add(1, Ordering::Relaxed);
        async move {
            if attempt < 2 {
                return Err("the connection was reset".into());
            }
            Ok(json!(format!("the page {}", args["page"])))
        }
    })
}

/// Returns more text than a model should have to read.
fn poem() -> FnTool {
    tool("poem", "Recites a poem")
        .build(|_| async { Ok(json!("Roses are red, violets are blue. ".repeat(20))) })
}

/// Returns the same result for the same arguments while it is cached.
fn rate() -> FnTool {
    let builder =
        tool("rate", "Tells an exchange rate").param("from", "string").param("to", "string");
    builder.cacheable().build(|_| async {
        tokio::time::sleep(Duration::from_millis(80)).await;
        Ok(json!(11.5))
    })
}
