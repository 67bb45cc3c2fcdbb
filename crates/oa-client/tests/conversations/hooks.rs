//! Hooks in a conversation: when they run, and what happens when one blocks or fails.

use std::sync::Arc;
use std::time::Duration;

use oa_client::{AgentOptions, Client, ErrorKind};
use oa_hooks::{HookDecision, HookError, Hooks, PostToolUseEvent, PreToolUseEvent};
use oa_testkit::Reply;
use oa_types::{ContentBlock, FinishReason, ImageBlock, Message};
use serde_json::json;
use tokio::sync::Semaphore;

use suite::talk::{
    Log, adder, auto, client, echo, failing, manual, read, read_on, slow, strict, talk, told,
};

fn one_call() -> Reply {
    Reply::new().call_with_id("1", "add", json!({"a": 1, "b": 2}))
}

fn three_calls() -> Reply {
    Reply::new()
        .call_with_id("1", "slow", json!({}))
        .call_with_id("2", "quick", json!({}))
        .call_with_id("3", "fails", json!({}))
}

#[tokio::test]
async fn prompt_hooks_skip_continuations() {
    let server =
        strict([one_call(), Reply::text("Done."), Reply::text("Again."), Reply::text("A cat.")]);
    let log = Log::default();
    let noted = log.clone();
    let hooks = Hooks::new().add_user_prompt_submit(move |event| {
        noted.note(format!("{:?} after {}", event.prompt, event.history.len()));
        async { None }
    });
    let mut client = client(manual(&server).tool(adder()).hooks(hooks));
    talk(&mut client, "Add.").await;
    client.add_tool_result("1", json!(3)).unwrap();
    client.continue_turn().await.unwrap();
    read(&mut client).await;
    client.history_mut().pop();
    client.send("").await.unwrap();
    assert_eq!(read(&mut client).await, ["Again."]);
    let picture = ImageBlock::from_url("http://localhost/cat.png").unwrap();
    client.send_message(Message::user_with_image("What is it?", picture)).await.unwrap();
    read(&mut client).await;
    assert_eq!(log.lines(), [r#""Add." after 0"#, r#""What is it?" after 4"#]);
}

#[tokio::test]
async fn blocked_prompts_leave_history_untouched() {
    let server = strict([Reply::text("Hello.")]);
    let hooks = Hooks::new().add_user_prompt_submit(|event| async move {
        event.prompt.contains("secret").then(|| HookDecision::block("no secrets"))
    });
    let mut client = client(manual(&server).hooks(hooks).max_turns(1));
    let error = client.send("A secret.").await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), {
        (ErrorKind::Blocked, "a hook blocked the prompt: no secrets")
    });
    assert_eq!((client.history().len(), client.turn_metadata().turns), (0, 0));
    assert_eq!(read(&mut client).await.len(), 0);
    // It did not count, and the client is ready.
    assert_eq!(talk(&mut client, "Hi.").await, ["Hello."]);
}

