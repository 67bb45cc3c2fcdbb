//! Manual mode: the caller supplies the results.

use oa_client::{AgentOptions, Client, ErrorKind};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{Cut, Reply, Script, SocketServer};
use oa_types::{ContentBlock, FinishReason};
use serde_json::json;

use suite::talk::{adder, client, echo, line, manual, read, read_on, stalling, strict, talk, told};

fn two_calls() -> Reply {
    Reply::text("I look.").call_with_id("1", "add", json!({"a": 1, "b": 2})).call_with_id(
        "2",
        "add",
        json!({"a": 3, "b": 4}),
    )
}

const CALLS: [&str; 3] = ["I look.", r#"[1 add {"a":1,"b":2}]"#, r#"[2 add {"a":3,"b":4}]"#];

/// A client that has received two calls and answered neither.
async fn asked(client: &mut Client) {
    assert_eq!(talk(client, "Add.").await, CALLS);
    assert_eq!(client.finish_reason(), Some(&FinishReason::ToolCalls));
}

#[tokio::test]
async fn caller_results_are_sent_in_call_order() {
    let server = strict([two_calls(), Reply::text("Done.")]);
    let mut client = client(manual(&server).tool(adder()));
    asked(&mut client).await;
    // The second call's result is given first but placed second.
    client.add_tool_error("2", "the calculator is broken").unwrap();
    client.add_tool_result("1", json!("three")).unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
    assert_eq!(
        told(client.history()),
        [
            "user: Add.",
            r#"assistant: I look. [1 add {"a":1,"b":2}] [2 add {"a":3,"b":4}]"#,
            r#"tool: 1="three""#,
            r#"tool: 2!{"error":"the calculator is broken","tool":"add"}"#,
            "assistant: Done.",
        ]
    );
    let sent = server.requests()[1].messages().to_vec();
    assert_eq!(
        sent[2],
        json!({"role": "tool", "content": "three", "tool_call_id": "1", "name": "add"})
    );
}

#[tokio::test]
async fn history_has_the_answer_at_stream_end() {
    let server = strict([two_calls()]);
    let mut client = client(manual(&server).tool(adder()));
    client.send("Add.").await.unwrap();
    let mut seen = Vec::new();
    while let Some(block) = client.receive().await.unwrap() {
        let recorded = client.history().len() == 2;
        assert_eq!(recorded, matches!(block, ContentBlock::ToolUse(_)), "{}", line(&block));
        seen.push(line(&block));
    }
    assert_eq!(seen.concat(), CALLS.concat());
}

#[tokio::test]
async fn empty_send_waits_for_the_last_result() {
    let server = strict([two_calls(), Reply::text("Done.")]);
    let mut client = client(manual(&server).tool(adder()));
    client.send("Add.").await.unwrap();
    let mut seen = Vec::new();
    while let Some(block) = client.receive().await.unwrap() {
        seen.push(line(&block));
        if let ContentBlock::ToolUse(call) = block {
            let answered = client.add_tool_result(&call.id, json!(0));
            answered.unwrap();
            client.send("").await.unwrap();
            let last = call.id == "2";
            assert_eq!(server.requests().len(), 1 + usize::from(last), "after {}", call.id);
        }
    }
    assert_eq!(seen.concat(), CALLS.concat() + "Done.");
}

#[tokio::test]
async fn empty_send_waits_beyond_the_block_stream() {
    let server = strict([two_calls(), Reply::text("Done.")]);
    let mut client = client(manual(&server).tool(adder()));
    client.send("Add.").await.unwrap();
    let mut wished = false;
    while let Some(block) = client.receive().await.unwrap() {
        if matches!(block, ContentBlock::ToolUse(_)) && !wished {
            wished = true;
            client.send("").await.unwrap();
        }
    }
    assert_eq!(server.requests().len(), 1, "two calls are open");
    client.add_tool_result("1", json!(3)).unwrap();
    assert_eq!(read(&mut client).await.len(), 0);
    client.add_tool_result("2", json!(7)).unwrap();
    assert_eq!(read(&mut client).await, ["Done."], "the wish holds");
}

#[tokio::test]
async fn a_pending_continuation_is_interruptible() {
    let server = strict([two_calls(), Reply::text("Well.")]);
    let mut client = client(manual(&server).tool(adder()));
    client.send("Add.").await.unwrap();
    while !matches!(client.receive().await.unwrap(), Some(ContentBlock::ToolUse(_))) {}
    client.send("").await.unwrap();
    read(&mut client).await;
    client.add_tool_result("1", json!(3)).unwrap();
    client.add_tool_result("2", json!(7)).unwrap();
    client.interrupt();
    assert_eq!(read(&mut client).await.len(), 0);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert_eq!(server.requests().len(), 1);
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Well."]);
}

#[tokio::test]
async fn continuing_twice_is_accepted() {
    for by_name in [false, true] {
        let server = strict([two_calls(), Reply::text("Done.")]);
        let mut client = client(manual(&server).tool(adder()));
        client.send("Add.").await.unwrap();
        while !matches!(client.receive().await.unwrap(), Some(ContentBlock::ToolUse(_))) {}
        client.send("").await.unwrap();
        assert_eq!(read(&mut client).await.len(), 1, "the other call");
        client.add_tool_result("1", json!(3)).unwrap();
        client.add_tool_result("2", json!(7)).unwrap();
        match by_name {
            true => client.continue_turn().await.unwrap(),
            false => client.send("").await.unwrap(),
        }
        assert_eq!(read(&mut client).await, ["Done."]);
    }
}

#[tokio::test]
async fn empty_send_needs_something_to_continue() {
    let server = strict([Reply::text("Hello.")]);
    let mut client = client(manual(&server));
    let error = client.send("").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    talk(&mut client, "Hi.").await;
    for error in [client.send("").await, client.continue_turn().await] {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(client.history().len(), 2);
}

#[tokio::test]
async fn continuing_names_the_open_calls() {
    let server = strict([two_calls(), Reply::text("Done.")]);
    let mut client = client(manual(&server).tool(adder()));
    asked(&mut client).await;
    client.add_tool_result("1", json!(3)).unwrap();
    for error in [client.continue_turn().await, client.send("").await] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "calls have no result yet: 2");
    }
    // Nothing is lost.
    client.add_tool_result("2", json!(7)).unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
}

