//! Any sequence of messages gets exactly one answer for each request, in valid JSON-RPC, for any mix of versions and
//! any changes of the tools.

use std::collections::HashMap;
use std::time::Duration;

use oa_tools::{LogLevel, Registry, tool};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{InMemory, call, cancel, hello, limits, request, server, watched};

#[derive(Clone, Debug)]
enum Said {
    Cancel(i64),
    /// Valid or not, with an id.
    Request(Value),
    /// A notice or an answer, which is not answered.
    Unanswered(Value),
    Garbage(String),
    Hello(i64),
    /// No message: the tools change.
    Change,
}

/// A request of the version without a handshake, or of none.
fn stateless() -> impl Strategy<Value = Value> {
    let methods = prop::sample::select(vec![
        "server/discover",
        "tools/list",
        "tools/call",
        "subscriptions/listen",
        "ping",
    ]);
    let versions = prop::sample::select(vec![json!("2026-07-28"), json!("2099-01-01"), json!(7)]);
    let filters = prop::sample::select(vec![
        json!({ "toolsListChanged": true }),
        json!({}),
        json!([]),
        Value::Null,
    ]);
    let tools = prop::sample::select(vec!["echo", "slow", "block", "none"]);
    let capabilities = prop::sample::select(vec![json!({}), json!({}), json!({}), Value::Null]);
    (1..6_i64, methods, versions, filters, tools, capabilities).prop_map(
        |(id, method, version, filter, tool, capabilities)| {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": capabilities,
                "io.modelcontextprotocol/logLevel": "debug",
                "progressToken": id,
            });
            let params = json!({
                "_meta": meta, "name": tool, "notifications": filter, "arguments": { "text": "a" },
            });
            request(id, method, params)
        },
    )
}

