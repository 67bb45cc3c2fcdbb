//! Manual mode: the caller gets calls that every gate has seen, also in another program.

use oa_client::{AgentOptionsBuilder, Client};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{MemoryServer, Reply};
use serde_json::json;
use suite::talk::{Log, client, echo, manual, read, strict, talk, told};

use super::{calling_once, list};

/// In manual mode the caller runs what it finds there.
#[tokio::test]
async fn undecided_calls_are_not_pending() {
    let two =
        Reply::new().call_with_id("1", "echo", json!({})).call_with_id("2", "echo", json!({}));
    let hooks = Hooks::new().add_pre_tool_use(|event| async move {
        Some(HookDecision::modify_input(json!({ "as": event.tool_use_id }), "marked"))
    });
    let mut client = client(manual(&strict([two])).tool(echo()).hooks(hooks));
    client.send("Go.").await.unwrap();
    let pending = |client: &Client| -> Vec<_> {
        client.pending_calls().into_iter().map(|call| (call.id, call.input)).collect()
    };
    let marked = |id: &str| (id.to_owned(), json!({ "as": id }));
    assert!(client.receive().await.unwrap().is_some());
    assert_eq!(pending(&client), [marked("1")]);
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(pending(&client), [marked("1"), marked("2")]);
}

/// Another program has left them open, perhaps with other lists.
#[tokio::test]
async fn resumed_manual_calls_pass_the_lists() {
    let call = || calling_once(json!({}));
    let list = || list(&Log::default());
    let mut first = client(manual(&call()).tool(list()));
    talk(&mut first, "Go.").await;
    let history = first.history().to_vec();
    let options = |server: &MemoryServer| manual(server).tool(list()).tool(echo());
    let resumed = |options: AgentOptionsBuilder| {
        Client::resume(options.build().unwrap(), history.clone()).unwrap()
    };
    let server = strict([]);
    assert_eq!(resumed(options(&server)).pending_calls().len(), 1);
    for forbidding in
        [options(&server).disallowed_tools(["list"]), options(&server).allowed_tools(["echo"])]
    {
        let client = resumed(forbidding);
        assert!(client.pending_calls().is_empty());
        let last = told(client.history()).pop().unwrap();
        assert!(last.contains("this tool is not allowed"), "{last}");
    }
}

/// History does not say what a hook has decided, or whether it has seen the call at all.
#[tokio::test]
async fn resumed_manual_calls_pass_the_hooks() {
    let three = Reply::new()
        .call_with_id("1", "echo", json!({ "say": "a" }))
        .call_with_id("2", "list", json!({ "path": "/tmp" }))
        .call_with_id("3", "echo", json!({ "say": "no" }));
    let server = strict([three, Reply::text("Done."), Reply::text("Done.")]);
    let mut first = client(manual(&server).tool(echo()).tool(list(&Log::default())));
    talk(&mut first, "Go.").await;
    let hooks = Hooks::new().add_pre_tool_use(|event| async move {
        Some(match event.tool_input["say"].as_str() {
            Some("no") => HookDecision::block("not that"),
            _ => HookDecision::modify_input(json!({ "say": "A" }), "louder"),
        })
    });
    let hooks = hooks.for_tools(["echo"]);
    let options = manual(&server).tool(echo()).tool(list(&Log::default())).hooks(hooks);
    let history = first.history().to_vec();
    let mut client = Client::resume(options.build().unwrap(), history).unwrap();
    let pending = |client: &Client| -> Vec<_> {
        client
            .pending_calls()
            .into_iter()
            .map(|call| format!("{}{}", call.id, call.input))
            .collect()
    };
    let listing = r#"2{"path":"/tmp","page":{"size":20},"depth":2}"#;
    assert_eq!(pending(&client), [listing], "no hook applies to it");
    let blocked = r#"3!{"error":"a hook blocked the call","tool":"echo","reason":"not that"}"#;
    let shown = [r#"[1 echo {"say":"A"}]"#, "3?a hook blocked the call: not that", blocked];
    assert_eq!(read(&mut client).await, shown);
    assert_eq!(pending(&client), [r#"1{"say":"A"}"#, listing]);
    assert_eq!(read(&mut client).await, Vec::<String>::new(), "once");
    client.add_tool_result("1", json!("heard")).unwrap();
    client.add_tool_result("2", json!([])).unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);

    // A program that knows the result already needs no decision.
    let mut client = Client::resume(client.options().clone(), first.history().to_vec()).unwrap();
    for id in ["1", "2", "3"] {
        client.add_tool_result(id, json!("done before")).unwrap();
    }
    assert!(client.pending_calls().is_empty());
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
}