#[tokio::test]
async fn results_need_an_open_call() {
    let server = strict([two_calls()]);
    let mut client = client(manual(&server).tool(adder()));
    let kind = |result: oa_client::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(client.add_tool_result("1", json!(3))), ErrorKind::InvalidInput);
    asked(&mut client).await;
    client.add_tool_result("1", json!(3)).unwrap();
    let before = told(client.history());
    assert_eq!(kind(client.add_tool_result("1", json!(4))), ErrorKind::InvalidInput);
    assert_eq!(kind(client.add_tool_error("1", "no")), ErrorKind::InvalidInput);
    assert_eq!(kind(client.add_tool_result("3", json!(4))), ErrorKind::InvalidInput);
    assert_eq!(kind(client.add_tool_error("", "no")), ErrorKind::InvalidInput);
    assert_eq!(told(client.history()), before);
}

#[tokio::test]
async fn auto_mode_rejects_caller_results() {
    let server = strict([two_calls(), Reply::text("Done.")]);
    let mut client = client(manual(&server).tool(adder()).auto_execute_tools(true));
    client.send("Add.").await.unwrap();
    while let Some(block) = client.receive().await.unwrap() {
        if let ContentBlock::ToolUse(call) = block {
            let error = client.add_tool_result(&call.id, json!(0)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    }
    assert_eq!(told(client.history())[2], "tool: 1=3.0");
}

#[tokio::test]
async fn new_prompts_close_open_calls_as_not_run() {
    let server = strict([two_calls(), Reply::text("All right.")]);
    let mut client = client(manual(&server).tool(adder()));
    asked(&mut client).await;
    client.add_tool_result("2", json!(7)).unwrap();
    assert_eq!(talk(&mut client, "Forget it.").await, ["All right."]);
    let told = told(client.history());
    assert!(told[2].starts_with("tool: 1!") && told[2].contains("not run"), "{}", told[2]);
    assert_eq!(told[3..5], ["tool: 2=7", "user: Forget it."]);
}

/// A prompt that fails has already closed them.
#[tokio::test]
async fn blocked_prompts_leave_calls_open() {
    let server = strict([two_calls(), Reply::error(400, "no"), Reply::text("Done.")]);
    let hooks = Hooks::new().add_user_prompt_submit(|event| async move {
        event.prompt.contains("secret").then(|| HookDecision::block("no secrets"))
    });
    let mut client = client(manual(&server).tool(adder()).hooks(hooks));
    asked(&mut client).await;
    assert_eq!(client.send("A secret.").await.unwrap_err().kind(), ErrorKind::Blocked);
    client.add_tool_result("1", json!(3)).unwrap();
    // The prompt is taken back. The other call's result for it currently is not.
    assert_eq!(client.send("Never mind.").await.unwrap_err().kind(), ErrorKind::Api);
    let told = told(client.history());
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[3].starts_with("tool: 2!") && told[3].contains("not run"), "{}", told[3]);
    assert!(client.add_tool_result("2", json!(7)).is_err());
    assert_eq!(talk(&mut client, "Never mind.").await, ["Done."]);
}

#[tokio::test]
async fn new_prompts_interrupt_unread_streams() {
    let script = Script::from([stalling(&["One,", " two"]), Reply::text("Sorry.")]);
    let server = SocketServer::start(script.strict()).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url());
    let mut client = client(options);
    client.send("Count.").await.unwrap();
    let first = client.receive().await.unwrap().map(|block| line(&block));
    assert_eq!(first.as_deref(), Some("One,"));
    assert_eq!(talk(&mut client, "Stop.").await, ["Sorry."]);
    let told = told(client.history());
    let kept = told[1].strip_prefix("assistant: ").unwrap();
    let kept = kept.strip_suffix(" (interrupted)").unwrap();
    assert!(kept == "One," || kept == "One, two", "{kept}");
    assert_eq!(told.len(), 4);
    let limit = std::time::Duration::from_secs(10);
    assert_eq!(server.wait_for_abort(limit).await.number(), 1);
}

