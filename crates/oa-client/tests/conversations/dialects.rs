//! Models without function calling: calls are text on the wire, and ordinary calls everywhere else.

use std::sync::Arc;

use oa_chat::{Endpoint, SystemRole, ToolMode};
use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client, ErrorKind, query};
use oa_fallback::{Dialect, Markers, React, TaggedJson};
use oa_testkit::{Cut, MemoryServer, Reply, Request, Script};
use oa_tools::FnTool;
use oa_types::{ContentBlock, FinishReason, Message, ToolUseBlock};
use serde_json::{Value, json};

use suite::talk::{adder, auto, client, echo, line, manual, read, rejections, stalling, talk};

/// The modes in which calls are text, and their dialects.
fn modes() -> Vec<(ToolMode, Arc<dyn Dialect>)> {
    vec![
        (ToolMode::React, Arc::new(React::new())),
        (ToolMode::Markers, Arc::new(Markers::new())),
        (ToolMode::TaggedJson, Arc::new(TaggedJson::new())),
        (ToolMode::Custom(Arc::new(React::new())), Arc::new(React::new())),
    ]
}

/// Returns the reply of a model that calls tools in a dialect.
fn says(dialect: &dyn Dialect, prose: &str, calls: &[(&str, Value)]) -> Reply {
    let calls = calls.iter().map(|(name, input)| {
        format!("{}\n", dialect.write_call(&ToolUseBlock::new("c", *name, input.clone())))
    });
    Reply::text(format!("{prose}\n{}", calls.collect::<String>()))
}

/// A strict server that plays these replies and, if its model has no tools, rejects them.
fn server(replies: impl IntoIterator<Item = Reply>) -> MemoryServer {
    let script = replies.into_iter().fold(Script::new(), Script::reply);
    MemoryServer::new(script.strict())
}

fn roles(request: &Request) -> Vec<&str> {
    request.messages().iter().filter_map(|message| message["role"].as_str()).collect()
}

/// The history without ids, which differ.
fn shape(history: &[Message]) -> Vec<String> {
    let block = |block: &ContentBlock| match block {
        ContentBlock::ToolUse(call) => format!("{}({})", call.name, call.input),
        ContentBlock::ToolResult(result) => format!("{:?}: {}", result.name, result.content),
        other => line(other),
    };
    let message = |message: &Message| {
        let blocks: Vec<_> = message.content.iter().map(block).collect();
        format!("{} {}", message.role.as_str(), blocks.join(" | "))
    };
    history.iter().map(message).collect()
}

#[tokio::test]
async fn every_mode_gives_the_same_history() {
    let add = |a: i64, b: i64| ("add", json!({"a": a, "b": b}));
    let native = server([
        Reply::new().say("I add.").call("add", json!({"a": 1, "b": 2})),
        Reply::new()
            .call("add", json!({"a": 3, "b": 4}))
            .call("echo", json!({"say": "\"x\", y\n"})),
        Reply::text("Done."),
        Reply::text("Hello."),
    ]);
    let mut first = client(auto(&native).tool(adder()).tool(echo()));
    talk(&mut first, "Add.").await;
    talk(&mut first, "Hi.").await;
    for (mode, dialect) in modes() {
        for cut in [Cut::Whole, Cut::Every(1), Cut::Random { seed: 7 }] {
            let tricky = ("echo", json!({"say": "\"x\", y\n"}));
            let replies = [
                says(&*dialect, "I add.", &[add(1, 2)]),
                says(&*dialect, "", &[add(3, 4), tricky]),
                Reply::text("Done."),
                Reply::text("Hello."),
            ];
            let server = server(replies.map(|reply| reply.cut(cut.clone())));
            let options = auto(&server).tool(adder()).tool(echo()).tool_mode(mode.clone());
            let mut client = client(options);
            let lines = talk(&mut client, "Add.").await;
            assert!(lines.iter().any(|line| line.contains("add")), "{mode:?}: {lines:?}");
            talk(&mut client, "Hi.").await;
            assert_eq!(shape(client.history()), shape(first.history()), "{mode:?}, {cut:?}");
            for request in server.requests() {
                assert!(request.json().get("tools").is_none(), "{mode:?}");
                let told = request.messages()[0]["content"].as_str().unwrap();
                assert!(told.contains("add") && told.contains("Add two numbers"), "{told}");
                assert_eq!(request.json().get("stop").map(Value::is_array), {
                    (!dialect.stop().is_empty()).then_some(true)
                });
            }
            let last = &server.requests()[3];
            assert_eq!(
                roles(last),
                ["system", "user", "assistant", "user", "assistant", "user", "assistant", "user"]
            );
        }
    }
}