fn said() -> impl Strategy<Value = Said> {
    let id = 1..6_i64;
    let tools = prop::sample::select(vec!["echo", "quick", "slow", "panic", "block", "none"]);
    let arguments = prop::sample::select(vec![
        json!({ "text": "a" }),
        json!({ "text": 5 }),
        json!({}),
        json!([]),
        json!("{}"),
        Value::Null,
        json!(7),
    ]);
    let methods = prop::sample::select(vec![
        "ping",
        "tools/list",
        "logging/setLevel",
        "initialize",
        "tools/call",
        "none",
        "",
    ]);
    let params = prop::sample::select(vec![
        json!({}),
        Value::Null,
        json!([]),
        json!("x"),
        json!({ "cursor": "x" }),
        json!({ "level": "debug" }),
        json!({ "name": 7 }),
        json!({ "protocolVersion": 1 }),
    ]);
    let garbage = prop::sample::select(vec![
        "{",
        "[]",
        "[1]",
        "7",
        "null",
        "\"x\"",
        "{}",
        "{\"id\":null}",
        "\u{0}",
        "{\"jsonrpc\":\"2.0\"}",
    ]);
    prop_oneof![
        8 => (id.clone(), tools.clone(), arguments.clone())
            .prop_map(|(id, tool, arguments)| Said::Request(call(id, tool, arguments))),
        3 => (id.clone(), tools, arguments)
            .prop_map(|(id, tool, arguments)| Said::Request(watched(id, tool, arguments))),
        3 => (id.clone(), methods.clone(), params.clone())
            .prop_map(|(id, method, params)| Said::Request(request(id, method, params))),
        1 => (id.clone(), methods.clone()).prop_map(|(id, method)| {
            Said::Request(json!({ "id": id, "method": method }))
        }),
        1 => id.clone().prop_map(|id| Said::Request(json!({ "jsonrpc": "2.0", "id": id, "method": 7 }))),
        6 => stateless().prop_map(Said::Request),
        1 => Just(Said::Change),
        2 => id.clone().prop_map(Said::Cancel),
        1 => id.clone().prop_map(Said::Hello),
        1 => (methods, params).prop_map(|(method, params)| {
            Said::Unanswered(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
        }),
        1 => id.prop_map(|id| Said::Unanswered(json!({ "jsonrpc": "2.0", "id": id, "result": {} }))),
        1 => garbage.prop_map(|text| Said::Garbage(text.to_owned())),
        1 => "[^\n]{0,20}".prop_map(Said::Garbage),
    ]
}

/// Says all of it, closes the input, and returns every message of the server.
async fn converse(says: &[Said]) -> Vec<Value> {
    let tools = [
        tool("echo", "Echo").param("text", "string").build(|args| async move {
            tokio::task::yield_now().await;
            Ok(args["text"].clone())
        }),
        tool("quick", "Quick").build(|_| async { Ok(json!({ "a": [1] })) }),
        tool("slow", "Slow").build_with_context(|_, cx| async move {
            for step in 1..=5_u64 {
                cx.emit_progress((step, 5));
                cx.emit_log("step");
                tokio::time::sleep(Duration::from_millis(step)).await;
            }
            Ok(Value::Null)
        }),
        tool("panic", "Panic").build(|_| async { panic!("on purpose") }),
        tool("block", "Block").build_blocking(|_| Ok(json!("blocked"))),
    ];
    let few = limits(|limits| limits.calls = 4);
    let offered = server(tools.clone());
    let handle = offered.handle();
    let mut client = InMemory::start(offered.limits(few));
    for said in says {
        match said {
            Said::Cancel(id) => client.send(&cancel(*id)).await,
            Said::Garbage(text) => client.send_text(text).await,
            Said::Hello(id) => client.send(&hello(*id)).await,
            Said::Request(message) | Said::Unanswered(message) => client.send(message).await,
            Said::Change => {
                let registry = Registry::from_tools(tools.clone());
                handle.set_tools(registry.unwrap_or_else(|error| panic!("{error}")));
                handle.log(LogLevel::Error, "changed");
            }
        }
    }
    client.close().await;
    let mut messages = Vec::new();
    loop {
        match client.next().await {
            Value::Null => return messages,
            message => messages.push(message),
        }
    }
}

fn check(says: &[Said], messages: &[Value]) -> Result<(), TestCaseError> {
    let mut asked: HashMap<i64, usize> = HashMap::new();
    let mut canceled: HashMap<i64, usize> = HashMap::new();
    let mut unknown = 0;
    for said in says {
        match said {
            Said::Cancel(id) => *canceled.entry(*id).or_default() += 1,
            Said::Hello(id) => *asked.entry(*id).or_default() += 1,
            Said::Request(message) => {
                let id = message["id"].as_i64().unwrap_or_default();
                *asked.entry(id).or_default() += 1;
            }
            Said::Unanswered(_) | Said::Change => {}
            Said::Garbage(_) => unknown += 1,
        }
    }
    let mut answered: HashMap<i64, usize> = HashMap::new();
    let mut without_id = 0;
    for message in messages {
        prop_assert_eq!(&message["jsonrpc"], "2.0");
        if message.get("method").is_some() {
            prop_assert!(message.get("id").is_none(), "{}", message);
            continue;
        }
        let (result, error) = (message.get("result"), message.get("error"));
        prop_assert!(result.is_some() != error.is_some(), "{}", message);
        if let Some(error) = error {
            prop_assert!(error["code"].is_i64() && error["message"].is_string(), "{}", message);
        }
        match &message["id"] {
            Value::Null => without_id += 1,
            id => *answered.entry(id.as_i64().unwrap_or_default()).or_default() += 1,
        }
    }
    for (id, count) in &answered {
        prop_assert!(asked.get(id).is_some_and(|asked| count <= asked), "{} too often", id);
    }
    // A request whose id is in use is refused without it; a canceled call is not answered.
    let missing: usize =
        asked.iter().map(|(id, asked)| asked - answered.get(id).copied().unwrap_or_default()).sum();
    let most_canceled: usize = canceled.values().sum();
    prop_assert!(missing <= without_id + most_canceled, "{} requests without an answer", missing);
    prop_assert!(without_id <= unknown + missing, "{} answers without a request", without_id);
    if canceled.is_empty() {
        let blank = says
            .iter()
            .filter(|said| matches!(said, Said::Garbage(text) if text.trim().is_empty()));
        prop_assert!(without_id + blank.count() >= unknown + missing, "garbage without an answer");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn each_request_has_exactly_one_answer(
        greets in prop::bool::weighted(0.9),
        mut says in prop::collection::vec(said(), 0..24),
    ) {
        if greets {
            says.insert(0, Said::Hello(0));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let messages = runtime.block_on(converse(&says));
        check(&says, &messages)?;
    }
}
