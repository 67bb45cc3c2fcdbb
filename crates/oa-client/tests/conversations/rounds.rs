//! Auto mode: rounds of calls, from the first word to the last.

use std::time::Duration;

use oa_client::{AgentEvent, AgentOptions, Client};
use oa_executor::{ExecutorOptions, ToolEvent, TruncationPolicy};
use oa_testkit::{MemoryServer, Reply, Script, SocketServer, Strict};
use oa_tools::tool;
use oa_types::{ContentBlock, FinishReason};
use serde_json::json;
use tokio::time::Instant;

use suite::talk::{
    Log, adder, auto, client, echo, failing, line, read, slow, stalling, strict, talk, told,
};

#[tokio::test(start_paused = true)]
async fn text_streams_in_every_round() {
    let second = Duration::from_secs(1);
    let server = strict([
        Reply::text("one two").call_with_id("c", "echo", json!({"say": "x"})).delay(second),
        Reply::text("three four").delay(second),
    ]);
    let mut client = client(auto(&server).tool(echo()));
    client.send("Count.").await.unwrap();
    let (start, mut seen) = (Instant::now(), Vec::new());
    while let Some(block) = client.receive().await.unwrap() {
        seen.push((line(&block), start.elapsed().as_secs()));
    }
    // The first second of an answer is that of a chunk with only a role.
    let seen: Vec<(&str, u64)> = seen.iter().map(|(line, time)| (&**line, *time)).collect();
    let [one, two, call, result, three, four] = seen[..] else { panic!("{seen:?}") };
    assert_eq!((one, two), (("one", 2), (" two", 3)));
    assert_eq!((call.0, result.0), (r#"[c echo {"say":"x"}]"#, r#"c="x""#));
    assert!(call.1 == result.1 && call.1 > 3, "calls come after the stream: {seen:?}");
    assert_eq!((three, four), (("three", call.1 + 2), (" four", call.1 + 3)));
}

#[tokio::test]
async fn text_arrives_before_the_stream_ends() {
    let script = Script::from([
        Reply::new().call("echo", json!({"say": "x"})),
        stalling(&["Hello, ", "world"]),
    ]);
    let server = SocketServer::start(script.strict()).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url());
    let mut client = client(options.tool(echo()).auto_execute_tools(true));
    client.send("Hi.").await.unwrap();
    let text = loop {
        match client.receive().await.unwrap().expect("text is there") {
            ContentBlock::Text(text) => break text.text,
            _ => assert_eq!(server.requests().len(), 1),
        }
    };
    assert_eq!(text, "Hello, ");
    assert!(!server.requests()[1].is_over(), "the rest was not sent");
    drop(client);
    server.wait_for_close(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn deltas_join_into_one_block() {
    let server = strict([Reply::new().think("hm, well").say("It is  so.\n")]);
    let mut client = client(auto(&server).tool(echo()));
    talk(&mut client, "Why?").await;
    assert_eq!(told(client.history()), ["user: Why?", "assistant: (hm, well) It is  so.\n"]);
}

#[tokio::test]
async fn calls_are_shown_before_any_of_them_runs() {
    let log = Log::default();
    let noted = |name: &str| {
        let (log, says) = (log.clone(), name.to_owned());
        tool(name, "Notes").build(move |_| {
            log.note(format!("{says} runs"));
            async { Ok(json!("ok")) }
        })
    };
    let server = strict([
        Reply::text("Both.").call("a", json!({})).call("b", json!({})),
        Reply::text("Done."),
    ]);
    let mut client = client(auto(&server).tool(noted("a")).tool(noted("b")));
    client.send("Go.").await.unwrap();
    while let Some(block) = client.receive().await.unwrap() {
        match block {
            ContentBlock::ToolUse(call) => {
                assert!(server.requests()[0].is_over(), "the stream has ended");
                log.note(format!("{} seen", call.name));
            }
            ContentBlock::ToolResult(_) => log.note("result seen"),
            _ => {}
        }
    }
    let lines = log.lines();
    assert_eq!((lines.len(), &lines[..2]), (6, &["a seen".to_owned(), "b seen".to_owned()][..]));
}

#[tokio::test(start_paused = true)]
async fn concurrent_results_keep_call_order() {
    let mut reply = Reply::new();
    let mut options = Vec::new();
    for place in 0..8_u32 {
        reply = reply.call_with_id(format!("id{place}"), format!("slow{place}"), json!({}));
        // Later calls finish sooner.
        let time = Duration::from_millis(100 - u64::from(place));
        options.push(slow(&format!("slow{place}"), time));
    }
    let server = strict([reply, Reply::text("Done.")]);
    let mut client = client(auto(&server).tools(options));
    client.send("Go.").await.unwrap();
    let start = Instant::now();
    let seen = read(&mut client).await;
    let took = start.elapsed();
    assert!(took < Duration::from_millis(105), "eight tools of 100 ms took {took:?}");
    let results: Vec<String> = (0..8).map(|place| format!("id{place}=\"slept\"")).collect();
    assert_eq!(seen[8..16], results);
    let history: Vec<String> = results.iter().map(|line| format!("tool: {line}")).collect();
    assert_eq!(told(client.history())[2..10], history);
    assert_eq!(seen[16], "Done.");
}

#[tokio::test]
async fn failed_calls_reach_caller_and_model() {
    let panicking = tool("panics", "Panics").build(|args| async move {
        assert!(args.is_null(), "a bug in the tool");
        Ok(json!(null))
    });
    let timed = tool("hangs", "Hangs").timeout(Duration::from_millis(10));
    let hanging = timed.build(|_| async { std::future::pending().await });
    let server = strict([
        Reply::new()
            .call_with_id("1", "nothing", json!({}))
            .call_with_id("2", "add", json!({"a": "one", "b": 2}))
            .call_with_id("3", "fails", json!({}))
            .call_with_id("4", "panics", json!({}))
            .call_with_id("5", "hangs", json!({}))
            .call_with_id("6", "add", json!({"a": 1, "b": 2})),
        Reply::text("I see."),
    ]);
    let options = auto(&server).tool(adder()).tool(failing("fails")).tool(panicking).tool(hanging);
    let mut client = client(options);
    let seen = talk(&mut client, "Go.").await;
    assert_eq!(
        seen[6..],
        [
            "1?there is no such tool",
            r#"1!{"error":"there is no such tool","tool":"nothing","available":["add","fails","panics","hangs"]}"#,
            r#"2?invalid arguments: `a`: expected number, found string "one""#,
            r#"2!{"error":"invalid arguments","tool":"add","reason":"`a`: expected number, found string \"one\""}"#,
            "3?the disk is full",
            r#"3!{"error":"the disk is full","tool":"fails"}"#,
            "4?the tool panicked: a bug in the tool",
            r#"4!{"error":"the tool panicked","tool":"panics","reason":"a bug in the tool"}"#,
            "5?timed out after 10ms",
            r#"5!{"error":"timed out after 10ms","tool":"hangs"}"#,
            "6=3.0",
            "I see.",
        ]
    );
    // The caller sees the same as the model.
    let results = seen[6..].iter().filter(|line| line.contains("!{") || line.contains('='));
    let results: Vec<String> = results.map(|line| format!("tool: {line}")).collect();
    assert_eq!(told(client.history())[2..8], results);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
}

/// The event keeps the full result.
#[tokio::test]
async fn long_results_are_cut_for_the_model() {
    let large =
        tool("large", "Returns a megabyte").build(|_| async { Ok(json!("ä".repeat(512 * 1024))) });
    let server =
        strict([Reply::new().call_with_id("c", "large", json!({})), Reply::text("Quite long.")]);
    let mut client = client(auto(&server).tool(large));
    client.send("Go.").await.unwrap();
    let mut record = None;
    while let Some(event) = client.next_event().await.unwrap() {
        if let AgentEvent::Tool(ToolEvent::CallComplete(result)) = event {
            record = Some(result);
        }
    }
    let record = record.expect("the call was completed");
    assert!(record.truncated && !record.is_error());
    assert_eq!(record.full().as_str().map(str::len), Some(1024 * 1024));
    let sent = server.requests()[1].messages()[2]["content"].as_str().unwrap().to_owned();
    assert!((10_000..10_200).contains(&sent.chars().count()), "{} were sent", sent.chars().count());
    assert!(sent.starts_with("ää") && sent.contains("514288"), "{}", &sent[sent.len() - 100..]);
}

#[tokio::test]
async fn result_truncation_can_be_turned_off() {
    let server = strict([
        Reply::new().call_with_id("c", "echo", json!({"say": "x".repeat(20_000)})),
        Reply::text("Long."),
    ]);
    let executor = ExecutorOptions::new().truncation(TruncationPolicy::none());
    let mut client = client(auto(&server).tool(echo()).executor(executor));
    talk(&mut client, "Go.").await;
    assert_eq!(server.requests()[1].messages()[2]["content"].as_str().unwrap().len(), 20_000);
}

#[tokio::test]
async fn malformed_calls_are_quoted_to_the_model() {
    let server = strict([
        Reply::text("Hm.").call_with_id("1", "add", r#"{"a": 1, "b""#).call_with_id(
            "2",
            "add",
            json!({"a": 1, "b": 2}),
        ),
        Reply::text("Sorry."),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    let seen = talk(&mut client, "Add.").await;
    let [text, broken, call, told_broken, result, last] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&**text, &**last), ("Hm.", "Sorry."));
    assert!(broken.starts_with("1?"), "{broken}");
    assert!(told_broken.starts_with("1!{") && told_broken.contains(r#"{\"a\": 1, \"b\""#));
    assert_eq!((&**call, &**result), (r#"[2 add {"a":1,"b":2}]"#, "2=3.0"));
    assert_eq!(
        told(client.history())[1..4],
        [
            r#"assistant: Hm. [1 add {}] [2 add {"a":1,"b":2}]"#.to_owned(),
            format!("tool: {told_broken}"),
            "tool: 2=3.0".to_owned(),
        ]
    );
}

#[tokio::test]
async fn nameless_calls_are_reported_to_the_model() {
    let nameless = Reply::text("Hm.").call_with_id("1", "", json!({"a": 1}));
    let server = strict([nameless, Reply::text("Sorry.")]);
    let mut client = client(auto(&server).tool(adder()));
    let seen = talk(&mut client, "Add.").await;
    assert_eq!(seen.len(), 3);
    assert!(seen[1].contains('?'), "{seen:?}");
    let told = told(client.history());
    assert_eq!((told.len(), &*told[1], &*told[3]), (4, "assistant: Hm.", "assistant: Sorry."));
    assert!(told[2].contains("the call has no tool name"), "{told:?}");
}

#[tokio::test]
async fn calls_cut_by_max_tokens_do_not_run() {
    let server = strict([
        Reply::new().call_with_id("1", "add", "").finish("length"),
        Reply::text("Too long."),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    let seen = talk(&mut client, "Add.").await;
    assert!(seen[0].starts_with("1?") && seen[1].starts_with("1!{"), "{seen:?}");
    assert_eq!(told(client.history())[1], "assistant: [1 add {}]");
}

#[tokio::test]
async fn raw_text_of_malformed_calls_is_bounded() {
    let broken = format!("{{\"a\": \"{}", "x".repeat(1024 * 1024));
    let server = strict([Reply::new().call_with_id("1", "add", broken), Reply::text("Sorry.")]);
    let mut client = client(auto(&server).tool(adder()));
    client.send("Add.").await.unwrap();
    let Some(ContentBlock::ToolUseError(error)) = client.receive().await.unwrap() else {
        panic!("the call is broken")
    };
    assert!(error.raw_data.len() <= 16 * 1024, "{} bytes", error.raw_data.len());
    read(&mut client).await;
    assert!(server.requests()[1].body().len() < 40 * 1024);
}

/// They have nine letters and digits, which Mistral's servers require.
#[tokio::test]
async fn generated_call_ids_are_stable() {
    let chunk = |delta| json!({ "choices": [{ "index": 0, "delta": delta }] });
    let call = |index| {
        chunk(json!({ "tool_calls": [{
            "index": index,
            "function": { "name": "echo", "arguments": "{\"say\": \"x\"}" },
        }] }))
    };
    let round = || Reply::new().event(call(0)).event(call(1)).finish("tool_calls");
    let server = MemoryServer::new(
        Script::from([round(), round(), Reply::text("Done.")])
            .strict_by(Strict::new().require_nine_letter_ids()),
    );
    let mut client = client(auto(&server).tool(echo()).repeat_guard(None));
    let mut seen = Vec::new();
    client.send("Go.").await.unwrap();
    while let Some(block) = client.receive().await.unwrap() {
        if let ContentBlock::ToolUse(call) = block {
            seen.push(call.id);
        }
    }
    let sent = server.requests()[2].clone();
    let sent = sent.messages().iter().flat_map(|message| message["tool_calls"].as_array());
    let sent: Vec<&str> = sent.flatten().filter_map(|call| call["id"].as_str()).collect();
    assert_eq!(sent.len(), 4);
    assert_eq!(sent, seen, "the same ids each time");
}

#[tokio::test]
async fn repeated_call_ids_are_made_distinct() {
    let call = |say: &str| Reply::new().call_with_id("call_0", "echo", json!({"say": say}));
    let server = strict([call("one"), call("two"), Reply::text("Done.")]);
    let mut client = client(auto(&server).tool(echo()));
    client.send("Go.").await.expect("the server answers");
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    while let Some(event) = client.next_event().await.expect("the turn goes on") {
        match event {
            AgentEvent::ToolUseDelta(delta) => begun.extend(delta.id),
            AgentEvent::Tool(ToolEvent::CallComplete(result)) => ended.push(result.call_id.clone()),
            _ => {}
        }
    }
    assert_eq!(begun.len(), 2);
    assert_eq!(begun[0], "call_0");
    assert_ne!(begun[1], "call_0", "viewers would take it for the call before");
    assert_eq!(ended, begun, "a call has one id from its first event on");
    let sent = server.requests()[2].clone();
    let sent: Vec<_> =
        sent.messages().iter().filter_map(|it| it["tool_call_id"].as_str()).collect();
    assert_eq!(sent, begun);
}

/// Thinking stays in history and is not sent.
#[tokio::test]
async fn thought_signatures_are_sent_back() {
    let call = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [{
        "index": 0, "id": "c", "type": "function",
        "function": { "name": "echo", "arguments": "{}" },
        "extra_content": { "google": { "thought_signature": "abc" } },
    }] } }] });
    let rules = Strict::new().allow_member("messages[].tool_calls[].extra_content");
    let script = Script::from([Reply::new().think("hm").event(call), Reply::text("Done.")]);
    let server = MemoryServer::new(script.strict_by(rules));
    let mut client = client(auto(&server).tool(echo()));
    talk(&mut client, "Go.").await;
    assert_eq!(told(client.history())[1], "assistant: (hm) [c echo {}]");
    let sent = server.requests()[1].messages()[1].clone();
    assert_eq!(
        sent,
        json!({ "role": "assistant", "content": "", "tool_calls": [{
            "id": "c", "type": "function", "function": { "name": "echo", "arguments": "{}" },
            "extra_content": { "google": { "thought_signature": "abc" } },
        }] })
    );
}

#[tokio::test]
async fn tools_read_state_and_emit_events() {
    struct Disk(&'static str);
    let reader = tool("read", "Reads").build_with_context(|_, context| async move {
        context.emit_progress((1, 2));
        context.emit("page", json!(7));
        Ok(json!(context.state::<Disk>().map(|disk| disk.0)))
    });
    let server = strict([Reply::new().call_with_id("c", "read", json!({})), Reply::text("Ah.")]);
    let mut client = client(auto(&server).tool(reader).state(Disk("main")));
    client.send("Read.").await.unwrap();
    let mut kinds = Vec::new();
    while let Some(event) = client.next_event().await.unwrap() {
        if let AgentEvent::Tool(event) = event {
            kinds.push(event.event_type().to_owned());
        }
    }
    let expected =
        ["tool_call_start", "tool_progress", "tool_page", "tool_call_complete", "tools_end"];
    assert_eq!(kinds, expected);
    assert_eq!(told(client.history())[2], r#"tool: c="main""#);
    assert!(client.options().state::<Disk>().is_some());
}

#[tokio::test]
async fn calls_without_any_tools_get_an_error() {
    let server =
        strict([Reply::new().call_with_id("c", "made_up", json!({})), Reply::text("Sorry.")]);
    let mut client: Client = client(auto(&server));
    let seen = talk(&mut client, "Go.").await;
    assert_eq!(seen[1], "c?there is no such tool");
    assert_eq!(seen[3], "Sorry.");
}
