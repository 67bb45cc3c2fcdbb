use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use oa_executor::{Batch, ToolExecutor};
use oa_mcp::{ErrorKind, McpServer, Servers};
use oa_tools::{Cancel, Emission, Progress, Registry, ToolContext};
use oa_types::ToolUseBlock;
use serde_json::json;

use crate::support::{CANARY, call, call_with, connect, listening, scripted, tool};

#[tokio::test]
async fn tools_of_a_server_are_ordinary_tools() {
    let connected = connect(scripted("plain")).await.unwrap();
    let echo = tool(&connected, "s__echo").unwrap();
    assert_eq!(echo.category(), Some("mcp"));
    assert_eq!(echo.description(), "Tool echo");
    assert_eq!(echo.execute(json!({ "text": "hello" })).await.unwrap(), json!("hello"));
    let connection = connected.connection("s").unwrap();
    assert_eq!(connection.instructions().await.as_deref(), Some("Be kind."));
    let read = connection.request("resources/read", json!({ "uri": "a://b" })).await.unwrap();
    assert_eq!(read["contents"][0]["text"], "inside");
    assert_eq!(connection.request("refuse", json!({})).await.unwrap_err().code(), Some(-32000));
    connected.close().await;
}

#[tokio::test]
async fn executor_runs_calls_in_parallel() {
    let connected = connect(scripted("plain")).await.unwrap();
    let registry = Registry::from_tools(connected.tools()).unwrap();
    let calls = (0..20)
        .map(|n| ToolUseBlock::new(format!("c{n}"), "s__echo", json!({ "text": n.to_string() })));
    let batch = ToolExecutor::new(registry).execute_batch_streaming(calls.collect(), Batch::new());
    let end = batch.end().await;
    let results: Vec<_> =
        end.execution_results.iter().map(|result| result.result.clone()).collect();
    assert_eq!(results, (0..20).map(|n| json!(n.to_string())).collect::<Vec<_>>());
    connected.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn progress_keeps_order_on_eight_threads() {
    bursts_of_progress().await;
}

#[tokio::test]
async fn progress_keeps_order_on_one_thread() {
    bursts_of_progress().await;
}

#[expect(clippy::unwrap_used, reason = "the body of two tests")]
async fn bursts_of_progress() {
    let connected = connect(scripted("plain")).await.unwrap();
    for _ in 0..100 {
        let (cx, seen) = listening();
        let result = call_with(&connected, json!({ "what": "progress", "steps": 1_000 }), cx).await;
        assert_eq!(result, Ok(json!("done")));
        let at_the_end = seen.lock().unwrap().clone();
        let step = |n: u64| {
            Emission::Progress(Progress::new(n, Some(1_000)).with_message(format!("step {n}")))
        };
        assert_eq!(at_the_end, (1..=1_000).map(step).collect::<Vec<_>>());
        // What comes later is nobody's.
        assert_eq!(call(&connected, "string id").await, Ok(json!("accepted")));
        assert_eq!(seen.lock().unwrap().len(), 1_000);
    }
    connected.close().await;
}

/// A call without progress ends at the timeout, and the server is told.
#[tokio::test]
async fn progress_resets_the_idle_timeout() {
    // Ten times the pause between steps, because a busy machine is late.
    let server = scripted("plain").call_timeout(Duration::from_secs(1));
    let connected = connect(server).await.unwrap();
    let (cx, _) = listening();
    let slow = call_with(&connected, json!({ "what": "slow progress", "steps": 14 }), cx).await;
    assert_eq!(slow, Ok(json!("done")));
    let silent = call(&connected, "nothing").await;
    assert_eq!(silent, Err("s: the server was silent for 1s".to_owned()));
    let cancel = call(&connected, "last cancel").await.unwrap();
    assert!(cancel.as_str().unwrap().contains("\"reason\":\"timeout\""), "{cancel}");
    connected.close().await;
}

#[tokio::test]
async fn total_timeout_ignores_progress() {
    let server = scripted("plain").max_call_time(Duration::from_millis(500));
    let connected = connect(server).await.unwrap();
    let (cx, _) = listening();
    let endless = call_with(&connected, json!({ "what": "slow progress", "steps": 20 }), cx).await;
    assert_eq!(endless, Err("s: the call took longer than 500ms".to_owned()));
    connected.close().await;
}

#[tokio::test]
async fn interrupts_and_drops_reach_the_server() {
    let connected = connect(scripted("plain")).await.unwrap();
    let cancel = Cancel::new();
    let cx = ToolContext::new("c", "s__do").with_cancel(cancel.clone());
    let call_it = call_with(&connected, json!({ "what": "nothing" }), cx);
    let interrupt = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(call_it, interrupt);
    assert_eq!(result, Err("s: the call was interrupted".to_owned()));
    let heard = call(&connected, "last cancel").await.unwrap();
    assert!(heard.as_str().unwrap().contains("\"reason\":\"interrupted\""), "{heard}");

    let dropped =
        tokio::time::timeout(Duration::from_millis(50), call(&connected, "nothing")).await;
    assert!(dropped.is_err());
    let heard = call(&connected, "last cancel").await.unwrap();
    assert!(heard.as_str().unwrap().contains("\"reason\":\"no longer wanted\""), "{heard}");
    connected.close().await;
}

#[tokio::test]
async fn interrupt_ends_the_wait_for_a_restart() {
    let mut limits = oa_mcp::Limits::default();
    limits.restart_delay = Duration::from_secs(50);
    let connected = connect(scripted("plain").limits(limits)).await.unwrap();
    assert!(call(&connected, "die").await.is_err());
    let cancel = Cancel::new();
    let cx = ToolContext::new("c", "s__do").with_cancel(cancel.clone());
    let waits = call_with(&connected, json!({ "what": "string id" }), cx);
    let interrupt = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let ended =
        tokio::time::timeout(Duration::from_secs(20), async { tokio::join!(waits, interrupt).0 });
    assert_eq!(ended.await, Ok(Err("s: the call was interrupted".to_owned())));
    connected.close().await;
}

#[tokio::test]
async fn close_aborts_a_pending_restart() {
    let mut limits = oa_mcp::Limits::default();
    limits.restart_delay = Duration::from_secs(50);
    let connected = connect(scripted("plain").limits(limits)).await.unwrap();
    assert!(call(&connected, "die").await.is_err());
    let tool = tool(&connected, "s__do").unwrap();
    let waits = tool.execute(json!({ "what": "string id" }));
    let close = async {
        tokio::task::yield_now().await;
        connected.close().await;
    };
    let both = async { tokio::join!(waits, close).0 };
    let ended = tokio::time::timeout(Duration::from_secs(20), both).await;
    let error = ended.expect("it closes").unwrap_err();
    assert!(error.to_string().contains("the connection is closed"), "{error}");
}

#[tokio::test]
async fn protocol_errors_are_worded_for_the_model() {
    let connected = connect(scripted("plain")).await.unwrap();
    assert_eq!(
        call(&connected, "refuse").await,
        Err("wrong arguments: steps must be positive".to_owned())
    );
    connected.close().await;
}

#[tokio::test]
async fn log_callback_gets_masked_lines() {
    let (sender, mut logs) = tokio::sync::mpsc::unbounded_channel();
    let server = scripted("plain").on_log(move |level, text| {
        let _ = sender.send(format!("{level}: {text}"));
    });
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "log").await, Ok(json!("logged")));
    assert_eq!(logs.recv().await.as_deref(), Some("error: disk full, ****"));
    connected.close().await;
}

