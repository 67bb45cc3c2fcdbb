//! Calls of external tools: they pass the same gates as others, and their results come from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oa_client::{AgentOptions, Client, ErrorKind};
use oa_hooks::{HookDecision, Hooks, Permission, PermissionMode, ToolRule};
use oa_testkit::{MemoryServer, Reply};
use oa_tools::tool;
use oa_turn::{Decision, drive};
use oa_types::{ContentBlock, FinishReason, Message, Outcome};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::opened::{agent, strict, tools};

fn with_external(server: &MemoryServer) -> AgentOptions {
    let ask = tool("ask_user", "Asks").param("question", "string").external();
    agent(server).tool(ask).build().expect("the test is set up")
}

pub(crate) fn asks() -> MemoryServer {
    let question = json!({ "question": "Which?" });
    let both =
        Reply::new().call_with_id("1", "ask_user", question).call_with_id("2", "add", json!({}));
    strict([both, Reply::text("Blue it is.")])
}

#[tokio::test]
async fn external_tools_wait_for_results() {
    let server = asks();
    let mut client = Client::new(with_external(&server)).unwrap();
    let reply = client.ask("Paint it.").await.unwrap();
    assert_eq!(reply.finish_reason, FinishReason::WaitsForResults);
    let pending = client.pending_calls();
    assert_eq!((pending.len(), &*pending[0].name), (1, "ask_user"));
    assert_eq!(pending[0].input, json!({ "question": "Which?" }));
    let early = client.continue_turn().await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::InvalidInput);
    let other = client.add_tool_result("2", json!("no")).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::InvalidInput, "it has run");
    client.add_tool_result("1", json!("Blue.")).unwrap();
    assert!(client.pending_calls().is_empty());
    client.continue_turn().await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(client.history().last().unwrap().text(), "Blue it is.");
    server.verify();
}

#[tokio::test]
async fn external_calls_wait_through_restarts() {
    let server = asks();
    let mut client = Client::new(with_external(&server)).unwrap();
    client.ask("Paint it.").await.unwrap();
    let stored = serde_json::to_string(client.history()).unwrap();
    drop(client);
    let messages: Vec<Message> = serde_json::from_str(&stored).unwrap();
    let mut client = Client::resume(with_external(&server), messages).unwrap();
    assert_eq!(client.pending_calls().len(), 1);
    assert!(client.pending_approvals().is_empty());
    client.add_tool_error("1", "nobody is there").unwrap();
    client.continue_turn().await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(client.history().last().unwrap().text(), "Blue it is.");
    server.verify();
}

/// History does not record whether a call was allowed, so it waits for approval again.
#[tokio::test]
async fn resumed_external_calls_need_approval() {
    let server = asks();
    let asked = Arc::new(AtomicUsize::new(0));
    let options = |server: &MemoryServer| {
        let ask = tool("ask_user", "Asks").param("question", "string").external();
        let (options, asked) = (agent(server).tool(ask), Arc::clone(&asked));
        let options = options.tool_rule(ToolRule::allow("add")).can_use_tool(move |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            async { Permission::Later }
        });
        options.build().unwrap()
    };
    let mut client = Client::new(options(&server)).unwrap();
    let reply = client.ask("Paint it.").await.unwrap();
    assert_eq!(reply.finish_reason, FinishReason::ApprovalPending);
    let messages = client.history().to_vec();
    drop(client);
    let mut client = Client::resume(options(&server), messages).unwrap();
    assert!(client.pending_calls().is_empty(), "nobody has allowed it");
    let waiting: Vec<_> = client.pending_approvals().into_iter().map(|call| call.id).collect();
    assert_eq!(waiting, ["1", "2"]);
    client.add_tool_result("1", json!("Blue.")).unwrap_err();
    for id in waiting {
        client.approve(&id).unwrap();
    }
    client.continue_turn().await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(client.finish_reason(), Some(&FinishReason::WaitsForResults));
    assert_eq!(client.pending_calls().len(), 1);
    client.add_tool_result("1", json!("Blue.")).unwrap();
    client.continue_turn().await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(client.history().last().unwrap().text(), "Blue it is.");
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the approval has answered the question");
    server.verify();
}

/// Hooks of other tools do not make a stored call wait for approval.
#[tokio::test]
async fn allowed_external_calls_resume_waiting() {
    let server = asks();
    let options = |server: &MemoryServer| {
        let ask = tool("ask_user", "Asks").param("question", "string").external();
        let hooks = Hooks::new().add_pre_tool_use(|_| async { None }).for_tools(["add"]);
        let options = agent(server).tool(ask).hooks(hooks).tool_rule(ToolRule::deny("search"));
        options.build().unwrap()
    };
    let mut client = Client::new(options(&server)).unwrap();
    client.ask("Paint it.").await.unwrap();
    let messages = client.history().to_vec();
    let mut client = Client::resume(options(&server), messages).unwrap();
    assert!(client.pending_approvals().is_empty());
    client.add_tool_result("1", json!("Blue.")).unwrap();
    client.continue_turn().await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    server.verify();
}

