//! An agent that no other agent calls reports its events as progress.

use std::sync::{Arc, Mutex};

use oa_testkit::{MemoryServer, Reply};
use oa_tools::{Emission, Progress, Tool, ToolContext, tool};
use serde_json::json;

use crate::nested::{agent, auto};

/// Calls a tool as an MCP server does; returns its progress and its result.
async fn run(tool: &dyn Tool) -> (Vec<Progress>, String) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let emitter = move |emission| {
        if let Emission::Progress(progress) = emission {
            sink.lock().expect("no test panics").push(progress);
        }
    };
    let cx = ToolContext::new("c", "helper").with_emitter(Arc::new(emitter));
    let result = tool.call(json!({ "prompt": "Go." }), cx).await;
    let seen = seen.lock().expect("no test panics").clone();
    (seen, result.map_or_else(|error| error.to_string(), |result| result.to_string()))
}

fn messages(progress: Vec<Progress>) -> Vec<String> {
    for (place, step) in progress.iter().enumerate() {
        assert_eq!((step.done, step.total), (place as u64 + 1, None));
    }
    progress.into_iter().filter_map(|step| step.message).collect()
}

#[tokio::test]
async fn each_step_is_told_in_order() {
    let server = MemoryServer::new([
        Reply::new().call("look", json!({})).call("break", json!({})),
        Reply::text("All is well."),
    ]);
    let look = tool("look", "Looks").exclusive().build_with_context(|_, cx| async move {
        cx.emit_status("in the attic");
        cx.emit_progress((1, 2));
        Ok(json!("dust"))
    });
    let breaks = tool("break", "Breaks").exclusive().build(|_| async { Err("broken".into()) });
    let helper = agent("helper", auto(&server).tool(look).tool(breaks));
    let (progress, result) = run(&helper).await;
    assert_eq!(result, "\"All is well.\"");
    let expected = [
        "the model answers",
        "look runs",
        "look: in the attic",
        "look: 1 of 2",
        "look is done",
        "break runs",
        "break failed",
        "the model answers",
    ];
    assert_eq!(messages(progress), expected);
}

#[tokio::test]
async fn a_long_answer_is_told_now_and_then() {
    let server = MemoryServer::new(Reply::text("word ".repeat(1_000)));
    let (progress, _) = run(&agent("helper", auto(&server))).await;
    let messages = messages(progress);
    assert_eq!(messages[0], "the model answers");
    assert!((2..=13).contains(&messages.len()), "{messages:?}");
    assert!(messages[1].ends_with(" characters"), "{messages:?}");
}

#[tokio::test]
async fn agents_of_the_agent_are_named() {
    let inner = MemoryServer::new(Reply::text("An old silent pond."));
    let outer = MemoryServer::new([crate::nested::ask("poet"), Reply::text("I like it.")]);
    let poet = agent("poet", auto(&inner));
    let editor = agent("editor", auto(&outer).tool(poet));
    let (progress, _) = run(&editor).await;
    let expected = [
        "the model answers",
        "poet runs",
        "poet: the model answers",
        "poet is done",
        "the model answers",
    ];
    assert_eq!(messages(progress), expected);
}
