//! A conversation as its user sees it: the usual path, and every method of a client.

use std::fmt::Write;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oa_chat::Provider;
use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client, ErrorKind, query};
use oa_executor::ExecutorOptions;
use oa_testkit::{MemoryServer, Reply, Script, SocketServer};
use oa_tools::tool;
use oa_types::{
    ContentBlock, FinishReason, ImageBlock, ImageDetail, Message, MessageRole, TextBlock,
    ToolResultBlock, ToolUseBlock,
};
use serde_json::json;

use suite::talk::{
    adder, auto, client, echo, line, manual, next, read, read_on, stalling, strict, talk, told,
};

/// The example of the usual path from the design, verbatim except for the address and the output.
async fn paved_path(base_url: String) -> Result<String, Box<dyn std::error::Error>> {
    let mut out = String::new();

    let options = AgentOptions::builder()
        .model("qwen3:8b")
        .base_url(base_url)
        .system_prompt("You are a calculator.")
        .tool(tool("add", "Add two numbers").param("a", "number").param("b", "number")
            .build(|args| async move { Ok(json!({ "sum": args["a"].as_f64().unwrap_or(0.0) + args["b"].as_f64().unwrap_or(0.0) })) }))
        .auto_execute_tools(true)
        .build()?;

    let mut client = Client::new(options)?;
    client.send("What is 25 + 17?").await?;
    while let Some(block) = client.receive().await? {
        match block {
            ContentBlock::Text(text) => write!(out, "{}", text.text)?,
            ContentBlock::ToolUse(call) => writeln!(out, "[{}({})]", call.name, call.input)?,
            _ => {}
        }
    }
    Ok(out)
}

#[tokio::test]
async fn the_paved_path_example_runs() {
    let script = Script::from([
        Reply::text("I add. ").call("add", json!({"a": 25, "b": 17})),
        Reply::text("It is 42."),
    ]);
    let server = SocketServer::start(script.strict()).await.unwrap();
    let out = paved_path(server.base_url() + "/").await.unwrap();
    assert_eq!(out, "I add. [add({\"a\":25,\"b\":17})]\nIt is 42.");
    let request = server.requests().pop().unwrap();
    assert_eq!((request.path(), request.model()), ("/v1/chat/completions", Some("qwen3:8b")));
    let system = json!({"role": "system", "content": "You are a calculator."});
    assert_eq!(request.messages()[0], system);
    assert_eq!(server.connections(), 1, "the rounds share a connection");
}

#[tokio::test]
async fn history_omits_the_system_prompt() {
    let server = strict([
        Reply::text("I add.").call_with_id("c", "add", json!({"a": 25, "b": 17})),
        Reply::text("It is 42."),
    ]);
    let mut client = client(auto(&server).tool(adder()).system_prompt("Be brief."));
    assert_eq!(talk(&mut client, "What is 25 + 17?").await.last().unwrap(), "It is 42.");
    let roles: Vec<_> = client.history().iter().map(|message| message.role).collect();
    use MessageRole::{Assistant, Tool, User};
    assert_eq!(roles, [User, Assistant, Tool, Assistant]);
    let request = server.requests().pop().unwrap();
    assert_eq!(request.messages().len(), 4, "system, and all but the answer");
}

/// Returns the events of a turn, one per line, without times.
async fn events(client: &mut Client) -> String {
    let mut lines = String::new();
    while let Some(event) = client.next_event().await.expect("nothing fails here") {
        let line = match event {
            AgentEvent::AnswerEnd(message) => {
                format!("answer ends: {} blocks, {}", message.content.len(), message.finish_reason)
            }
            AgentEvent::AnswerStart => "answer begins".to_owned(),
            AgentEvent::Block(block) => format!("block {}", line(&block)),
            AgentEvent::Tool(event) => {
                format!("{} {}", event.event_type(), event.call_id().unwrap_or_default())
            }
            AgentEvent::ToolUseDelta(piece) => {
                format!("piece of call {} {:?} {}", piece.call, piece.name, piece.arguments)
            }
            AgentEvent::TurnEnd(reason) => format!("turn ends: {reason}"),
            other => format!("{other:?}"),
        };
        writeln!(lines, "{}", line.trim_end()).expect("memory");
    }
    lines
}

