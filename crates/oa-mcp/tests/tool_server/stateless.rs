//! The version 2026-07-28, which has no handshake, over the standard streams and over HTTP.

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::http::read;
use crate::support::{
    InMemory, Offered, Served, call, cancel, hello, limits, request, text, watched,
};
use crate::tools;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The message with what each request of this version has.
fn enveloped(mut message: Value) -> Value {
    message["params"]["_meta"][VERSION] = "2026-07-28".into();
    message["params"]["_meta"][CAPABILITIES] = json!({});
    message
}

fn listen(id: &str, tools: bool) -> Value {
    let filter =
        json!({ "notifications": { "toolsListChanged": tools, "promptsListChanged": true } });
    enveloped(request(id, "subscriptions/listen", filter))
}

/// The headers that say what a message says.
fn headers(message: &Value) -> String {
    let method = message["method"].as_str().unwrap_or_default();
    let mut headers = format!(
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n"
    );
    if let Some(name) = message["params"]["name"].as_str() {
        headers += &format!("mcp-name: {name}\r\n");
    }
    headers
}

async fn post(served: &Served, message: &Value) -> crate::http::Answer {
    served.ask("POST", &headers(message), message.to_string().as_bytes()).await
}

#[tokio::test]
async fn requests_need_no_handshake() {
    let mut server = Offered::start();
    let found = server.ask(&enveloped(request(1, "server/discover", json!({})))).await;
    let result = &found["result"];
    assert_eq!(result["resultType"], "complete");
    let versions = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
    assert_eq!(result["supportedVersions"], json!(versions));
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(result["_meta"][SERVER], json!({ "name": "offered", "version": "1.2.3" }));
    assert_eq!(result["instructions"], "Be kind.");
    let list = server.ask(&enveloped(request(2, "tools/list", json!({})))).await;
    assert_eq!(
        (&list["result"]["ttlMs"], &list["result"]["cacheScope"]),
        (&json!(0), &json!("public"))
    );
    let sum = server.ask(&enveloped(call(3, "add", json!({ "a": 1, "b": 2 })))).await;
    assert_eq!(sum["result"]["structuredContent"], json!({ "sum": 3.0 }));
    assert_eq!(sum["result"]["resultType"], "complete");
    let failed = server.ask(&enveloped(call(4, "fail", json!({})))).await;
    assert_eq!(
        (&failed["result"]["isError"], &failed["result"]["resultType"]),
        (&json!(true), &json!("complete"))
    );
    // What a version does not have is unknown in it.
    for method in ["ping", "logging/setLevel", "initialized"] {
        let answer = server.ask(&enveloped(request(5, method, json!({})))).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
    // And a handshake afterwards begins a conversation beside it.
    let list = server.ask(&request(6, "tools/list", json!({}))).await;
    assert_eq!(list["error"]["code"], -32600);
    assert_eq!(server.ask(&hello(7)).await["result"]["protocolVersion"], "2025-06-18");
    let list = server.ask(&request(8, "tools/list", json!({}))).await;
    assert_eq!(list["result"].get("resultType"), None);
    let list = server.ask(&enveloped(request(9, "tools/list", json!({})))).await;
    assert_eq!(list["result"]["resultType"], "complete");
}

#[tokio::test]
async fn unsupported_version_lists_supported_ones() {
    let mut server = Offered::start();
    let mut message = enveloped(request(1, "tools/list", json!({})));
    message["params"]["_meta"][VERSION] = "2099-01-01".into();
    let error = server.ask(&message).await["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]["requested"]),
        (&json!(-32022), &json!("2099-01-01"))
    );
    assert_eq!(error["data"]["supported"][0], "2026-07-28");
    let mut bare = enveloped(request(2, "tools/list", json!({})));
    bare["params"]["_meta"][CAPABILITIES] = Value::Null;
    assert_eq!(server.ask(&bare).await["error"]["code"], -32602);
    assert_eq!(
        server.ask(&request(3, "server/discover", json!({}))).await["error"]["code"],
        -32602
    );
}

#[tokio::test]
async fn log_lines_need_a_level_in_the_request() {
    let mut server = Offered::ready().await;
    let answer = server.ask(&enveloped(call(1, "talk", json!({})))).await;
    assert_eq!(answer["id"], 1, "{answer}");
    let mut loud = enveloped(watched(2, "talk", json!({})));
    loud["params"]["_meta"][LOG_LEVEL] = "warning".into();
    server.send(&loud).await;
    let levels =
        [server.next().await, server.next().await].map(|line| line["params"]["level"].clone());
    assert_eq!(levels, ["warning", "error"]);
    assert_eq!(server.next().await["id"], 2);
}

#[tokio::test]
async fn subscription_lasts_until_canceled() {
    let mut server = Offered::start();
    let acknowledged = server.ask(&listen("s", true)).await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let params =
        json!({ "_meta": { SUBSCRIPTION: "s" }, "notifications": { "toolsListChanged": true } });
    assert_eq!(acknowledged["params"], params);
    let deaf = server.ask(&listen("deaf", false)).await;
    assert_eq!(deaf["params"]["notifications"], json!({}));
    server.send(&enveloped(call(1, "grow", json!({})))).await;
    let mut both = [server.next().await, server.next().await];
    both.sort_by_key(|message| message.get("id").is_some());
    assert_eq!(both[0]["method"], "notifications/tools/list_changed");
    assert_eq!(both[0]["params"]["_meta"][SUBSCRIPTION], "s");
    assert_eq!(both[1]["id"], 1);
    let list = server.ask(&enveloped(request(2, "tools/list", json!({})))).await;
    assert!(list.to_string().contains("\"grown\""), "{list}");
    assert_eq!(text(&server.ask(&enveloped(call(3, "grown", json!({})))).await), "grown");

    let mut stop = cancel(0);
    stop["params"]["requestId"] = "s".into();
    server.send(&stop).await;
    server.send(&enveloped(call(4, "grow", json!({})))).await;
    assert_eq!(server.next().await["id"], 4);
    // The other one ends with the server: with its result.
    drop(server.input.take());
    let end = server.next().await;
    assert_eq!(
        (&end["id"], &end["result"]["_meta"][SUBSCRIPTION]),
        (&json!("deaf"), &json!("deaf"))
    );
    assert_eq!(server.next().await, Value::Null);
}

/// There are no sessions, so several clients may use the same id.
#[tokio::test]
async fn http_headers_must_match_the_body() {
    let served = Served::start(tools::server().unwrap().http_service()).await;
    let found = post(&served, &enveloped(request(1, "server/discover", json!({})))).await;
    assert_eq!((found.status, found.header("mcp-session-id")), (200, None));
    let sum = post(&served, &enveloped(call(1, "add", json!({ "a": 1, "b": 2 })))).await;
    assert_eq!(sum.header("x-accel-buffering").as_deref(), Some("no"));
    assert_eq!(sum.messages()[0]["result"]["structuredContent"], json!({ "sum": 3.0 }));
    assert_eq!(served.service.sessions(), 0);

    let code = |answer: &crate::http::Answer| {
        (answer.status, answer.messages()[0]["error"]["code"].clone())
    };
    let unknown = post(&served, &enveloped(request(2, "ping", json!({})))).await;
    assert_eq!(code(&unknown), (404, json!(-32601)));
    let bare = post(&served, &request(3, "tools/list", json!({}))).await;
    assert_eq!(code(&bare), (400, json!(-32602)));
    let message = enveloped(call(4, "echo", json!({ "text": "x" })));
    let all = headers(&message);
    for wrong in [
        all.replace("mcp-method: tools/call\r\n", ""),
        all.replace("mcp-method: tools/call", "mcp-method: tools/list"),
        all.replace("mcp-name: echo", "mcp-name: add"),
        all.replace("2026-07-28", "2099-01-01"),
        // In a session, or what looks like one, such a request has no place.
        all.replace("mcp-protocol-version: 2026-07-28\r\n", ""),
        all.replace("2026-07-28", "2025-11-25"),
    ] {
        let answer = served.ask("POST", &wrong, message.to_string().as_bytes()).await;
        assert_eq!(code(&answer), (400, json!(-32020)), "{wrong}");
    }
    let mut future = message.clone();
    future["params"]["_meta"][VERSION] = "2099-01-01".into();
    let newer = all.replace("2026-07-28", "2099-01-01");
    let answer = served.ask("POST", &newer, future.to_string().as_bytes()).await;
    assert_eq!(code(&answer), (400, json!(-32022)));
    assert_eq!(answer.messages()[0]["id"], 4);
    // Neither a stream of a session nor its end.
    assert_eq!(served.ask("GET", &all, b"").await.status, 405);
    // An id of a session is ignored.
    let in_session = format!("{all}mcp-session-id: none\r\n");
    let answer = served.ask("POST", &in_session, message.to_string().as_bytes()).await;
    assert_eq!(text(&answer.messages()[0]), "x");
    // Two clients use one id at the same time.
    let slow = enveloped(call(5, "slow", json!({ "steps": 2, "ms": 50 })));
    let (one, other) = tokio::join!(post(&served, &slow), post(&served, &slow));
    assert_eq!((text(&one.messages()[0]), text(&other.messages()[0])), ("2 steps", "2 steps"));
}

/// Refusing the new ones would let one client have all others refused.
#[tokio::test]
async fn oldest_subscription_makes_room() {
    let two = limits(|limits| limits.subscriptions = 2);
    let mut server = InMemory::start(tools::server().unwrap().limits(two));
    for id in ["a", "b"] {
        let acknowledged = server.ask(&listen(id, true)).await;
        assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], id);
    }
    server.send(&listen("c", true)).await;
    let mut both = [server.next().await, server.next().await];
    both.sort_by_key(|message| message.get("id").is_some());
    assert_eq!(both[0]["params"]["_meta"][SUBSCRIPTION], "c");
    assert_eq!((&both[1]["id"], both[1]["result"].is_object()), (&json!("a"), true));
    server.close().await;
}

