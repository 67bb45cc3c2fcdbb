//! Servers of the version without a handshake, 2026-07-28.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_mcp::{ElicitationAnswer, ErrorKind};
use oa_tools::ToolContext;
use serde_json::{Value, json};

use crate::http::{Answer, Asked, connect, event, events, result, serve, status, text};
use crate::support::{call, call_with, eventually, scripted, tool};

const META: &str = "io.modelcontextprotocol/";

/// Answers a request as a server does that knows no other version. Each request must say all about itself.
fn alone(asked: &Asked) -> Option<Answer> {
    if asked.method != "POST" {
        return Some(status("405 Method Not Allowed", "text/plain", ""));
    }
    let refuse = |http: &str, code: i64, message: &str| {
        let error = json!({ "code": code, "message": message });
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
        Some(status(http, "application/json", &body.to_string()))
    };
    let meta = |name: &str| asked.body["params"]["_meta"][format!("{META}{name}")].clone();
    if meta("protocolVersion") != "2026-07-28" {
        return refuse("400 Bad Request", -32022, "another version");
    }
    assert_eq!(meta("clientInfo")["name"], "open-agent");
    assert_eq!(meta("clientCapabilities"), json!({}));
    assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(asked.header("mcp-method"), asked.body["method"].as_str());
    assert_eq!(asked.header("mcp-session-id"), None);
    let named = asked.body["params"]["name"].as_str();
    assert_eq!(asked.header("mcp-name"), named);
    Some(match asked.body["method"].as_str()? {
        "server/discover" => result(
            asked,
            &json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": { "listChanged": true } },
                "instructions": "Stand alone.",
            }),
        ),
        "tools/list" => result(
            asked,
            &json!({ "resultType": "complete", "tools": [{ "name": "do", "inputSchema": { "type": "object" } }] }),
        ),
        "tools/call" if asked.what() == "ask" => result(
            asked,
            &json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "roots/list" } } }),
        ),
        "tools/call" if asked.what() == "task" => {
            result(asked, &json!({ "resultType": "task", "taskId": "x" }))
        }
        "tools/call" if asked.what() == "refused" => {
            return refuse("400 Bad Request", -32602, "steps must be positive");
        }
        "tools/call" if asked.what() == "silence" => Answer::Silence(events(": wait\n\n")),
        // It names an event, but there is nothing in which it could be found again.
        "tools/call" if asked.what() == "broken" => Answer::Bytes(events("id: e1\ndata:\n\n")),
        "tools/call" => text(asked, asked.what()),
        "subscriptions/listen" => Answer::Silence(events(": wait\n\n")),
        _ => return refuse("404 Not Found", -32601, "no such method"),
    })
}

fn count(seen: &Mutex<Vec<String>>, what: &str) -> usize {
    seen.lock().map_or(0, |seen| seen.iter().filter(|line| *line == what).count())
}

#[tokio::test]
async fn refused_handshake_falls_back_over_http() {
    let (server, seen) = serve(alone).await;
    let connected = connect(server).await.unwrap();
    let connection = connected.connection("s").unwrap();
    assert_eq!(connection.instructions().await.as_deref(), Some("Stand alone."));
    assert_eq!(call(&connected, "hello").await, Ok(json!("hello")));
    assert_eq!(
        call(&connected, "refused").await,
        Err("wrong arguments: steps must be positive".to_owned())
    );
    assert_eq!(
        call(&connected, "ask").await,
        Err("s: the server's roots/list was refused: this client does not support it".to_owned())
    );
    assert_eq!(
        call(&connected, "task").await,
        Err("s: the result has an unknown resultType".to_owned())
    );
    assert_eq!(
        call(&connected, "broken").await,
        Err("s: the server ended its response without the answer".to_owned())
    );
    let unknown = connection.request("resources/list", json!({})).await.unwrap_err();
    assert_eq!((unknown.kind(), unknown.code()), (ErrorKind::Rejected, Some(-32601)));
    assert_eq!(connection.warnings(), Vec::<String>::new());
    connected.close().await;
    assert_eq!((count(&seen, "POST initialize"), count(&seen, "POST server/discover")), (1, 1));
    assert_eq!((count(&seen, "GET"), count(&seen, "DELETE")), (0, 0));
    assert_eq!(count(&seen, "POST notifications/initialized"), 0);
}

/// This version has no cancellation message over HTTP.
#[tokio::test]
async fn dropped_call_only_closes_its_response() {
    let (server, seen) = serve(alone).await;
    let connected = connect(server.stateless()).await.unwrap();
    assert_eq!(count(&seen, "POST initialize"), 0);
    let started = async {
        while count(&seen, "POST tools/callsilence") == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        said = call(&connected, "silence") => panic!("{said:?}"),
        () = started => {}
    }
    assert!(eventually(|| count(&seen, "gone") == 1).await, "{seen:?}");
    assert_eq!(call(&connected, "next").await, Ok(json!("next")));
    assert_eq!(count(&seen, "POST notifications/cancelled"), 0);
    connected.close().await;
}