#[tokio::test]
async fn manual_mode_has_all_calls_pending() {
    let server = asks();
    let ask = tool("ask_user", "Asks").param("question", "string").external();
    let options = AgentOptions::builder().model("any").transport(server.clone()).tools(tools());
    let mut client = Client::new(options.tool(ask).build().unwrap()).unwrap();
    client.ask("Paint it.").await.unwrap();
    assert_eq!(client.pending_calls().len(), 2);
    for call in client.pending_calls() {
        client.add_tool_result(&call.id, json!("ok")).unwrap();
    }
    client.continue_turn().await.unwrap();
}

/// Returns the result of a call, as the model reads it.
fn result(messages: &[Message], id: &str) -> Value {
    let mut blocks = messages.iter().flat_map(|message| &message.content);
    let result = blocks.find_map(|block| match block {
        ContentBlock::ToolResult(result) if result.tool_use_id == id => Some(&result.content),
        _ => None,
    });
    result.cloned().unwrap_or_default()
}

async fn read(client: &mut Client) {
    while client.receive().await.expect("nothing fails").is_some() {}
}

/// Nobody is asked about a call that does not match its schema, and it never reaches the caller.
#[tokio::test]
async fn invalid_external_calls_are_answered() {
    let server = || {
        let bad = Reply::new().call_with_id("1", "pay", json!({ "amount": "much" }));
        strict([bad, Reply::text("I see.")])
    };
    let options = |server: &MemoryServer| {
        let pay = tool("pay", "Pays").param("amount", "number").external();
        let options = agent(server).tool(pay).can_use_tool(|_| async { Permission::Later });
        options.build().expect("the test is set up")
    };
    let by_client = server();
    let mut client = Client::new(options(&by_client)).unwrap();
    let reply = client.ask("Pay.").await.unwrap();
    assert_eq!((&*reply.text, reply.finish_reason), ("I see.", FinishReason::Stop));
    let error = result(client.history(), "1");
    assert_eq!(error["error"], "invalid arguments");
    assert!(error["reason"].as_str().unwrap().contains("amount"), "{error}");
    by_client.verify();

    let by_steps = server();
    let options = options(&by_steps);
    let mut turn = options.turn();
    turn.prompt(Message::user("Pay.")).unwrap();
    assert_eq!(drive(&mut turn, &options.steps()).await.unwrap(), FinishReason::Stop);
    assert_eq!(turn.history().to_vec(), client.history());
}

/// A call that a hook has blocked or changed is handed out after a restart only once the hook has seen it again.
#[tokio::test]
async fn resumed_external_calls_pass_hooks_again() {
    let mail = |to: &str| json!({ "to": to });
    let both = Reply::new()
        .call_with_id("1", "mail", mail("all"))
        .call_with_id("2", "mail", mail("a"))
        .call_with_id("3", "add", json!({}));
    let server = strict([both, Reply::text("Done.")]);
    let options = |server: &MemoryServer| {
        let hooks = Hooks::new().add_pre_tool_use(|event| async move {
            match event.tool_input["to"].as_str() {
                Some("all") => Some(HookDecision::block("too many")),
                Some("a") => Some(HookDecision::modify_input(json!({ "to": "b" }), "moved")),
                _ => None,
            }
        });
        let mail = tool("mail", "Sends").param("to", "string").external();
        let options = agent(server).tool(mail).hooks(hooks).tool_rule(ToolRule::ask("add"));
        options.build().expect("the test is set up")
    };
    let mut client = Client::new(options(&server)).unwrap();
    let reply = client.ask("Write.").await.unwrap();
    assert_eq!(reply.finish_reason, FinishReason::ApprovalPending);
    let messages = client.history().to_vec();
    drop(client);
    let mut client = Client::resume(options(&server), messages).unwrap();
    assert!(client.pending_calls().is_empty(), "no hook has seen them");
    client.add_tool_result("1", json!("sent")).unwrap_err();
    for id in ["1", "2", "3"] {
        client.approve(id).unwrap();
    }
    assert!(client.pending_calls().is_empty(), "no hook has seen them");
    client.continue_turn().await.unwrap();
    read(&mut client).await;
    let pending = client.pending_calls();
    assert_eq!(pending.len(), 1, "{pending:?}");
    assert_eq!((&*pending[0].id, &pending[0].input), ("2", &mail("b")));
    assert_eq!(result(client.history(), "1")["reason"], "too many");
    client.add_tool_result("2", json!("sent")).unwrap();
    client.continue_turn().await.unwrap();
    read(&mut client).await;
    server.verify();
}

