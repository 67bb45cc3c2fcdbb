//! Servers that send what they should not: names, events and values that would mislead or exhaust a client.

use std::time::Duration;

use oa_mcp::ErrorKind;
use oa_tools::{Emission, LogLevel, Tool as _};
use serde_json::{Value, json};

use crate::http::{Answer, Asked, connect, event, events, result, serve};
use crate::support::{CANARY, call, call_with, listening, with_limits};

/// Tools in place of the usual ones.
fn tools(asked: &Asked, tools: &Value) -> Option<Answer> {
    (asked.body["method"] == "tools/list").then(|| result(asked, &json!({ "tools": tools })))
}

#[tokio::test]
async fn long_tool_name_is_left_out() {
    let of = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let all = json!([of(&"x".repeat(1_025)), of(&"y".repeat(1_024)), of("do")]);
    let (server, _) = serve(move |asked| tools(asked, &all)).await;
    let connected = connect(server).await.unwrap();
    let names: Vec<_> = connected.tools().iter().map(|tool| tool.name().len()).collect();
    assert_eq!(names, ["s__do".len(), 64]);
    let warnings = connected.connection("s").unwrap().warnings();
    let why = "is left out: its name has more than 1024 bytes";
    assert!(warnings.len() == 1 && warnings[0].ends_with(why), "{warnings:?}");
    connected.close().await;
}

/// Names of a server that differ, but not as the model sees them.
#[tokio::test]
async fn colliding_names_are_printable_in_errors() {
    let mut seen = std::collections::HashMap::new();
    let collision = (0..1_u32 << 20).find_map(|bits| {
        let name: String = (0..20).map(|at| ["\u{1b}", "."][(bits >> at & 1) as usize]).collect();
        let other = seen.insert(oa_mcp_data::tool_name("s", &name), name.clone());
        other.map(|other| [other, name])
    });
    let of = |name: &String| json!({ "name": name, "inputSchema": { "type": "object" } });
    let all: Vec<_> = collision.unwrap().iter().map(of).collect();
    let (server, _) = serve(move |asked| tools(asked, &json!(all))).await;
    let error = connect(server).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(!error.to_string().contains('\u{1b}'), "{error}");
}

#[tokio::test]
async fn removed_tool_is_not_confused_with_ours() {
    let lists = std::sync::atomic::AtomicUsize::new(0);
    let (server, seen) = serve(move |asked| match asked.body["method"].as_str() {
        Some("initialize") => Some(result(
            asked,
            &json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {}, "resources": {} } }),
        )),
        Some("tools/list") => {
            let names = match lists.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => ["do", "read_resource"].as_slice(),
                _ => &["do"],
            };
            let of = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
            tools(asked, &names.iter().map(of).collect())
        }
        Some("tools/call") => {
            let change = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            let done = json!({ "content": [{ "type": "text", "text": "done" }] });
            let done = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": done });
            Some(Answer::Bytes(events(&(event(&change) + &event(&done)))))
        }
        _ => None,
    })
    .await;
    let connected = connect(server.resource_tools()).await.unwrap();
    let theirs = crate::support::tool(&connected, "s__read_resource").unwrap();
    assert_eq!(call(&connected, "change").await, Ok(json!("done")));
    tokio::time::timeout(Duration::from_secs(10), connected.changed()).await.unwrap();
    let ours = crate::support::tool(&connected, "s__read_resource").unwrap();
    assert_eq!(ours.description(), "Reads a resource of s");
    let calls = || seen.lock().unwrap().iter().filter(|it| it.contains("tools/call")).count();
    let removed = theirs.execute(json!({})).await.unwrap_err();
    assert!(removed.to_string().contains("no longer has this tool"), "{removed}");
    assert_eq!(calls(), 1);
    connected.close().await;
}

/// Some servers keep a stream open with events of their own.
#[tokio::test]
async fn events_of_other_types_are_not_messages() {
    let (server, _) = serve(|asked| {
        let done = json!({ "content": [{ "type": "text", "text": "done" }] });
        let done = event(&json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": done }));
        let pings = "event: ping\ndata: {}\n\n".repeat(200);
        (asked.what() == "ping").then(|| Answer::Bytes(events(&(pings + &done))))
    })
    .await;
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "ping").await, Ok(json!("done")));
    assert_eq!(connected.connection("s").unwrap().ignored(), oa_mcp::Ignored::default());
    connected.close().await;
}