/// The list is read again, too, because changes in between are not announced.
#[tokio::test]
async fn broken_subscription_is_renewed() {
    let (lists, streams) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (listed, opened) = (Arc::clone(&lists), Arc::clone(&streams));
    let (server, _) = serve(move |asked| match asked.body["method"].as_str() {
        Some("subscriptions/listen") => {
            let filter = &asked.body["params"]["notifications"];
            assert_eq!(*filter, json!({ "toolsListChanged": true }));
            let acknowledged = event(&json!({
                "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {},
            }));
            Some(match opened.fetch_add(1, Ordering::Relaxed) {
                0 => Answer::Bytes(events(&acknowledged)),
                _ => Answer::Silence(events(&acknowledged)),
            })
        }
        Some("tools/list") => {
            listed.fetch_add(1, Ordering::Relaxed);
            let name = if opened.load(Ordering::Relaxed) < 2 { "do" } else { "grown" };
            let tools = json!([{ "name": name, "inputSchema": { "type": "object" } }]);
            Some(result(asked, &json!({ "resultType": "complete", "tools": tools })))
        }
        _ => alone(asked),
    })
    .await;
    let connected = connect(server).await.unwrap();
    while tool(&connected, "s__grown").is_none() {
        let changed = tokio::time::timeout(Duration::from_secs(20), connected.changed()).await;
        assert!(changed.is_ok(), "{lists:?} {streams:?}");
    }
    connected.close().await;
}

/// A proxy in front of a server that is away answers for it. The first call after that brings the subscription back.
#[tokio::test]
async fn subscription_returns_after_a_call() {
    let streams = Arc::new(AtomicUsize::new(0));
    let opened = Arc::clone(&streams);
    let (server, seen) = serve(move |asked| match asked.body["method"].as_str() {
        Some("subscriptions/listen") => Some(match opened.fetch_add(1, Ordering::Relaxed) {
            0..3 => status("502 Bad Gateway", "text/html", "<html>"),
            _ => Answer::Silence(events(": hello\n\n")),
        }),
        _ => alone(asked),
    })
    .await;
    let connected = connect(server.stateless()).await.unwrap();
    let warnings = || connected.connection("s").unwrap().warnings();
    assert!(eventually(|| !warnings().is_empty()).await);
    assert!(warnings()[0].contains("until the next call"), "{:?}", warnings());
    assert_eq!(streams.load(Ordering::Relaxed), 3, "{seen:?}");
    assert_eq!(call(&connected, "next").await, Ok(json!("next")));
    assert!(eventually(|| streams.load(Ordering::Relaxed) == 4).await, "{seen:?}");
    connected.close().await;
}

/// The tool `do` with an argument that is repeated in the header `Mcp-Param-<name>`.
fn marked(name: &str) -> Value {
    let what = json!({ "type": "string", "x-mcp-header": name });
    json!({ "name": "do", "inputSchema": { "type": "object", "properties": { "what": what } } })
}

#[tokio::test]
async fn marked_arguments_are_sent_in_headers() {
    let (server, _) = serve(|asked| match asked.body["method"].as_str() {
        Some("tools/list") => {
            let (mut other, mut twice) = (marked("a b"), marked("Other"));
            (other["name"], twice["name"]) = ("invalid".into(), "twice".into());
            twice["inputSchema"]["items"] = json!({ "x-mcp-header": "Other" });
            let tools = json!([marked("What"), other, twice]);
            Some(result(asked, &json!({ "resultType": "complete", "tools": tools })))
        }
        Some("tools/call") => {
            let header = asked.header("mcp-param-what").unwrap_or("none").to_owned();
            Some(text(asked, &header))
        }
        _ => alone(asked),
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "eu-north").await, Ok(json!("eu-north")));
    assert_eq!(call(&connected, " eu").await, Ok(json!("=?base64?igv1?=")));
    let none = call_with(&connected, json!({}), ToolContext::new("c", "s__do")).await;
    assert_eq!(none, Ok(json!("none")));
    // The model need not know of it, and a tool whose calls would be refused is left out.
    assert_eq!(
        connected.tools()[0].input_schema()["properties"]["what"],
        json!({ "type": "string" })
    );
    assert_eq!(
        connected.connection("s").unwrap().warnings(),
        [
            "the tool invalid is left out: its x-mcp-header is not the name of a header",
            "the tool twice is left out: its x-mcp-header marks more than properties",
        ]
    );
    connected.close().await;
}