/// All clients without a session share the limits.
#[tokio::test]
async fn subscriptions_take_no_call_slots() {
    let one = limits(|limits| limits.calls = 1);
    let served = Served::start(tools::server().unwrap().limits(one).http_service()).await;
    let message = listen("s", true);
    let mut stream = served.open("POST", &headers(&message), message.to_string().as_bytes()).await;
    let (mut said, mut chunk) = (String::new(), [0; 4_096]);
    while !said.contains("subscriptions/acknowledged") {
        let count = stream.read(&mut chunk).await.unwrap_or_default();
        assert!(count > 0, "{said}");
        said += &String::from_utf8_lossy(&chunk[..count]);
    }
    let answer = post(&served, &enveloped(call(1, "echo", json!({ "text": "x" })))).await;
    assert_eq!(text(&answer.messages()[0]), "x");
}

#[tokio::test]
async fn http_subscription_ends_with_its_stream() {
    let served = Served::start(tools::server().unwrap().http_service()).await;
    let message = listen("s", true);
    let mut stream = served.open("POST", &headers(&message), message.to_string().as_bytes()).await;
    let mut said = String::new();
    let mut until = async |wanted: &str| {
        let mut chunk = [0; 4_096];
        while !said.contains(wanted) {
            let count = stream.read(&mut chunk).await.unwrap_or_default();
            assert!(count > 0, "{said}");
            said += &String::from_utf8_lossy(&chunk[..count]);
        }
    };
    until("subscriptions/acknowledged").await;
    post(&served, &enveloped(call(1, "grow", json!({})))).await;
    until("tools/list_changed").await;
    drop(stream);
    let closed = served.open("POST", &headers(&message), b"{").await;
    assert_eq!(read(closed).await.status, 400);
}
