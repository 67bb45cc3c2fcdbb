//! Our client with our server: data passes through unchanged.

use std::sync::{Arc, Mutex, PoisonError};

use oa_mcp::{Connected, McpServer, Servers};
use oa_tools::{Emission, Progress, ToolContext};
use serde_json::{Value, json};

use crate::support::{OFFERED, Served};
use crate::tools;

async fn call(
    connected: &Connected,
    name: &str,
    input: Value,
    cx: ToolContext,
) -> Result<Value, String> {
    let tools = connected.tools();
    let tool = tools.iter().find(|tool| tool.name() == format!("o__{name}"));
    let Some(tool) = tool else { return Err(format!("there is no tool {name}")) };
    tool.call(input, cx).await.map_err(|error| error.to_string())
}

#[expect(clippy::unwrap_used, reason = "the body of two tests")]
async fn tour(server: McpServer) {
    let connected =
        Servers::new().add(server.trust_annotations().required()).connect().await.unwrap();
    assert_eq!(connected.connections().flat_map(oa_mcp::Connection::warnings).count(), 0);
    let cx = || ToolContext::new("c", "t");
    let tools = connected.tools();
    let add = tools.iter().find(|tool| tool.name() == "o__add").unwrap();
    assert_eq!(add.category(), Some("read"));
    let sum = call(&connected, "add", json!({ "a": 1.5, "b": 2 }), cx()).await;
    assert_eq!(sum, Ok(json!({ "sum": 3.5 })));
    let text = "line\r\n\u{2028}\u{0} \"\\ \u{1f600}";
    assert_eq!(call(&connected, "echo", json!({ "text": text }), cx()).await, Ok(json!(text)));
    assert_eq!(
        call(&connected, "fail", json!({}), cx()).await,
        Err("it failed: the disk is full".to_owned())
    );
    assert_eq!(
        call(&connected, "panic", json!({}), cx()).await,
        Err("the tool panicked".to_owned())
    );
    let shown = cx();
    assert_eq!(call(&connected, "picture", json!({}), shown.clone()).await, Ok(json!("")));
    assert!(shown.take_images()[0].url.starts_with("data:image/png;base64,iVBOR"));

    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let emitter = move |it| sink.lock().unwrap_or_else(PoisonError::into_inner).push(it);
    let burst = call(&connected, "burst", json!({}), cx().with_emitter(Arc::new(emitter))).await;
    assert_eq!(burst, Ok(json!("done")));
    let steps = (1..=1_000).map(|step| Emission::Progress(Progress::new(step, Some(1_000))));
    assert!(seen.lock().unwrap().iter().cloned().eq(steps));

    // Dropping a call cancels it: the process would not end while the tool held its thread.
    let block = call(&connected, "block", json!({}), cx());
    assert!(tokio::time::timeout(std::time::Duration::from_millis(100), block).await.is_err());
    assert_eq!(call(&connected, "echo", json!({ "text": "next" }), cx()).await, Ok(json!("next")));
    connected.close().await;
}

#[tokio::test]
async fn own_client_and_server_over_stdio() {
    tour(McpServer::stdio("o", OFFERED)).await;
    tour(McpServer::stdio("o", OFFERED).stateless()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_client_and_server_over_http() {
    let served = Served::start(tools::server().unwrap().http_service()).await;
    let server = || McpServer::http("o", format!("http://{}/mcp", served.address));
    tour(server()).await;
    assert_eq!(served.service.sessions(), 0);
    tour(server().stateless()).await;
    assert_eq!(served.service.sessions(), 0);
}
