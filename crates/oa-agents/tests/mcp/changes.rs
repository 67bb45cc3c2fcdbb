//! Interrupts, and lists that change while an agent runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oa_client::AgentEvent;
use oa_executor::ToolEvent;
use oa_testkit::{MemoryServer, Reply, Script};
use serde_json::{Value, json};

use crate::support::{agent, calls, client, connect, server};

fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

#[tokio::test]
async fn changed_lists_apply_between_steps() {
    let (server, _) = server();
    let connected = connect(server).await;
    // The list changes in the first step. It is read after a quarter of a second of quiet, in which the second step may
    // begin: the model calls until it sees the new tool.
    let has_called = AtomicBool::new(false);
    let reply = move |request: &oa_testkit::Request| {
        let sees_it = offered(request.json()).contains(&"s__grown");
        match (request.number(), sees_it) {
            (1, _) => Reply::new().call("s__run", json!({ "what": "grow" })),
            (_, true) if has_called.swap(true, Ordering::Relaxed) => Reply::text("Done."),
            (_, true) => Reply::new().call("s__grown", json!({ "what": "work" })),
            (number, false) => {
                Reply::new().call("s__run", json!({ "what": format!("wait {number}") }))
            }
        }
    };
    let model = MemoryServer::new(Script::new().otherwise(Reply::by(reply)));
    let options = agent(&model, &connected).max_tool_iterations(1_000);
    let mut client = client(options);
    client.send("Go.").await.unwrap();
    let mut results = Vec::new();
    while let Some(event) = client.next_event().await.unwrap() {
        if let AgentEvent::Tool(ToolEvent::CallComplete(result)) = event {
            if result.tool_name != "s__grown" {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            results.push((result.tool_name.clone(), result.result.clone()));
        }
    }
    assert_eq!(results[0], ("s__run".to_owned(), json!("grown")));
    assert_eq!(results.last(), Some(&("s__grown".to_owned(), json!("done"))));
    assert_eq!(offered(model.requests()[0].json()), ["s__run"]);
    assert!(client.get_tool("s__grown").is_some());
    assert!(client.options().tool("s__grown").is_some());
    connected.close().await;
}

#[tokio::test]
async fn interrupt_cancels_the_servers_call() {
    let (server, notes) = server();
    let connected = connect(server).await;
    let model = calls("silence");
    let mut client = client(agent(&model, &connected));
    client.send("Go.").await.unwrap();
    let handle = client.interrupt_handle();
    let mut interrupted = None;
    while let Some(event) = client.next_event().await.unwrap() {
        if let AgentEvent::Tool(ToolEvent::CallStart(_)) = event {
            // The call is on its way by the time that the timer fires.
            let handle = handle.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                handle.interrupt();
            });
            interrupted = Some(Instant::now() + Duration::from_millis(100));
        }
    }
    let at = interrupted.unwrap();
    let returned = at.elapsed();
    while !notes.exists() && at.elapsed() < Duration::from_secs(5) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let told = at.elapsed();
    println!("interrupt: returned after {returned:?}, the server was told after {told:?}");
    assert!(returned < Duration::from_secs(2) && told < Duration::from_secs(5));
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "cancelled\n");
    assert_eq!(client.finish_reason(), Some(&oa_types::FinishReason::Interrupted));
    std::fs::remove_file(notes).unwrap();
    connected.close().await;
}