/// A value takes much more memory than its text.
#[tokio::test]
async fn answer_of_many_values_fails_its_call() {
    let (server, _) = serve(|asked| {
        let many = json!({ "content": [], "structuredContent": { "a": vec![0; 1_000] } });
        (asked.what() == "many").then(|| result(asked, &many))
    })
    .await;
    let few = with_limits(|limits| limits.message_values = 1_000);
    let connected = connect(server.limits(few)).await.unwrap();
    let why = "s: the message has more than 1000 values";
    assert_eq!(call(&connected, "many").await, Err(why.to_owned()));
    assert_eq!(call(&connected, "on").await, Ok(json!("on")));
    connected.close().await;
}

/// Its call has run, so the result is kept, and what is wrong with it is told beside it.
#[tokio::test]
async fn mismatched_structured_content_is_logged() {
    let of_sum = json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] });
    let all =
        json!([{ "name": "do", "inputSchema": { "type": "object" }, "outputSchema": of_sum }]);
    let (server, _) = serve(move |asked| {
        let key = format!("query-{CANARY}");
        let with = |text: &str, sum: Value| {
            let content = json!([{ "type": "text", "text": text }]);
            Some(result(asked, &json!({ "content": content, "structuredContent": { "sum": sum } })))
        };
        match asked.what() {
            "right" => with("three", json!(3)),
            "wrong" => with("three", json!(key)),
            "same" => with(r#"{"sum":"3"}"#, json!("3")),
            "failed" => Some(result(
                asked,
                &json!({ "content": [], "structuredContent": { "why": "full" }, "isError": true }),
            )),
            _ => tools(asked, &all),
        }
    })
    .await;
    let connected = connect(server).await.unwrap();
    let what = "the structured content does not match the output schema";
    let mismatch =
        |found: &str| format!("{what}: `sum`: expected number, found string \"{found}\"");
    for (case, returned, told) in [
        ("right", Ok(json!("three")), None),
        ("wrong", Ok(json!("three")), Some(mismatch("****"))),
        ("same", Ok(json!({ "sum": "3" })), Some(mismatch("3"))),
        ("missing", Ok(json!("missing")), Some(format!("{what}: it is missing"))),
        ("failed", Err(r#"{"why":"full"}"#.to_owned()), None),
    ] {
        let (cx, seen) = listening();
        assert_eq!(call_with(&connected, json!({ "what": case }), cx).await, returned, "{case}");
        let log = |message| Emission::Log { level: LogLevel::Warn, message };
        let told: Vec<_> = told.into_iter().map(log).collect();
        assert_eq!(*seen.lock().unwrap(), told, "{case}");
    }
    connected.close().await;
}

/// A list that is read slowly, while it changes and is read again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn older_list_does_not_replace_a_newer_one() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let (is_new, is_slow) = (AtomicBool::new(false), std::sync::Arc::new(AtomicBool::new(false)));
    let slow = std::sync::Arc::clone(&is_slow);
    let (server, _) = serve(move |asked| {
        let of = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        match asked.body["method"].as_str() {
            Some("tools/list") if is_new.load(Ordering::SeqCst) => {
                tools(asked, &json!([of("do"), of("new")]))
            }
            Some("tools/list") => {
                if slow.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1_000));
                }
                tools(asked, &json!([of("do"), of("old")]))
            }
            Some("tools/call") => {
                is_new.store(true, Ordering::SeqCst);
                let change =
                    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                let done = json!({ "content": [{ "type": "text", "text": "done" }] });
                let done = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": done });
                Some(Answer::Bytes(events(&(event(&change) + &event(&done)))))
            }
            _ => None,
        }
    })
    .await;
    let mut pins = oa_mcp::Pins::new();
    pins.pin(
        "do",
        &oa_mcp_data::tool_hash(&json!({ "name": "do", "inputSchema": { "type": "object" } })),
    );
    let connected = connect(server.pins(pins)).await.unwrap();
    let connection = connected.connection("s").unwrap();
    let waiting = |name: &str| connection.unconfirmed().into_iter().find(|it| it.tool == name);
    is_slow.store(true, Ordering::SeqCst);
    let old = waiting("old").unwrap();
    let changing = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        call(&connected, "change").await
    };
    let (confirmed, changed) = tokio::join!(connection.confirm(&old), changing);
    assert_eq!((confirmed.is_ok(), changed), (true, Ok(json!("done"))));
    assert!(crate::support::eventually(|| waiting("new").is_some()).await);
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    let names: Vec<_> = connected.tools().iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["s__do"]);
    connected.close().await;
}