#[tokio::test]
async fn changed_prompts_keep_their_images() {
    let server = strict([Reply::text("A cat.")]);
    let hooks = Hooks::new().add_user_prompt_submit(|event| async move {
        Some(HookDecision::modify_prompt(format!("{} Please.", event.prompt), "be polite"))
    });
    let mut client = client(manual(&server).hooks(hooks));
    let picture = ImageBlock::from_url("http://localhost/cat.png").unwrap();
    client.send_message(Message::user_with_image("What is it?", picture)).await.unwrap();
    assert_eq!(read(&mut client).await, ["A cat."]);
    assert_eq!(client.history()[0].text(), "What is it? Please.");
    assert_eq!(
        server.requests()[0].messages()[0]["content"],
        json!([
            {"type": "text", "text": "What is it? Please."},
            {"type": "image_url", "image_url": {"url": "http://localhost/cat.png"}},
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn broken_prompt_hooks_reject_the_prompt() {
    let failing = Hooks::new()
        .try_add_user_prompt_submit(|_| async { Err(HookError::new("the list of words is gone")) });
    let panicking = Hooks::new().add_user_prompt_submit(|event| async move {
        assert!(event.prompt.is_empty(), "a bug in the hook");
        None
    });
    let hanging = Hooks::new()
        .add_user_prompt_submit(|_| async { std::future::pending().await })
        .with_timeout(Duration::from_secs(5));
    for hooks in [failing, panicking, hanging] {
        let server = strict([]);
        let mut client = client(manual(&server).hooks(hooks));
        let error = client.send("Hi.").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Hook, "{error}");
        assert_eq!((client.history().len(), client.turn_metadata().turns), (0, 0));
        assert_eq!(read(&mut client).await.len(), 0);
    }
}

/// Post hooks see results as they complete.
#[tokio::test(start_paused = true)]
async fn pre_hooks_run_before_any_call_starts() {
    let log = Log::default();
    let (before, after) = (log.clone(), log.clone());
    let hooks = Hooks::new()
        .add_pre_tool_use(move |PreToolUseEvent { tool_name, history, .. }| {
            before.note(format!("may {tool_name} run? {}", history.len()));
            async { None }
        })
        .add_post_tool_use(move |event: PostToolUseEvent| {
            let mut blocks = event.history.iter().flat_map(|message| &message.content);
            let stands = blocks.any(|block| match block {
                ContentBlock::ToolResult(result) => result.tool_use_id == event.tool_use_id,
                _ => false,
            });
            after.note(format!(
                "{} {}, stands in history: {stands}",
                event.tool_name, event.outcome
            ));
            async { None }
        });
    let server = strict([three_calls(), Reply::text("Done.")]);
    let time = Duration::from_millis;
    let options = auto(&server).tool(slow("slow", time(90))).tool(slow("quick", time(30)));
    let mut client = client(options.tool(failing("fails")).hooks(hooks));
    let seen = talk(&mut client, "Go.").await;
    assert_eq!(
        log.lines(),
        [
            "may slow run? 2",
            "may quick run? 2",
            "may fails run? 2",
            "fails failed, stands in history: true",
            "quick ok, stands in history: true",
            "slow ok, stands in history: true",
        ]
    );
    // They are still shown and recorded in history, in call order.
    assert_eq!(seen[3..6], [r#"1="slept""#, r#"2="slept""#, "3?the disk is full"]);
    assert!(told(client.history())[4].starts_with("tool: 3!"));
}

#[tokio::test]
async fn blocked_calls_do_not_stop_the_others() {
    let server = strict([
        Reply::new().call_with_id("1", "add", json!({"a": 1, "b": 2})).call_with_id(
            "2",
            "add",
            json!({"a": 3, "b": 4}),
        ),
        Reply::text("Done."),
    ]);
    let hooks = Hooks::new().add_pre_tool_use(|event| async move {
        (event.tool_input["a"] == 1).then(|| HookDecision::block("ones are not added"))
    });
    let mut client = client(auto(&server).tool(adder()).hooks(hooks));
    assert_eq!(
        talk(&mut client, "Add.").await[2..],
        [
            "1?a hook blocked the call: ones are not added",
            r#"1!{"error":"a hook blocked the call","tool":"add","reason":"ones are not added"}"#,
            "2=7.0",
            "Done.",
        ]
    );
}

#[tokio::test]
async fn changed_input_runs_but_is_not_recorded() {
    let server = strict([one_call(), Reply::text("Done.")]);
    let log = Log::default();
    let noted = log.clone();
    let hooks = Hooks::new()
        .add_pre_tool_use(|_| async {
            Some(HookDecision::modify_input(json!({"a": 20, "b": 1}), "sandbox"))
        })
        .add_post_tool_use(move |event| {
            noted.note(event.tool_input.to_string());
            async { None }
        });
    let mut client = client(auto(&server).tool(adder()).hooks(hooks));
    let seen = talk(&mut client, "Add.").await;
    assert_eq!(seen, [r#"[1 add {"a":1,"b":2}]"#, "1=21.0", "Done."]);
    assert_eq!(told(client.history())[1], r#"assistant: [1 add {"a":1,"b":2}]"#);
    assert_eq!(log.lines(), [r#"{"a":20,"b":1}"#]);
}

#[tokio::test]
async fn changed_results_reach_caller_and_model() {
    let server = strict([one_call(), Reply::text("Done.")]);
    let hooks = Hooks::new().add_post_tool_use(|_| async {
        Some(HookDecision::modify_result(json!("****"), "masked"))
    });
    let mut client = client(auto(&server).tool(adder()).hooks(hooks));
    assert_eq!(talk(&mut client, "Add.").await[1], r#"1="****""#);
    assert_eq!(server.requests()[1].messages()[2]["content"], "****");
}

/// One that panics blocks the call instead.
#[tokio::test]
async fn failing_pre_hooks_end_the_turn() {
    let server = strict([one_call(), Reply::text("Done.")]);
    let failing = Hooks::new().try_add_pre_tool_use(|_| async { Err(HookError::new("no policy")) });
    let mut careful: Client = client(auto(&server).tool(adder()).hooks(failing));
    careful.send("Add.").await.unwrap();
    let (seen, error) = read_on(&mut careful).await;
    assert_eq!((seen.len(), error.unwrap().kind()), (1, ErrorKind::Hook));
    let last = told(careful.history()).pop().unwrap();
    assert!(last.starts_with("tool: 1!") && last.contains("not run"), "{last}");
    // The results are last, so the conversation can continue.
    careful.continue_turn().await.unwrap();
    assert_eq!(read(&mut careful).await, ["Done."]);

    let server = strict([one_call(), Reply::text("Pity.")]);
    let panicking = Hooks::new().add_pre_tool_use(|event| async move {
        assert!(event.tool_name.is_empty(), "a bug in the hook");
        None
    });
    let mut client = client(auto(&server).tool(adder()).hooks(panicking));
    let seen = talk(&mut client, "Add.").await;
    assert!(seen[1].starts_with("1?a hook blocked the call"), "{seen:?}");
    assert_eq!(seen[3], "Pity.");
}

/// The result of the call is kept.
#[tokio::test]
async fn failing_post_hooks_end_the_turn() {
    let failing =
        Hooks::new().try_add_post_tool_use(|_| async { Err(HookError::new("the log is full")) });
    let panicking = Hooks::new().add_post_tool_use(|event| async move {
        assert!(event.tool_name.is_empty(), "a bug in the hook");
        None
    });
    for hooks in [failing, panicking] {
        let server = strict([one_call(), Reply::text("Done.")]);
        let mut client = client(auto(&server).tool(adder()).hooks(hooks));
        client.send("Add.").await.unwrap();
        let (_, error) = read_on(&mut client).await;
        assert_eq!(error.unwrap().kind(), ErrorKind::Hook);
        assert_eq!(told(client.history())[2], "tool: 1=3.0");
        client.continue_turn().await.unwrap();
        assert_eq!(read(&mut client).await, ["Done."]);
    }
}

#[tokio::test(start_paused = true)]
async fn tool_hooks_time_out() {
    let time = Duration::from_secs(5);
    let pre = Hooks::new().add_pre_tool_use(|_| async { std::future::pending().await });
    let post = Hooks::new().add_post_tool_use(|_| async { std::future::pending().await });
    for hooks in [pre.with_timeout(time), post.with_timeout(time)] {
        let server = strict([one_call()]);
        let mut client = client(auto(&server).tool(adder()).hooks(hooks));
        client.send("Add.").await.unwrap();
        let start = tokio::time::Instant::now();
        assert_eq!(read_on(&mut client).await.1.unwrap().kind(), ErrorKind::Hook);
        assert_eq!(start.elapsed(), time);
        assert_eq!(client.history().len(), 3);
    }
}

/// A hook that returns `continue_` leaves the decision to the next one.
#[tokio::test]
async fn the_first_decision_wins() {
    let server = strict([one_call(), Reply::text("Done.")]);
    let hooks = Hooks::new()
        .add_pre_tool_use(|_| async { Some(HookDecision::continue_()) })
        .add_pre_tool_use(|_| async { Some(HookDecision::block("first")) })
        .add_pre_tool_use(|_| async { Some(HookDecision::block("second")) });
    let mut client = client(auto(&server).tool(adder()).hooks(hooks));
    assert_eq!(talk(&mut client, "Add.").await[1], "1?a hook blocked the call: first");
}

#[tokio::test(start_paused = true)]
async fn post_hooks_see_every_outcome() {
    let log = Log::default();
    let noted = log.clone();
    let hooks = Hooks::new()
        .add_pre_tool_use(|event| async move {
            (event.tool_use_id == "denied").then(|| HookDecision::block("no"))
        })
        .add_post_tool_use(move |event| {
            noted.note(format!("{} {}", event.tool_use_id, event.outcome));
            async { None }
        });
    let server = strict([
        Reply::new()
            .call_with_id("broken", "add", "{")
            .call_with_id("denied", "add", json!({"a": 1, "b": 2}))
            .call_with_id("unknown", "sub", json!({}))
            .call_with_id("fits not", "add", json!({}))
            .call_with_id("fine", "add", json!({"a": 1, "b": 2})),
        Reply::new().call_with_id("late", "add", json!({"a": 1, "b": 2})),
        Reply::new().call_with_id("slow", "slow", json!({})),
        Reply::text("Done."),
    ]);
    let options = auto(&server).tool(adder()).tool(slow("slow", Duration::from_secs(9)));
    let mut client = client(options.hooks(hooks).max_tool_iterations(1));
    talk(&mut client, "Go.").await;
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(
        lines,
        [
            "broken malformed",
            "denied blocked",
            "fine ok",
            "fits not invalid_input",
            "late not_run",
            "unknown unknown_tool",
        ]
    );
    // A canceled call is reported before the next request.
    client.send("On.").await.unwrap();
    suite::talk::interrupt_after(&client, Duration::from_secs(1));
    read(&mut client).await;
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    talk(&mut client, "On.").await;
    assert_eq!(log.lines()[6..], ["slow cancelled"]);
}

/// They run when the turn continues, before its request.
#[tokio::test]
async fn post_hooks_review_manual_results() {
    let log = Log::default();
    let noted = log.clone();
    let hooks = Hooks::new().add_post_tool_use(move |event| {
        noted.note(format!("{}={} {}", event.tool_use_id, event.tool_result, event.outcome));
        async { Some(HookDecision::modify_result(json!("seen"), "")) }
    });
    let server = strict([
        Reply::new().call_with_id("1", "echo", json!({})).call_with_id("2", "echo", json!({})),
        Reply::text("Done."),
    ]);
    let mut client = client(manual(&server).tool(echo()).hooks(hooks));
    talk(&mut client, "Go.").await;
    client.add_tool_result("2", json!("b")).unwrap();
    client.add_tool_error("1", "a").unwrap();
    assert_eq!(log.lines().len(), 0);
    client.continue_turn().await.unwrap();
    assert_eq!(
        log.lines(),
        [r#"2="b" ok"#, r#"1={"error":"a","tool":"echo"} failed"#],
        "in the order in which they came"
    );
    let sent = server.requests()[1].clone();
    let sent: Vec<_> = sent.messages()[2..].iter().map(|message| &message["content"]).collect();
    assert_eq!(sent, ["seen", "seen"]);
}

/// Hides what the model must not read.
fn redacting() -> Hooks {
    Hooks::new().add_post_tool_use(|event| async move {
        let is_secret = event.tool_result.as_str().is_some_and(|text| text.contains("hunter2"));
        is_secret.then(|| HookDecision::modify_result(json!("****"), "a secret"))
    })
}

#[tokio::test]
async fn edited_history_does_not_bypass_hooks() {
    type Change = fn(&AgentOptions, Client) -> Client;
    let changes: [(&str, Change); 4] = [
        ("a message is changed", |_, mut client| {
            client.history_mut()[0] = Message::user("Hello.");
            client
        }),
        ("messages are left out", |_, mut client| {
            client.history_mut().drain(..2);
            client
        }),
        ("another message follows", |_, mut client| {
            client.history_mut().push(Message::user("And be brief."));
            client
        }),
        ("another program goes on", |options, client| {
            Client::resume(options.clone(), client.history().to_vec()).unwrap()
        }),
    ];
    for (what, change) in changes {
        let call = Reply::new().call_with_id("1", "echo", json!({"say": "a"})).call_with_id(
            "2",
            "echo",
            json!({"say": "b"}),
        );
        let server = strict([Reply::text("Hi."), call, Reply::text("Done.")]);
        let options = manual(&server).tool(echo()).hooks(redacting()).build().unwrap();
        let mut client = Client::new(options.clone()).unwrap();
        talk(&mut client, "Hi.").await;
        talk(&mut client, "Go.").await;
        client.add_tool_result("1", json!("fine")).unwrap();
        client.add_tool_result("2", json!("the password is hunter2")).unwrap();
        let mut client = change(&options, client);
        client.continue_turn().await.unwrap();
        read(&mut client).await;
        let sent = server.requests().pop().unwrap();
        let sent = String::from_utf8_lossy(sent.body()).into_owned();
        assert!(sent.contains("fine") && sent.contains("****"), "{what}: {sent}");
        assert!(!sent.contains("hunter2"), "{what}: {sent}");
        assert!(told(client.history()).iter().all(|line| !line.contains("hunter2")), "{what}");
    }
}

#[tokio::test]
async fn edited_results_are_reviewed() {
    let call = Reply::new().call_with_id("1", "echo", json!({"say": "a"}));
    let server = strict([call, Reply::text("Done.")]);
    let mut client = client(manual(&server).tool(echo()).hooks(redacting()));
    talk(&mut client, "Go.").await;
    client.add_tool_result("1", json!("fine")).unwrap();
    if let Some(ContentBlock::ToolResult(result)) =
        client.history_mut().last_mut().and_then(|message| message.content.first_mut())
    {
        result.content = json!("hunter2");
    }
    client.continue_turn().await.unwrap();
    read(&mut client).await;
    assert!(told(client.history())[2].contains("****"), "{:?}", told(client.history()));
}

/// Blocks call 3, and notes each call; call 1 waits for the permit.
fn waiting(log: &Log, permit: &Arc<Semaphore>) -> Hooks {
    let (noted, permit) = (log.clone(), Arc::clone(permit));
    Hooks::new().add_pre_tool_use(move |event: PreToolUseEvent| {
        noted.note(event.tool_use_id.clone());
        let permit = Arc::clone(&permit);
        async move {
            if event.tool_use_id == "1" {
                drop(permit.acquire().await);
            }
            (event.tool_use_id == "3").then(|| HookDecision::block("no"))
        }
    })
}

/// Receives until nothing but the hook is left to wait for.
async fn wait_for_hook(client: &mut Client) {
    let waits = tokio::time::timeout(Duration::from_millis(1), client.receive()).await;
    assert!(waits.is_err(), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_behind_an_answered_one_are_decided() {
    let (log, permit) = (Log::default(), Arc::new(Semaphore::new(0)));
    let two = Reply::new().call_with_id("1", "echo", json!({}));
    let server = strict([two.call_with_id("2", "echo", json!({}))]);
    let mut client = client(manual(&server).tool(echo()).hooks(waiting(&log, &permit)));
    client.send("Go.").await.unwrap();
    wait_for_hook(&mut client).await;
    client.add_tool_result("1", json!("a")).unwrap();
    // The hook has no permit, and nothing waits for it any more.
    assert_eq!(read_on(&mut client).await.0, ["[1 echo {}]", "[2 echo {}]"]);
    assert_eq!(log.lines(), ["1", "2"]);
    assert!(client.finish_reason().is_some() && client.pending_calls().len() == 1);
}

#[tokio::test(start_paused = true)]
async fn late_decisions_reach_no_later_call() {
    let (log, permit) = (Log::default(), Arc::new(Semaphore::new(0)));
    let server = strict([
        Reply::new().call_with_id("1", "echo", json!({})),
        Reply::new().call_with_id("3", "echo", json!({})),
    ]);
    let mut client = client(manual(&server).tool(echo()).hooks(waiting(&log, &permit)));
    client.send("Go.").await.unwrap();
    wait_for_hook(&mut client).await;
    client.add_tool_result("1", json!("a")).unwrap();
    assert!(client.receive().await.unwrap().is_some(), "the call");
    assert!(client.next_event().await.unwrap().is_some(), "the end");
    client.continue_turn().await.unwrap();
    permit.add_permits(1);
    read_on(&mut client).await;
    assert_eq!(log.lines(), ["1", "3"]);
    let last = told(client.history()).pop().unwrap();
    assert!(last.contains("no"), "{last}");
}