#[tokio::test]
async fn every_event_of_a_turn_comes_in_order() {
    let server = strict([
        Reply::new()
            .think("hm")
            .say("I add.")
            .call_with_id("1", "add", json!({"a": 1, "b": 2}))
            .call_with_id("2", "sub", json!({})),
        Reply::text("It is 3."),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    client.send("Add.").await.unwrap();
    insta::assert_snapshot!(events(&mut client).await, @r#"
    answer begins
    block (hm)
    block I
    block  add.
    piece of call 0 Some("add")
    piece of call 0 None {"a":
    piece of call 0 None 1,"b"
    piece of call 0 None :2}
    piece of call 1 Some("sub")
    piece of call 1 None {
    piece of call 1 None }
    answer ends: 4 blocks, tool_calls
    block [1 add {"a":1,"b":2}]
    block [2 sub {}]
    tool_call_start 1
    tool_call_start 2
    tool_call_complete 2
    tool_call_complete 1
    tools_end
    block 1=3.0
    block 2?there is no such tool
    block 2!{"error":"there is no such tool","tool":"sub","available":["add"]}
    answer begins
    block It
    block  is
    block  3.
    answer ends: 1 blocks, stop
    turn ends: stop
    "#);
}

#[tokio::test]
async fn interrupted_turns_end_with_their_reason() {
    let server = strict([Reply::silence()]);
    let mut client = client(manual(&server));
    suite::talk::interrupt_after(&client, Duration::ZERO);
    client.send("Hi.").await.unwrap();
    assert_eq!(events(&mut client).await, "turn ends: interrupted\n");
}

#[tokio::test]
async fn the_stream_has_the_blocks_of_receive() {
    let server = strict([Reply::text("one two"), Reply::text("three")]);
    let mut client = client(manual(&server));
    client.send("Count.").await.unwrap();
    let mut stream = client.stream();
    let mut seen = Vec::new();
    while let Some(block) = next(&mut stream).await {
        seen.push(line(&block.unwrap()));
    }
    assert_eq!(next(&mut stream).await.map(|_| ()), None);
    assert_eq!(seen, ["one", " two"]);
    // It may be dropped midway, and reading continues.
    client.send("On.").await.unwrap();
    drop(client.stream());
    assert_eq!(read(&mut client).await, ["three"]);
}

#[tokio::test]
async fn ask_sends_and_collects() {
    let server = strict([
        Reply::text("I add. ").call("add", json!({"a": 1, "b": 2})).usage(5, 6),
        Reply::text("It is 3.").usage(7, 9),
        Reply::error(400, "no"),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    let reply = client.ask("Add.").await.unwrap();
    assert_eq!((&*reply.text, &reply.finish_reason), ("I add. It is 3.", &FinishReason::Stop));
    assert_eq!(reply.message.unwrap().text(), "It is 3.");
    assert_eq!(reply.usage.unwrap().total(), Some(16));
    assert_eq!(client.ask("More.").await.unwrap_err().kind(), ErrorKind::Api);
}

#[tokio::test]
async fn metadata_counts_turns_rounds_and_usage() {
    let server = strict([
        Reply::new().call("add", json!({"a": 1, "b": 2})).usage(5, 6),
        Reply::text("It is 3.").usage(7, 9),
        Reply::text("Hello.").without_usage().finish("length"),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    assert_eq!(client.turn_metadata(), oa_client::TurnMetadata::default());
    assert_eq!((client.finish_reason(), client.usage(), client.message()), (None, None, None));
    client.send("Add.").await.unwrap();
    assert_eq!(client.finish_reason(), None, "the turn goes on");
    let reply = client.collect_reply().await.unwrap();
    assert_eq!((reply.usage.unwrap().total(), reply.turn_usage.total()), (Some(16), Some(27)));
    let metadata = client.turn_metadata();
    assert_eq!((metadata.turns, metadata.rounds), (1, 1));
    assert_eq!(metadata.finish_reason, Some(FinishReason::Stop));
    assert_eq!(
        (metadata.usage.unwrap().total(), metadata.total_usage.total()),
        (Some(16), Some(27))
    );
    assert_eq!(metadata.total_usage.prompt_tokens, Some(12));
    assert_eq!(metadata.turn_usage, metadata.total_usage);
    assert_eq!(client.usage().unwrap().completion_tokens, Some(9));
    assert_eq!(client.message().unwrap().text(), "It is 3.");
    talk(&mut client, "Hi.").await;
    let metadata = client.turn_metadata();
    assert_eq!((metadata.turns, metadata.rounds), (2, 0));
    assert_eq!(metadata.usage.unwrap().total(), None, "the server said nothing");
    assert_eq!((metadata.turn_usage.total(), metadata.total_usage.total()), (None, Some(27)));
    assert_eq!(client.finish_reason(), Some(&FinishReason::Length));
}

#[tokio::test(start_paused = true)]
async fn usage_measures_first_token_and_speed() {
    let paced = Reply::text("One two three.").usage(5, 12).comment_every(1);
    let paced = paced.delay_first(Duration::from_secs(2)).delay(Duration::from_secs(1));
    let server = strict([paced, Reply::text("At once.").without_usage()]);
    let mut client = client(manual(&server));
    let usage = client.ask("Count.").await.unwrap().usage.unwrap();
    let (first, then) = (usage.time_to_first_token.unwrap(), usage.generation_time.unwrap());
    assert!(first >= Duration::from_secs(2) && then >= Duration::from_secs(1), "{usage:?}");
    assert_eq!(usage.tokens_per_second(), Some(12.0 / then.as_secs_f64()));
    let usage = client.ask("Again.").await.unwrap().usage.unwrap();
    assert_eq!(
        (usage.time_to_first_token, usage.tokens_per_second()),
        (Some(Duration::ZERO), None)
    );
    let total = client.turn_metadata().total_usage;
    assert_eq!((total.time_to_first_token, total.generation_time), (Some(first), Some(then)));
}

#[tokio::test]
async fn images_are_sent_as_content_parts() {
    let server = strict([Reply::text("Two cats.")]);
    let mut client = client(manual(&server));
    let picture = |data: &str| ImageBlock::from_base64(data, "image/png").unwrap();
    let prompt = Message::user_with_blocks(vec![
        TextBlock::new("Compare.").into(),
        picture("aGVsbG8=").with_detail(ImageDetail::Low).into(),
        picture("aGk=").into(),
    ]);
    client.send_message(prompt.clone()).await.unwrap();
    assert_eq!(read(&mut client).await, ["Two cats."]);
    assert_eq!(client.history()[0], prompt);
    assert_eq!(
        server.requests()[0].messages()[0]["content"],
        json!([
            {"type": "text", "text": "Compare."},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8=", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ])
    );
}

#[tokio::test]
async fn edited_history_is_repaired() {
    let server = strict([Reply::new().call_with_id("c", "echo", json!({})), Reply::text("Done.")]);
    let mut client = client(manual(&server).tool(echo()));
    talk(&mut client, "Go.").await;
    // Looking changes nothing: the call stays open.
    assert_eq!(client.history_mut().len(), 2);
    assert_eq!(client.history().len(), 2);
    {
        let mut history = client.history_mut();
        history.push(Message::tool(ToolResultBlock::new("nobody", json!("lost"))));
        history.push(Message::user("What now?"));
        let calls = vec![
            ToolUseBlock::new("d", "echo", json!({"say": 1})).into(),
            ToolUseBlock::new("e", "echo", json!({"say": 2})).into(),
        ];
        history.push(Message::assistant(calls));
        history.push(Message::tool(ToolResultBlock::new("e", json!("two"))));
    }
    assert_eq!(
        told(client.history()),
        [
            "user: Go.",
            "assistant: [c echo {}]",
            r#"tool: c!{"error":"unknown: no result was recorded, so the call may or may not have run","tool":"echo"}"#,
            "user: What now?",
            r#"assistant: [d echo {"say":1}] [e echo {"say":2}]"#,
            r#"tool: d!{"error":"unknown: no result was recorded, so the call may or may not have run","tool":"echo"}"#,
            r#"tool: e="two""#,
        ]
    );
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
}

#[tokio::test]
async fn edited_history_loses_empty_messages() {
    let server = strict([Reply::text("Done.")]);
    let mut client = client(manual(&server));
    {
        let mut history = client.history_mut();
        history.push(Message::user("Hi."));
        history.push(Message::assistant(vec![TextBlock::new("Hello.").into()]));
        history.push(Message::user(""));
        history.push(Message::assistant(vec![]));
    }
    assert_eq!(told(client.history()), ["user: Hi.", "assistant: Hello."]);
    assert_eq!(talk(&mut client, "On.").await, ["Done."]);
}

#[tokio::test]
async fn changing_history_ends_a_turn_in_progress() {
    let server = strict([stalling(&["one", " two"]), Reply::text("Done.")]);
    let mut client = client(manual(&server));
    client.send("Count.").await.unwrap();
    client.receive().await.unwrap();
    client.history_mut().push(Message::user("Stop."));
    let told = told(client.history());
    assert_eq!((told.len(), &*told[2]), (3, "user: Stop."));
    assert!(told[1].starts_with("assistant: one"), "{told:?}");
    assert_eq!(read(&mut client).await.len(), 0);
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
}

#[tokio::test]
async fn history_can_be_supplied_and_cleared() {
    let server = strict([Reply::text("Bob."), Reply::text("I don't know.")]);
    let earlier = vec![
        Message::user("I am Bob."),
        Message::assistant(vec![TextBlock::new("Hello.").into()]),
        Message::tool(ToolResultBlock::new("x", json!("stray"))),
    ];
    let options = manual(&server).build().unwrap();
    let mut client = Client::with_history(options, earlier).unwrap();
    assert_eq!(client.history().len(), 2);
    assert_eq!(client.continue_turn().await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(talk(&mut client, "Who am I?").await, ["Bob."]);
    client.clear_history();
    assert_eq!((client.history().len(), client.turn_metadata().turns), (0, 1));
    assert_eq!(talk(&mut client, "Who am I?").await, ["I don't know."]);
    assert_eq!(server.requests()[1].messages().len(), 1);
}

#[tokio::test]
async fn setters_apply_from_the_next_request() {
    let script = Script::from([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let server = MemoryServer::new(script.strict());
    let mut client = client(auto(&server).system_prompt("Be brief.").tool(adder()));
    talk(&mut client, "Hi.").await;
    client.set_model("other").unwrap();
    client.set_system_prompt("Be long.").unwrap();
    client.set_tools([echo()]).unwrap();
    talk(&mut client, "Hi.").await;
    client.set_system_prompt("").unwrap();
    client.set_tools(Vec::<oa_tools::FnTool>::new()).unwrap();
    talk(&mut client, "Hi.").await;
    let seen: Vec<String> = server
        .requests()
        .iter()
        .map(|request| {
            let tool = &request.json()["tools"][0]["function"]["name"];
            format!("{} {} {tool}", request.model().unwrap(), request.messages()[0]["content"])
        })
        .collect();
    assert_eq!(
        seen,
        [r#"any "Be brief." "add""#, r#"other "Be long." "echo""#, r#"other "Hi." null"#]
    );
    assert_eq!((client.options().model(), client.options().system_prompt()), ("other", None));
    // Invalid input changes nothing.
    assert_eq!(client.set_model(" ").unwrap_err().kind(), ErrorKind::Config);
    let error = client.set_tools([echo(), echo()]).unwrap_err();
    assert_eq!(error.to_string(), "Duplicate tool name: echo");
    assert_eq!((client.options().model(), client.options().tools().len()), ("other", 0));
}

#[tokio::test]
async fn thinking_is_set_between_prompts() {
    let server = MemoryServer::new([Reply::text("One."), Reply::text("Two."), Reply::text("No.")]);
    let options = manual(&server).provider(Provider::LmStudio).build().unwrap();
    let mut client = Client::new(options.clone()).unwrap();
    talk(&mut client, "Hi.").await;
    client.set_thinking("low").unwrap();
    client.change_parameters(|parameters| parameters.top_p = Some(0.5)).unwrap();
    talk(&mut client, "Hi.").await;
    assert_eq!(client.options().thinking(), Some(&"low".into()));
    let quick = options.with_thinking(false).unwrap();
    let quick = quick.with_parameters(|parameters| parameters.max_tokens = Some(9)).unwrap();
    query("Hi.", &quick).await.unwrap().text().await.unwrap();
    let sent = server.requests().into_iter().map(|request| {
        let members = ["reasoning_effort", "top_p", "max_tokens"];
        members.map(|name| request.json()[name].to_string()).join(" ")
    });
    let expected = ["null null null", r#""low" 0.5 null"#, r#""none" null 9"#];
    assert_eq!(sent.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn thinking_needs_a_provider() {
    let server = MemoryServer::new([Reply::text("One.")]);
    let mut client = client(manual(&server));
    assert_eq!(client.set_thinking(true).unwrap_err().kind(), ErrorKind::Config);
    assert_eq!(client.options().thinking(), None);
    assert_eq!(talk(&mut client, "Hi.").await, ["One."]);
}

/// Setting it has no effect while no turn runs.
#[tokio::test]
async fn interrupt_handle_stores_like_a_flag() {
    let server = strict([Reply::text("Hello."), Reply::silence()]);
    let mut client = client(manual(&server));
    let handle = client.interrupt_handle();
    handle.store(true, Ordering::SeqCst);
    client.interrupt();
    assert!(!handle.load(Ordering::SeqCst));
    assert_eq!(talk(&mut client, "Hi.").await, ["Hello."]);
    let other = handle.clone();
    tokio::spawn(async move {
        other.store(false, Ordering::SeqCst);
        other.store(true, Ordering::SeqCst);
    });
    client.send("Still there?").await.unwrap();
    assert_eq!(client.receive().await.unwrap(), None);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
}

#[tokio::test]
async fn a_missing_model_fails_at_the_first_send() {
    let server = strict([Reply::text("Hello.")]);
    let options = AgentOptions::builder().model("any").build().unwrap();
    let mut client = Client::with_transport(options, server.clone()).unwrap();
    assert_eq!(talk(&mut client, "Hi.").await, ["Hello."]);
    if std::env::var_os("OPEN_AGENT_MODEL").is_some() {
        // Once more in a process whose environment names no model.
        let test = concat!(module_path!(), "::a_missing_model_fails_at_the_first_send");
        let (_, test) = test.split_once("::").unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", test]).env_remove("OPEN_AGENT_MODEL").output().unwrap();
        let output = String::from_utf8_lossy(&output.stdout);
        return assert!(output.contains("test result: ok. 1 passed"), "{output}");
    }
    let server = strict([Reply::text("Hello.")]);
    let mut client = Client::with_transport(AgentOptions::default(), server).unwrap();
    let error = client.send("Hi.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("OPEN_AGENT_MODEL"), "{error}");
    assert!(client.history().is_empty());
    assert!(AgentOptions::builder().build().is_err());
    let unnamed = AgentOptions::builder().system_prompt("Be kind.").build_without_model().unwrap();
    assert_eq!((unnamed.model(), unnamed.with_model("b").unwrap().model()), ("", "b"));
    assert!(query("Hi.", &unnamed).await.unwrap_err().to_string().contains("OPEN_AGENT_MODEL"));
    client.set_model("any").unwrap();
    assert_eq!(talk(&mut client, "Hi.").await, ["Hello."]);
    let mut client = Client::new(AgentOptions::default()).unwrap();
    assert_eq!(client.continue_turn().await.unwrap_err().kind(), ErrorKind::Config);
}

#[test]
fn options_of_auto_mode_require_it() {
    type Set = fn(AgentOptionsBuilder) -> AgentOptionsBuilder;
    let options: [(&str, Set); 9] = [
        ("max_tool_calls_per_minute", |options| options.max_tool_calls_per_minute(3)),
        ("max_run_cost", |options| options.price(1.0, 1.0).max_run_cost(3.0)),
        ("max_tool_iterations", |options| options.max_tool_iterations(3)),
        ("max_tool_calls", |options| options.max_tool_calls(3)),
        ("max_run_tokens", |options| options.max_run_tokens(3)),
        ("repeat_guard", |options| options.repeat_guard(2)),
        ("last_answer_without_tools", |options| options.last_answer_without_tools(true)),
        ("final_text_only", |options| options.final_text_only(true)),
        ("executor", |options| options.executor(ExecutorOptions::new())),
    ];
    for (name, set) in options {
        let builder = || set(AgentOptions::builder().model("any"));
        let error = builder().build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert_eq!(error.to_string(), format!("{name} has no effect without auto_execute_tools"));
        builder().auto_execute_tools(true).build().unwrap();
    }
}

#[test]
fn getters_return_what_was_set() {
    let options = AgentOptions::builder()
        .model("any")
        .auto_execute_tools(true)
        .tool(adder())
        .max_tool_iterations(3)
        .max_turns(4)
        .max_tool_calls(6)
        .max_run_tokens(7)
        .max_run_time(8)
        .repeat_guard(None)
        .last_answer_without_tools(true)
        .final_text_only(true)
        .executor(ExecutorOptions::new().max_parallel(2))
        .state("shared")
        .build()
        .unwrap();
    assert!(options.auto_execute_tools() && options.last_answer_without_tools());
    assert!(options.final_text_only() && options.tool("add").is_some());
    assert_eq!((options.max_tool_iterations(), options.max_turns()), (3, Some(4)));
    assert_eq!((options.max_tool_calls(), options.max_run_tokens()), (Some(6), Some(7)));
    assert_eq!(options.max_run_time(), Some(Duration::from_secs(8)));
    assert_eq!((options.repeat_guard(), options.executor().max_parallel), (None, Some(2)));
    assert_eq!((options.state::<&str>(), options.state::<u8>()), (Some(&"shared"), None));
    let defaults = AgentOptions::builder().model("any").build().unwrap();
    assert_eq!((defaults.max_tool_iterations(), defaults.repeat_guard()), (5, Some(3)));
    assert_eq!((defaults.max_turns(), defaults.max_run_time()), (None, None));
    assert!(!defaults.auto_execute_tools() && !defaults.final_text_only());
}

#[tokio::test]
async fn clones_of_a_builder_are_independent() {
    let server = strict([Reply::text("Hello.")]);
    let base = manual(&server).system_prompt("Both.");
    let (one, two) = (base.clone().temperature(0.0).build().unwrap(), base.build().unwrap());
    assert_eq!((one.temperature(), two.temperature()), (Some(0.0), None));
    assert_eq!((one.system_prompt(), two.system_prompt()), (Some("Both."), Some("Both.")));
    Client::new(one).unwrap().ask("Hi.").await.unwrap();
    server.verify();

    let wrong = AgentOptions::builder().model("any").header("a header", "x");
    let errors = [wrong.clone(), wrong].map(|builder| builder.build().unwrap_err());
    assert_eq!(errors[0].kind(), ErrorKind::Config);
    assert_eq!(errors[0].to_string(), errors[1].to_string());
}

/// A program logs its own state, and its users' conversations would be in the log.
#[tokio::test]
async fn debug_of_a_client_hides_what_is_said() {
    let server = strict([Reply::text("A secret answer.")]);
    let mut client = client(manual(&server));
    client.ask("A secret prompt.").await.unwrap();
    let shown = format!("{client:?}");
    assert!(shown.contains("2 messages") && !shown.contains("secret"), "{shown}");
}

#[tokio::test]
async fn debug_of_a_client_hides_its_key() {
    let server = strict([Reply::text("Hello.")]);
    let mut client = client(manual(&server).api_key("sk-secret"));
    client.send("Hi.").await.unwrap();
    assert!(!format!("{client:?}").contains("sk-secret"));
    assert_eq!(read_on(&mut client).await.0, ["Hello."]);
}