#[tokio::test]
async fn unread_text_is_recorded() {
    let server = strict([stalling(&["One,", " two"]).cut(Cut::Whole), Reply::text("Sorry.")]);
    let mut client = client(manual(&server));
    client.send("Count.").await.unwrap();
    client.receive().await.unwrap();
    assert_eq!(talk(&mut client, "Stop.").await, ["Sorry."]);
    assert_eq!(told(client.history())[1], "assistant: One, two (interrupted)");
}

#[tokio::test]
async fn new_prompts_close_unread_calls() {
    let server = strict([two_calls(), Reply::text("All right.")]);
    let mut client = client(manual(&server).tool(adder()));
    client.send("Add.").await.unwrap();
    while !matches!(client.receive().await.unwrap(), Some(ContentBlock::ToolUse(_))) {}
    assert_eq!(talk(&mut client, "Forget it.").await, ["All right."]);
    assert_eq!(client.history().len(), 6, "{:?}", told(client.history()));
}

#[tokio::test]
async fn malformed_calls_stay_out_of_history() {
    let broken = |reply: Reply| reply.call_with_id("1", "add", r#"{"a": "#);
    let server = strict([
        broken(Reply::text("Hm.")).call_with_id("2", "add", json!({"a": 1, "b": 2})),
        broken(Reply::new()),
        Reply::text("Done."),
    ]);
    let mut client = client(manual(&server).tool(adder()));
    let seen = talk(&mut client, "Add.").await;
    assert!(seen[1].starts_with("1?"), "{seen:?}");
    assert_eq!(seen[2], r#"[2 add {"a":1,"b":2}]"#);
    assert_eq!(told(client.history())[1], r#"assistant: Hm. [2 add {"a":1,"b":2}]"#);
    client.add_tool_error("1", "broken").unwrap_err();
    client.add_tool_result("2", json!(3)).unwrap();
    // An answer with nothing else leaves nothing behind.
    client.continue_turn().await.unwrap();
    assert!(read(&mut client).await[0].starts_with("1?"));
    assert_eq!(client.history().len(), 3);
    assert_eq!(talk(&mut client, "Go on.").await, ["Done."]);
}

/// A call that a hook changed reaches the caller with its new input.
#[tokio::test]
async fn blocked_calls_need_no_result() {
    let server = strict([two_calls(), Reply::text("Done.")]);
    let hooks = Hooks::new().add_pre_tool_use(|event| async move {
        Some(match &*event.tool_use_id {
            "1" => HookDecision::block("ones are not added"),
            _ => HookDecision::modify_input(json!({"a": 0}), "sandbox"),
        })
    });
    let mut client = client(manual(&server).tool(adder()).hooks(hooks));
    assert_eq!(
        talk(&mut client, "Add.").await,
        [
            "I look.",
            "1?a hook blocked the call: ones are not added",
            r#"1!{"error":"a hook blocked the call","tool":"add","reason":"ones are not added"}"#,
            r#"[2 add {"a":0}]"#,
        ]
    );
    let error = client.continue_turn().await.unwrap_err();
    assert_eq!(error.to_string(), "calls have no result yet: 2");
    assert!(client.add_tool_result("1", json!(3)).is_err(), "it is answered");
    client.add_tool_result("2", json!(0)).unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
    // History keeps the model's own arguments.
    let own = r#"assistant: I look. [1 add {"a":1,"b":2}] [2 add {"a":3,"b":4}]"#;
    assert_eq!(told(client.history())[1], own);
}

#[tokio::test]
async fn turns_continue_if_all_calls_are_blocked() {
    let server = strict([two_calls(), Reply::text("Pity.")]);
    let hooks = Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::block("not today")) });
    let mut client = client(manual(&server).tool(adder()).hooks(hooks));
    assert_eq!(talk(&mut client, "Add.").await.len(), 5);
    client.send("").await.unwrap();
    assert_eq!(read(&mut client).await, ["Pity."]);
}

#[tokio::test]
async fn tools_are_found_by_name_and_run_alone() {
    let server = strict([]);
    let client = client(manual(&server).tool(adder()).tool(echo()));
    let add = client.get_tool("add").unwrap();
    assert_eq!(add.execute(json!({"a": 1, "b": 2})).await.unwrap(), json!(3.0));
    let error = add.execute(json!({"a": 1})).await.unwrap_err();
    let expected =
        "invalid arguments for the tool add: `b`: required, but missing; expected number";
    assert_eq!(error.to_string(), expected);
    assert!(client.get_tool("sub").is_none());
}

#[tokio::test]
async fn turns_continue_after_a_failed_round() {
    let server = strict([two_calls(), Reply::error(400, "broken"), Reply::text("Done.")]);
    let mut client = client(manual(&server).tool(adder()));
    asked(&mut client).await;
    client.add_tool_result("1", json!(3)).unwrap();
    client.add_tool_result("2", json!(7)).unwrap();
    assert_eq!(client.continue_turn().await.unwrap_err().kind(), ErrorKind::Api);
    assert_eq!(client.history().len(), 4);
    client.continue_turn().await.unwrap();
    assert_eq!(read_on(&mut client).await.0, ["Done."]);
}