fn transfers() -> MemoryServer {
    strict([
        Reply::new().call_with_id("1", "transfer", json!({ "amount": 10 })),
        Reply::text("I see."),
    ])
}

fn with_transfer(server: &MemoryServer) -> AgentOptions {
    let transfer = tool("transfer", "Transfers").param("amount", "number").external();
    let limit = ToolRule::deny("transfer").when(|input| input["amount"].as_f64() > Some(100.0));
    let options = agent(server).tool(transfer).tool_rule(limit);
    options.tool_rule(ToolRule::ask("transfer")).build().expect("the test is set up")
}

/// Deny rules and the mode override an approval, also of a call that is handed to the caller.
#[tokio::test]
async fn external_approvals_obey_rules_and_mode() {
    type Approve = fn(&mut Client);
    let cases: [(Approve, bool); 3] = [
        (|client| client.approve_with("1", json!({ "amount": 5000 })).unwrap(), false),
        (
            |client| {
                client.set_permission_mode(PermissionMode::Plan).unwrap();
                client.approve("1").unwrap();
            },
            false,
        ),
        (|client| client.approve_with("1", json!({ "amount": 20 })).unwrap(), true),
    ];
    for (approve, passes) in cases {
        let server = transfers();
        let mut client = Client::new(with_transfer(&server)).unwrap();
        let reply = client.ask("Go.").await.unwrap();
        assert_eq!(reply.finish_reason, FinishReason::ApprovalPending);
        approve(&mut client);
        assert!(client.pending_calls().is_empty(), "it was not checked again");
        client.continue_turn().await.unwrap();
        read(&mut client).await;
        assert_eq!(client.pending_calls().len(), usize::from(passes));
        if passes {
            assert_eq!(client.pending_calls()[0].input, json!({ "amount": 20 }));
            client.add_tool_result("1", json!("sent")).unwrap();
            client.continue_turn().await.unwrap();
            read(&mut client).await;
            assert_eq!(result(client.history(), "1"), "sent");
        } else {
            assert_eq!(result(client.history(), "1")["error"], "permission denied");
        }
        assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
        server.verify();
    }
}

/// The mode also overrides what was allowed before it changed, while somebody is asked about another call.
#[tokio::test(start_paused = true)]
async fn allowed_external_calls_obey_a_later_mode() {
    for (mode, passes) in [(PermissionMode::Plan, false), (PermissionMode::Ask, true)] {
        let answer = Reply::new()
            .call_with_id("1", "transfer", json!({ "amount": 10 }))
            .call_with_id("2", "add", json!({}));
        let server = strict([answer]);
        let asked = Arc::new(Notify::new());
        let answered = Arc::clone(&asked);
        let transfer = tool("transfer", "Transfers").param("amount", "number").external();
        let options = agent(&server).tool(transfer).tool_rule(ToolRule::allow("transfer"));
        let options = options.can_use_tool(move |_| {
            let answered = Arc::clone(&answered);
            async move {
                answered.notified().await;
                Permission::Later
            }
        });
        let mut client = Client::new(options.build().unwrap()).unwrap();
        client.send("Go.").await.unwrap();
        let nobody_answers = timeout(Duration::from_secs(1), read(&mut client)).await;
        assert!(nobody_answers.is_err() && client.pending_calls().is_empty());
        client.set_permission_mode(mode).unwrap();
        asked.notify_one();
        read(&mut client).await;
        assert_eq!(client.finish_reason(), Some(&FinishReason::ApprovalPending));
        assert_eq!(client.pending_approvals().len(), 1);
        assert_eq!(client.pending_calls().len(), usize::from(passes));
        if !passes {
            assert_eq!(result(client.history(), "1")["error"], "permission denied");
        }
        server.verify();
    }
}

#[tokio::test]
async fn stepped_external_approvals_obey_rules() {
    let server = transfers();
    let options = with_transfer(&server);
    let mut turn = options.turn();
    turn.prompt(Message::user("Go.")).unwrap();
    let steps = options.steps();
    assert_eq!(drive(&mut turn, &steps).await.unwrap(), FinishReason::ApprovalPending);
    turn.approve("1", Decision::Run(json!({ "amount": 5000 }))).unwrap();
    let prepared = |_: &str, input| Ok(input);
    turn.prepare_calls(prepared);
    turn.add_result("1", json!("sent"), Outcome::Ok).unwrap_err();
    turn.continue_turn().unwrap();
    assert_eq!(drive(&mut turn, &steps).await.unwrap(), FinishReason::Stop);
    assert_eq!(result(turn.history(), "1")["error"], "permission denied");
    server.verify();
}