/// A server refuses a call without the headers that it wants now, before it runs the call.
#[tokio::test]
async fn refused_headers_reload_the_list() {
    let lists = Arc::new(AtomicUsize::new(0));
    let listed = Arc::clone(&lists);
    let (server, seen) = serve(move |asked| match asked.body["method"].as_str() {
        Some("tools/list") => {
            let name = ["Old", "New"][usize::from(listed.fetch_add(1, Ordering::Relaxed) > 0)];
            let tools = json!([marked(name)]);
            Some(result(asked, &json!({ "resultType": "complete", "tools": tools })))
        }
        Some("tools/call")
            if asked.what() == "never" || asked.header("mcp-param-new") != Some(asked.what()) =>
        {
            let error = json!({ "code": -32020, "message": "headers" });
            let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
            Some(status("400 Bad Request", "application/json", &body.to_string()))
        }
        _ => alone(asked),
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "eu").await, Ok(json!("eu")));
    assert_eq!((count(&seen, "POST tools/calleu"), lists.load(Ordering::Relaxed)), (2, 2));
    // With the same marks, the call would be refused again.
    assert_eq!(call(&connected, "never").await, Err("headers (code -32020)".to_owned()));
    assert_eq!((count(&seen, "POST tools/callnever"), lists.load(Ordering::Relaxed)), (1, 3));
    connected.close().await;
}

/// Earlier versions have no such headers, and no rules about the marks.
#[tokio::test]
async fn sessions_have_no_headers_of_arguments() {
    let (server, _) = serve(|asked| {
        assert_eq!(asked.header("mcp-param-what"), None);
        let tools =
            json!([marked("What"), { "name": "odd", "inputSchema": { "x-mcp-header": 5 } }]);
        (asked.body["method"] == "tools/list").then(|| result(asked, &json!({ "tools": tools })))
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "eu").await, Ok(json!("eu")));
    assert!(tool(&connected, "s__odd").is_some());
    connected.close().await;
}

#[tokio::test]
async fn refused_handshake_falls_back_over_stdio() {
    let connected = crate::support::connect(scripted("stateless")).await.unwrap();
    assert_eq!(call(&connected, "envelope").await, Ok(json!("2026-07-28 {}")));
    assert_eq!(call(&connected, "change").await, Ok(json!("changed")));
    let grown = || tool(&connected, "s__grown").is_some();
    assert!(eventually(grown).await);
    assert_eq!(connected.connection("s").unwrap().warnings(), Vec::<String>::new());
    connected.close().await;

    let asks =
        scripted("stateless").on_elicitation(|_, _| async { ElicitationAnswer::Accept(json!({})) });
    let connected = crate::support::connect(asks).await.unwrap();
    assert_eq!(connected.connection("s").unwrap().warnings(), Vec::<String>::new());
    let heard = call(&connected, "ask form").await.unwrap();
    assert!(heard.as_str().is_some_and(|heard| heard.contains("-32601")), "{heard}");
    connected.close().await;
}

#[tokio::test]
async fn servers_without_the_version_are_errors() {
    let refuse = |asked: &Asked, code: i64, message: &str| {
        let error = json!({ "code": code, "message": message });
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
        status("400 Bad Request", "application/json", &body.to_string())
    };
    let (server, seen) = serve(move |asked| {
        (asked.body["method"] == "server/discover").then(|| refuse(asked, -32601, "what is that?"))
    })
    .await;
    let error = connect(server.clone().stateless()).await.unwrap_err();
    assert_eq!(error.to_string(), "s: server/discover: what is that?");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Connect, Some(-32601)));
    // With the handshake, it works, and is never asked.
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "hello").await, Ok(json!("hello")));
    connected.close().await;
    assert_eq!(count(&seen, "POST server/discover"), 1);

    // A refusal of both is that of the first.
    let (server, seen) = serve(move |asked| match asked.body["method"].as_str() {
        Some("initialize") => Some(refuse(asked, -32602, "log in first")),
        Some("server/discover") => Some(refuse(asked, -32601, "what is that?")),
        _ => None,
    })
    .await;
    let error = connect(server).await.unwrap_err();
    assert!(error.to_string().contains("status 400 Bad Request"), "{error}");
    assert!(error.to_string().contains("log in first"), "{error}");
    assert_eq!((error.kind(), error.status()), (ErrorKind::Connect, Some(400)));
    assert_eq!(count(&seen, "POST server/discover"), 1);

    // One that knows neither of our versions names its own.
    let (server, _) = serve(move |asked| match asked.body["method"].as_str() {
        Some("server/discover") => {
            Some(result(asked, &json!({ "supportedVersions": ["2099-01-01"], "capabilities": {} })))
        }
        _ => None,
    })
    .await;
    let error = connect(server.stateless()).await.unwrap_err();
    assert!(error.to_string().contains("the server speaks version 2099-01-01"), "{error}");
}