#[tokio::test]
async fn debug_output_has_no_key() {
    let connected = connect(scripted("plain")).await.unwrap();
    let all = format!(
        "{connected:?} {:?} {:?}",
        connected.failures(),
        Servers::new().add(scripted("plain"))
    );
    assert!(!all.contains(CANARY), "{all}");
    assert!(all.contains("CANARY"), "{all}");
    let text = r#"{"mcpServers": {"web": {"url": "http://localhost/mcp?key=${K}", "headers": {"X-Api-Key": "${K}"}}}}"#;
    let servers = Servers::from_json(text, |_| Some(CANARY.to_owned())).unwrap();
    assert!(!format!("{servers:?}").contains(CANARY), "{servers:?}");
    let _: &[McpServer] = servers.servers();
    let server = McpServer::http("web", format!("http://ada:{CANARY}@localhost:1/mcp#{CANARY}"));
    let shown = format!("{server:?}");
    assert!(shown.contains("localhost:1/mcp") && !shown.contains("ada"), "{shown}");
    let error = connect(server.required()).await.unwrap_err().to_string();
    assert!(!(shown + &error).contains(CANARY), "{error}");
    connected.close().await;
}

#[tokio::test]
async fn params_of_a_request_are_an_object() {
    let connected = connect(scripted("plain")).await.unwrap();
    let connection = connected.connection("s").unwrap();
    for params in [json!([1]), json!("text"), json!(7), json!({ "_meta": 7 })] {
        let error = connection.request("mirror", params.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{params}: {error}");
    }
    assert!(connection.request("mirror", json!(null)).await.unwrap().is_object());
    let own = json!({ "_meta": { "own": 1, "progressToken": "other" }, "a": 2 });
    let seen = connection.request("mirror", own).await.unwrap();
    assert_eq!((&seen["_meta"]["own"], &seen["a"]), (&json!(1), &json!(2)));
    assert!(seen["_meta"]["progressToken"].is_number(), "{seen}");
    connected.close().await;
}

/// It runs while a message is read.
#[tokio::test]
async fn emitter_may_use_the_connection() {
    let connected = Arc::new(connect(scripted("plain")).await.unwrap());
    let (shared, seen) = (Arc::clone(&connected), Arc::new(Mutex::new(Vec::new())));
    let sink = Arc::clone(&seen);
    let emitter = move |_| {
        let warnings = shared.connection("s").map(|connection| connection.warnings().len());
        sink.lock().unwrap_or_else(PoisonError::into_inner).push(warnings);
    };
    let cx = ToolContext::new("c", "s__do").with_emitter(Arc::new(emitter));
    let input = json!({ "what": "progress", "steps": 2 });
    assert_eq!(call_with(&connected, input, cx).await, Ok(json!("done")));
    assert_eq!(*seen.lock().unwrap(), [Some(0), Some(0)]);
}

/// A silent one is restarted after three calls.
#[tokio::test]
async fn server_with_progress_is_not_restarted() {
    let server = scripted("plain").max_call_time(Duration::from_secs(1));
    let connected = connect(server).await.unwrap();
    for _ in 0..3 {
        let (cx, _) = listening();
        let long = call_with(&connected, json!({ "what": "one step" }), cx).await;
        assert_eq!(long, Err("s: the call took longer than 1s".to_owned()));
    }
    let last = call(&connected, "last cancel").await.unwrap();
    assert!(last.to_string().contains("timeout"), "it is the same process: {last}");
    connected.close().await;
}