#[tokio::test]
async fn calls_and_results_are_text_on_the_wire() {
    let mut seen = Vec::new();
    for (mode, dialect) in modes().into_iter().take(3) {
        let server = server([
            says(&*dialect, "I look.", &[("echo", json!({"say": "x"}))]),
            Reply::text("Done."),
        ]);
        talk(&mut client(auto(&server).tool(echo()).tool_mode(mode)), "Go.").await;
        let requests = server.requests();
        let messages = requests[1].messages().iter().skip(2);
        let lines = messages.map(|message| format!("{}: {}", message["role"], message["content"]));
        seen.push(lines.collect::<Vec<_>>().join("\n"));
    }
    insta::assert_snapshot!(seen.join("\n\n"), @r#"
    "assistant": "I look.\nAction: echo(say=\"x\")"
    "user": "Observation: x"

    "assistant": "I look.\n[TOOL:echo:say=\"x\"]"
    "user": "[RESULT:echo] x"

    "assistant": "I look.\n<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"say\":\"x\"}}\n</tool_call>"
    "user": "<tool_response>\n{\"name\": \"echo\", \"content\": \"x\"}\n</tool_response>"
    "#);
}

/// Errors of servers whose model does not support tools.
const REFUSALS: [(u16, &str); 3] = [
    (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    (500, "tools param requires --jinja flag"),
    (
        400,
        "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
    ),
];

/// The rejection is reported once, and remembered by all clients with the same options.
#[tokio::test]
async fn rejected_tools_fall_back_to_text() {
    for (words, rejection) in REFUSALS.into_iter().flat_map(rejections) {
        let spoken = TaggedJson::new();
        let server = server([
            rejection,
            says(&spoken, "I add.", &[("add", json!({"a": 1, "b": 2}))]),
            Reply::text("It is 3."),
            Reply::text("Hello."),
        ]);
        let options = auto(&server).tool(adder()).build().unwrap();
        let mut client = Client::new(options.clone()).unwrap();
        client.send("Add.").await.unwrap();
        let mut told = Vec::new();
        while let Some(event) = client.next_event().await.unwrap() {
            if let AgentEvent::ToolsRefused(why) = event {
                told.push(why);
            }
        }
        assert!(matches!(&told[..], [why] if why.contains(words)), "{told:?}");
        assert_eq!(client.history().last().unwrap().text(), "It is 3.");
        // Another client with the same options knows.
        let mut answer = query("Hi.", &options).await.unwrap();
        assert_eq!(answer.text().await.unwrap(), "Hello.");
        let offered: Vec<bool> =
            server.requests().iter().map(|request| request.json().get("tools").is_some()).collect();
        assert_eq!(offered, [true, false, false, false]);
    }
}

#[tokio::test]
async fn native_and_text_models_share_a_history() {
    let spoken = TaggedJson::new();
    let server = server([
        Reply::new().call("add", json!({"a": 1, "b": 2})),
        Reply::text("It is 3."),
        Reply::error(400, "small:1b does not support tools"),
        says(&spoken, "Again.", &[("add", json!({"a": 3, "b": 4}))]),
        Reply::text("It is 7."),
        Reply::text("All of it is there."),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    talk(&mut client, "Add.").await;
    client.set_model("small:1b").unwrap();
    talk(&mut client, "And more.").await;
    client.set_model("any").unwrap();
    talk(&mut client, "What was it?").await;
    let requests = server.requests();
    assert_eq!(roles(&requests[2]), ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(roles(&requests[3]), ["system", "user", "assistant", "user", "assistant", "user"]);
    assert!(requests[3].messages()[2]["content"].as_str().unwrap().contains("<tool_call>"));
    assert_eq!(
        roles(&requests[5]),
        [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user"
        ]
    );
    assert!(requests[5].json()["tools"].is_array());
}

#[tokio::test]
async fn native_mode_fails_if_tools_are_rejected() {
    let (status, words) = REFUSALS[0];
    let server = server([Reply::error(status, words)]);
    let options = auto(&server).tool(adder()).tool_mode(ToolMode::Native);
    let error = client(options).send("Add.").await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(400)));
    assert!(error.to_string().contains("does not support tools"));
}

#[tokio::test]
async fn invented_results_end_the_stream() {
    let said =
        ["Thought: I look.\nAction: echo(say=\"x\")\n", "Observation: it says y\n", "So it is y."];
    let server = server([stalling(&said), Reply::text("Final Answer: x")]);
    let mut client = client(auto(&server).tool(echo()).tool_mode(ToolMode::React));
    let lines = talk(&mut client, "Look.").await;
    assert!(!lines.concat().contains("it is y"), "{lines:?}");
    assert_eq!(client.history().last().unwrap().text().trim(), "x");
    let history = shape(client.history());
    assert!(history[1].ends_with(r#"echo({"say":"x"})"#), "{history:?}");
    assert!(server.requests()[0].aborted(), "{}", server.story());
}

#[tokio::test]
async fn calls_cut_by_max_tokens_do_not_run() {
    let server = server([
        Reply::text("I look.\n<tool_call>{\"name\": \"echo\", \"argum").finish("length"),
        Reply::text("Sorry."),
    ]);
    let mut client = client(auto(&server).tool(echo()).tool_mode(ToolMode::TaggedJson));
    let lines = talk(&mut client, "Look.").await;
    assert!(lines[1].contains("the call is not valid JSON"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with('[')), "nothing runs: {lines:?}");
    assert_eq!((&*lines[0], &*lines[3]), ("I look.", "Sorry."));
}

#[tokio::test]
async fn malformed_calls_reach_the_model() {
    let server = server([
        Reply::text("Action: add(a=1, b=)\n"),
        Reply::text("Action: add(a=1, b=2)\n"),
        Reply::text("Final Answer: 3"),
    ]);
    let mut client = client(auto(&server).tool(adder()).tool_mode(ToolMode::React));
    let lines = talk(&mut client, "Add.").await;
    assert!(lines[0].contains("`b`: expected a value"), "{lines:?}");
    let requests = server.requests();
    let told = requests[1].messages().last().unwrap()["content"].as_str().unwrap();
    assert!(told.starts_with("Observation: ") && told.contains("error"), "{told}");
    assert_eq!(lines.last().unwrap().trim(), "3");
}

#[tokio::test]
async fn manual_mode_and_query_get_call_blocks() {
    let dialect = Markers::new();
    let call = || says(&dialect, "I look.", &[("echo", json!({"say": "x"}))]);
    let options = |server: &MemoryServer| -> AgentOptionsBuilder {
        manual(server).tool(echo()).tool_mode(ToolMode::Markers)
    };
    let first = server([call(), Reply::text("Done.")]);
    let mut client = client(options(&first));
    client.send("Look.").await.unwrap();
    let mut id = None;
    while let Some(block) = client.receive().await.unwrap() {
        if let ContentBlock::ToolUse(call) = block {
            id = Some(call.id);
        }
    }
    assert_eq!(client.finish_reason(), Some(&FinishReason::ToolCalls));
    client.add_tool_result(&id.expect("a call"), json!("x")).unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);

    let second = server([call()]);
    let mut answer = query("Look.", &options(&second).build().unwrap()).await.unwrap();
    let mut lines = Vec::new();
    while let Some(block) = answer.next().await {
        lines.push(line(&block.unwrap()));
    }
    assert!(lines.last().unwrap().contains("echo"), "{lines:?}");
    assert_eq!(answer.finish_reason(), Some(&FinishReason::ToolCalls));
}

#[tokio::test]
async fn interrupts_keep_prose_but_no_partial_call() {
    let server =
        server([stalling(&["I look.", "\n<tool_call>{\"name\": \"echo\""]), Reply::text("Yes?")]);
    let mut client = client(auto(&server).tool(echo()).tool_mode(ToolMode::TaggedJson));
    client.send("Look.").await.unwrap();
    client.receive().await.unwrap().expect("prose");
    client.interrupt();
    assert_eq!(client.receive().await.unwrap(), None);
    assert_eq!(client.history()[1].text(), "I look.");
    assert_eq!(talk(&mut client, "Stop.").await, ["Yes?"]);
}

#[tokio::test]
async fn recognize_calls_reads_calls_in_text() {
    for text in [
        "<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"say\": \"x\"}}\n</tool_call>",
        "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"echo\">\n<｜DSML｜parameter name=\"say\" string=\"true\">x\
         </｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
    ] {
        let first = server([Reply::text(text), Reply::text("Done.")]);
        let mut recognizing = client(auto(&first).tool(echo()).recognize_calls(true));
        assert_eq!(talk(&mut recognizing, "Go.").await.last().unwrap(), "Done.");
        let request = &first.requests()[1];
        assert_eq!(roles(request), ["user", "assistant", "tool"], "history is native");
        let second = server([Reply::text(text)]);
        assert_eq!(talk(&mut client(auto(&second).tool(echo())), "Go.").await, [text]);
    }
}

/// QUIRKS row 152: the server leaves the call in the thinking, and the answer looks like one without a word.
#[tokio::test]
async fn recognize_calls_reads_calls_in_thinking() {
    let thinking =
        "I say x.\n<tool_call>{\"name\": \"echo\", \"arguments\": {\"say\": \"x\"}}</tool_call>";
    let reply = || Reply::new().think(thinking).finish("stop");
    let first = server([reply(), Reply::text("Done.")]);
    let mut recognizing = client(auto(&first).tool(echo()).recognize_calls(true));
    assert_eq!(talk(&mut recognizing, "Go.").await.last().unwrap(), "Done.");
    let request = &first.requests()[1];
    assert_eq!(roles(request), ["user", "assistant", "tool"], "history is native");
    assert_eq!(request.messages()[1]["tool_calls"][0]["function"]["name"], "echo");
    let second = server([reply()]);
    let mut quoting = client(auto(&second).tool(echo()));
    talk(&mut quoting, "Go.").await;
    assert_eq!((second.requests().len(), quoting.history().len()), (1, 1), "it said nothing");
}

#[tokio::test]
async fn instructions_need_no_system_role() {
    let server = server([Reply::text("Hello.")]);
    let options = auto(&server).tool(echo()).tool_mode(ToolMode::React);
    let options = options.system_prompt("Be brief.").system_role(SystemRole::User);
    talk(&mut client(options), "Hi.").await;
    let requests = server.requests();
    assert_eq!(roles(&requests[0]), ["user"]);
    let words = requests[0].messages()[0]["content"].as_str().unwrap();
    assert!(words.starts_with("Be brief.") && words.contains("echo") && words.ends_with("Hi."));
}

#[tokio::test]
async fn the_last_answer_gets_no_tool_prompt() {
    let dialect = TaggedJson::new();
    let call = || says(&dialect, "", &[("echo", json!({"say": "x"}))]);
    let server = server([call(), call(), Reply::text("Enough.")]);
    let options = auto(&server).tool(echo()).tool_mode(ToolMode::TaggedJson);
    let options = options.max_tool_iterations(1).last_answer_without_tools(true);
    talk(&mut client(options.system_prompt("Be brief.")), "Go.").await;
    let told = |request: &Request| request.messages()[0]["content"].as_str().unwrap().len();
    let requests = server.requests();
    assert!(told(&requests[1]) > 100 && told(&requests[2]) == "Be brief.".len());
}

#[tokio::test]
async fn calls_in_text_have_the_limits_of_calls() {
    let spoken = TaggedJson::new();
    let long = json!({"say": "x".repeat(2_000)});
    let call = |input: &Value| ("echo", input.clone());
    let short = json!({"say": "x"});
    for (calls, reason) in [(vec![call(&long)], "long"), (vec![call(&short); 4], "many")] {
        let server = server([says(&spoken, "", &calls), Reply::text("Sorry.")]);
        let mut limits = oa_chat::Limits::default();
        (limits.answer.calls, limits.answer.argument_bytes) = (3, 1_000);
        let options = auto(&server).tool(echo()).tool_mode(ToolMode::TaggedJson).limits(limits);
        let lines = talk(&mut client(options), "Go.").await;
        let broken = lines.iter().filter(|line| line.contains('?') && !line.starts_with('['));
        assert_eq!(broken.count(), 1, "{reason}: {lines:?}");
        let ran = lines.iter().filter(|line| line.starts_with('[')).count();
        assert_eq!(ran, if reason == "many" { 3 } else { 0 }, "{lines:?}");
    }
}

#[tokio::test]
async fn calls_stay_text_after_tools_are_removed() {
    let spoken = TaggedJson::new();
    let marked = "As before: <tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>";
    let server = server([
        Reply::error(400, "small:1b does not support tools"),
        says(&spoken, "I add.", &[("add", json!({"a": 1, "b": 2}))]),
        Reply::text("It is 3."),
        Reply::text(marked),
        Reply::text("It was 3."),
    ]);
    let endpoint = Endpoint::builder().base_url("http://gpu:8000/v1").transport(server.clone());
    let endpoint = endpoint.build().unwrap();
    let asking = || AgentOptions::builder().model("any").chat_service(endpoint.clone());
    let mut client = client(asking().tool(adder()).auto_execute_tools(true));
    talk(&mut client, "Add.").await;
    client.set_tools(Vec::<FnTool>::new()).unwrap();
    // There is nothing to call.
    assert_eq!(talk(&mut client, "More.").await, [marked]);
    let plain = ["user", "assistant", "user", "assistant", "user"];
    let requests = server.requests();
    assert_eq!(roles(&requests[3]), plain);
    // The same for a client that never had tools and continues the conversation.
    let history = client.history()[..4].to_vec();
    let mut resumed = Client::resume(asking().build().unwrap(), history).unwrap();
    assert_eq!(talk(&mut resumed, "What was it?").await, ["It was 3."]);
    let requests = server.requests();
    assert_eq!(roles(&requests[4]), plain);
    for request in &requests[3..] {
        let request = request.json();
        assert!(request.get("tools").is_none() && request.get("stop").is_none(), "{request}");
        let answer = &request["messages"][1];
        assert!(answer.get("tool_calls").is_none(), "{answer}");
        assert!(answer["content"].as_str().unwrap().contains("<tool_call>"), "{answer}");
    }
}
