//! Outgoing requests, by the rows about requests in the manual's list of quirks, and their cost.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request as HttpRequest, Response};
use http_body_util::Full;
use oa_chat::RetryConfig;
use oa_client::{AgentOptions, Client, ErrorKind};
use oa_testkit::{MemoryServer, Reply, Request, Script, Strict};
use oa_transport::RequestBody;
use oa_types::{
    FinishReason, ImageBlock, Message, MessageRole, TextBlock, ThinkingBlock, ToolResultBlock,
    ToolUseBlock, wire::ToolChoice,
};
use serde_json::json;
use tower::service_fn;

use suite::talk::{adder, auto, client, echo, manual, read, stalling, strict, talk};

/// The bytes of a request body, one message per line.
fn body(request: &Request) -> String {
    let body = String::from_utf8(request.body().to_vec()).expect("a request is text");
    body.replace(r#"{"role""#, "\n{\"role\"").replace("],\"stream", "\n],\"stream")
}

fn last(server: &MemoryServer) -> String {
    body(&server.requests().pop().expect("something was asked"))
}

/// Usage is requested by default.
#[tokio::test]
async fn rows_74_to_76_only_set_options_are_sent() {
    let server = strict([Reply::text("Hello.")]);
    talk(&mut client(manual(&server)), "Hi.").await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"Hi."}
    ],"stream":true,"stream_options":{"include_usage":true}}
    "#);
}

#[tokio::test]
async fn row_77_options_keep_their_standard_names() {
    let server = strict([Reply::text("Hello.")]);
    let options = manual(&server).max_tokens(100).temperature(0.5).top_p(0.75).stop("END").seed(7);
    let options = options.response_format(json!({"type": "json_object"}));
    talk(&mut client(options), "Hi.").await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"Hi."}
    ],"stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"temperature":0.5,"top_p":0.75,"stop":["END"],"seed":7,"response_format":{"type":"json_object"}}
    "#);
}

#[tokio::test]
async fn rows_79_and_82_tool_choice_is_a_word() {
    let server = strict([Reply::text("Hello.")]);
    let options = manual(&server).tool(echo()).tool_choice(ToolChoice::Required);
    talk(&mut client(options.parallel_tool_calls(false)), "Hi.").await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"Hi."}
    ],"stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"echo","description":"Says it again","parameters":{"type":"object","properties":{"say":{"type":"string"}},"required":[]}}}],"tool_choice":"required","parallel_tool_calls":false}
    "#);
}

#[tokio::test]
async fn row_80_tool_options_need_tools() {
    let call = || Reply::new().call("echo", json!({"say": "x"}));
    let server = strict([call(), call(), Reply::text("Done.")]);
    let options = auto(&server).tool(echo()).tool_choice(ToolChoice::Auto);
    let options = options.parallel_tool_calls(true).max_tool_calls(1);
    talk(&mut client(options.last_answer_without_tools(true)), "Hi.").await;
    let last = server.requests().pop().unwrap();
    for member in ["tools", "tool_choice", "parallel_tool_calls"] {
        assert!(server.requests()[0].json().get(member).is_some());
        assert!(last.json().get(member).is_none(), "{member}");
    }
}

#[tokio::test]
async fn rows_83_84_92_93_call_rounds_on_the_wire() {
    let server = strict([
        Reply::new()
            .call_with_id("call00001", "add", json!({"a": 1, "b": 2.5}))
            .call_with_id("call00002", "add", "{broken")
            .call_with_id("call00003", "add", ""),
        Reply::text("Done."),
    ]);
    talk(&mut client(auto(&server).tool(adder())), "Add.").await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"Add."},
    {"role":"assistant","content":"","tool_calls":[{"id":"call00001","type":"function","function":{"name":"add","arguments":"{\"a\":1,\"b\":2.5}"}},{"id":"call00002","type":"function","function":{"name":"add","arguments":"{}"}},{"id":"call00003","type":"function","function":{"name":"add","arguments":"{}"}}]},
    {"role":"tool","content":"3.5","tool_call_id":"call00001","name":"add"},
    {"role":"tool","content":"{\"error\":\"the arguments are not valid JSON: key must be a string at line 1 column 2\",\"tool\":\"add\",\"arguments\":\"{broken\"}","tool_call_id":"call00002","name":"add"},
    {"role":"tool","content":"{\"error\":\"invalid arguments\",\"tool\":\"add\",\"reason\":\"`a`: required, but missing; expected number; `b`: required, but missing; expected number\"}","tool_call_id":"call00003","name":"add"}
    ],"stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"add","description":"Add two numbers","parameters":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}}}]}
    "#);
}

#[tokio::test]
async fn rows_85_and_86_empty_messages_are_skipped() {
    let server = strict([Reply::text("Hello.")]);
    let options = manual(&server).system_prompt("").build().unwrap();
    let history = vec![
        Message::system(""),
        Message::user("Hi."),
        Message::assistant(vec![ThinkingBlock::new("hm").into()]),
        Message::user(""),
    ];
    let mut client = Client::with_history(options, history).unwrap();
    assert_eq!(client.send("").await.map_err(|error| error.kind()), Ok(()));
    read(&mut client).await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"Hi."}
    ],"stream":true,"stream_options":{"include_usage":true}}
    "#);
    assert_eq!(client.send(" ").await.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn row_87_the_assistant_is_never_last() {
    let server = strict([stalling(&["Hel"]), Reply::text("Hello.")]);
    let mut client = client(manual(&server));
    client.send("Hi.").await.unwrap();
    client.receive().await.unwrap();
    client.interrupt();
    assert_eq!(client.continue_turn().await.unwrap_err().kind(), ErrorKind::InvalidInput);
    talk(&mut client, "Go on.").await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"Hi."},
    {"role":"assistant","content":"Hel"},
    {"role":"user","content":"Go on."}
    ],"stream":true,"stream_options":{"include_usage":true}}
    "#);
}

#[tokio::test]
async fn row_88_adjacent_user_messages_are_joined() {
    let server = strict([Reply::text("Two."), Reply::text("Three.")]);
    let mut client = client(manual(&server));
    let picture = ImageBlock::from_url("http://localhost/cat.png").unwrap();
    client.history_mut().extend([Message::user("One"), Message::user("and two")]);
    talk(&mut client, "make?").await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"One\nand two\nmake?"}
    ],"stream":true,"stream_options":{"include_usage":true}}
    "#);
    client.history_mut().push(Message::user("And with"));
    client.send_message(Message::user_with_image("this?", picture)).await.unwrap();
    read(&mut client).await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"One\nand two\nmake?"},
    {"role":"assistant","content":"Two."},
    {"role":"user","content":[{"type":"text","text":"And with"},{"type":"text","text":"this?"},{"type":"image_url","image_url":{"url":"http://localhost/cat.png"}}]}
    ],"stream":true,"stream_options":{"include_usage":true}}
    "#);
    assert_eq!(client.history().len(), 7, "history keeps them apart");
}

#[tokio::test]
async fn row_88_adjacent_answers_are_joined() {
    let look = Reply::text("I look.").call_with_id("1", "echo", json!({}));
    let [one, two, three, done, again] =
        ["One.", "Two.", "Three.", "Done.", "Well."].map(Reply::text);
    let server = strict([one, two, three, look, done, again]);
    let mut client = client(auto(&server).tool(echo()));
    for prompt in ["1", "2", "3", "Look."] {
        talk(&mut client, prompt).await;
    }
    // A program removes prompts from the conversation.
    let mut prompts = 0;
    client.history_mut().retain(|message| {
        let is_prompt = message.role == MessageRole::User;
        prompts += usize::from(is_prompt);
        !is_prompt || matches!(prompts, 1 | 3)
    });
    talk(&mut client, "And now?").await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"1"},
    {"role":"assistant","content":"One.\nTwo."},
    {"role":"user","content":"3"},
    {"role":"assistant","content":"Three.\nI look.","tool_calls":[{"id":"1","type":"function","function":{"name":"echo","arguments":"{}"}}]},
    {"role":"tool","content":"null","tool_call_id":"1","name":"echo"},
    {"role":"assistant","content":"Done."},
    {"role":"user","content":"And now?"}
    ],"stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"echo","description":"Says it again","parameters":{"type":"object","properties":{"say":{"type":"string"}},"required":[]}}}]}
    "#);
    assert_eq!(client.history().len(), 10, "history keeps them apart");
}

#[tokio::test]
async fn row_90_results_follow_calls_in_order() {
    let server = strict([
        Reply::text("I look.")
            .call_with_id("1", "echo", json!({}))
            .call_with_id("2", "echo", json!({}))
            .call_with_id("3", "echo", json!({})),
        Reply::text("Hello."),
    ]);
    let mut client = client(manual(&server).tool(echo()));
    talk(&mut client, "Go.").await;
    client.add_tool_result("3", json!({"found": ["a", 1]})).unwrap();
    client.add_tool_result("2", json!("b")).unwrap();
    talk(&mut client, "Never mind the first.").await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"Go."},
    {"role":"assistant","content":"I look.","tool_calls":[{"id":"1","type":"function","function":{"name":"echo","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"echo","arguments":"{}"}},{"id":"3","type":"function","function":{"name":"echo","arguments":"{}"}}]},
    {"role":"tool","content":"{\"error\":\"not run: the user moved on without it\",\"tool\":\"echo\"}","tool_call_id":"1","name":"echo"},
    {"role":"tool","content":"b","tool_call_id":"2","name":"echo"},
    {"role":"tool","content":"{\"found\":[\"a\",1]}","tool_call_id":"3","name":"echo"},
    {"role":"user","content":"Never mind the first."}
    ],"stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"echo","description":"Says it again","parameters":{"type":"object","properties":{"say":{"type":"string"}},"required":[]}}}]}
    "#);
}

#[tokio::test]
async fn row_91_generated_ids_are_nine_characters() {
    let call = json!({"index": 0, "function": {"name": "echo", "arguments": "{}"}});
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
    let script = Script::from([Reply::new().event(call), Reply::text("Done.")]);
    let server = MemoryServer::new(script.strict_by(Strict::new().require_nine_letter_ids()));
    talk(&mut client(auto(&server).tool(echo())), "Go.").await;
    let id = server.requests()[1].messages()[2]["tool_call_id"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(last(&server).replace(&id, "<an id>"), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"Go."},
    {"role":"assistant","content":"","tool_calls":[{"id":"<an id>","type":"function","function":{"name":"echo","arguments":"{}"}}]},
    {"role":"tool","content":"null","tool_call_id":"<an id>","name":"echo"}
    ],"stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"echo","description":"Says it again","parameters":{"type":"object","properties":{"say":{"type":"string"}},"required":[]}}}]}
    "#);
    // A server's own ids are unchanged.
    let server = strict([
        Reply::new().call_with_id("call_0_with-a-long-id", "echo", json!({})),
        Reply::text("Done."),
    ]);
    talk(&mut client(auto(&server).tool(echo())), "Go.").await;
    assert_eq!(server.requests()[1].messages()[2]["tool_call_id"], "call_0_with-a-long-id");
}

#[tokio::test]
async fn row_94_thinking_is_not_sent_back() {
    let server = strict([
        Reply::new().think("hm").say("I look.").call_with_id("1", "echo", json!({})),
        Reply::new().think("aha").say("Done."),
        Reply::text("Fine."),
    ]);
    let mut client = client(auto(&server).tool(echo()));
    talk(&mut client, "Go.").await;
    talk(&mut client, "Good?").await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"user","content":"Go."},
    {"role":"assistant","content":"I look.","tool_calls":[{"id":"1","type":"function","function":{"name":"echo","arguments":"{}"}}]},
    {"role":"tool","content":"null","tool_call_id":"1","name":"echo"},
    {"role":"assistant","content":"Done."},
    {"role":"user","content":"Good?"}
    ],"stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"echo","description":"Says it again","parameters":{"type":"object","properties":{"say":{"type":"string"}},"required":[]}}}]}
    "#);
    assert!(
        client.history()[1].content.iter().any(|block| *block == ThinkingBlock::new("hm").into())
    );
}

#[tokio::test]
async fn rows_96_and_97_content_is_plain_text() {
    let server = strict([Reply::text("A cat."), Reply::text("A dog.")]);
    let mut client = client(manual(&server).system_prompt("Be \"brief\"."));
    let words = vec![TextBlock::new("What").into(), TextBlock::new("is it?").into()];
    client.send_message(Message::user_with_blocks(words)).await.unwrap();
    read(&mut client).await;
    let picture = ImageBlock::from_url("http://localhost/dog.png").unwrap();
    client.send_message(Message::user_with_image("And this?\n", picture)).await.unwrap();
    read(&mut client).await;
    insta::assert_snapshot!(last(&server), @r#"
    {"model":"any","messages":[
    {"role":"system","content":"Be \"brief\"."},
    {"role":"user","content":"What\nis it?"},
    {"role":"assistant","content":"A cat."},
    {"role":"user","content":[{"type":"text","text":"And this?\n"},{"type":"image_url","image_url":{"url":"http://localhost/dog.png"}}]}
    ],"stream":true,"stream_options":{"include_usage":true}}
    "#);
}

#[test]
fn request_cost_is_independent_of_history() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    // A server that reads nothing, so that only the client's memory is counted.
    let service = service_fn(|request: HttpRequest<RequestBody>| async move {
        let length = http_body::Body::size_hint(request.body()).exact();
        let body = format!(
            "data: {}\n\ndata: [DONE]\n\n",
            json!({"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}],
                "length": length}),
        );
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body))))
    });
    let costs = |messages: usize| {
        let options = AgentOptions::builder().model("any").transport(service).build().unwrap();
        let mut history = Vec::new();
        for place in 0..messages / 4 {
            let call =
                ToolUseBlock::new(format!("c{place}"), "echo", json!({"say": "x".repeat(500)}));
            history.push(Message::user("Say it. ".repeat(64)));
            history.push(Message::assistant(vec![call.into()]));
            history.push(Message::tool(ToolResultBlock::new(
                format!("c{place}"),
                json!("y".repeat(500)),
            )));
            history
                .push(Message::assistant(vec![TextBlock::new("It was said. ".repeat(32)).into()]));
        }
        let mut client = Client::with_history(options, history).unwrap();
        runtime.block_on(async { talk(&mut client, "Warm up.").await });
        allocation_counter::measure(|| {
            runtime.block_on(async { talk(&mut client, "And now?").await });
        })
    };
    let (few, many) = (costs(20), costs(400));
    println!("after  20 messages: {} allocations, {} bytes", few.count_total, few.bytes_total);
    println!("after 400 messages: {} allocations, {} bytes", many.count_total, many.bytes_total);
    // A request of about 200 kB in segments of 32 kB, of which only the last is copied.
    assert!(many.count_total <= few.count_total + 8);
    assert!(many.bytes_total <= few.bytes_total + 48 * 1024);
}

#[tokio::test]
async fn invented_tool_names_are_sanitized() {
    let made_up = "functions.read file";
    let server = strict([Reply::new().call(made_up, json!({})), Reply::text("Done.")]);
    let mut client = client(auto(&server).tool(echo()));
    let lines = talk(&mut client, "Hi.").await;
    assert!(lines[0].contains(made_up), "the caller sees what the model wrote: {lines:?}");
    let [.., call, result] = &server.requests()[1].messages().to_vec()[..] else { panic!() };
    assert_eq!(call["tool_calls"][0]["function"]["name"], "functions_read_file");
    assert_eq!(result["name"], "functions_read_file");
    assert!(result["content"].as_str().unwrap().contains(made_up), "{result}");
}

#[tokio::test]
async fn row_78_tool_choice_may_be_ignored() {
    let server = strict([Reply::text("I would rather talk.")]);
    let options = auto(&server).tool(echo()).tool_choice(ToolChoice::Required);
    let mut client = client(options);
    assert_eq!(talk(&mut client, "Look.").await, ["I would rather talk."]);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
}

/// If another model answers, the message has its name.
#[tokio::test(start_paused = true)]
async fn row_98_model_loading_is_awaited() {
    let loaded = Reply::text("Awake.").delay_head(Duration::from_secs(280));
    let other = Reply::sse(
        "data: {\"model\":\"what-is-there\",\"choices\":[{\"delta\":{\"content\":\"Hello.\"}}]}\n\n",
    );
    let server = strict([loaded, other]);
    let mut client = client(manual(&server).model("not-there"));
    assert_eq!(talk(&mut client, "Hi.").await, ["Awake."]);
    assert_eq!(talk(&mut client, "Hi.").await, ["Hello."]);
    assert_eq!(client.message().unwrap().model.as_deref(), Some("what-is-there"));
    assert!(server.requests().iter().all(|request| request.model() == Some("not-there")));
}

#[tokio::test(start_paused = true)]
async fn row_99_loading_models_are_retried() {
    let loading = || Reply::error(503, json!({"message": "Loading model", "code": 503}));
    let server = strict([loading(), loading(), Reply::text("Here I am.")]);
    let options = manual(&server).retry(RetryConfig::new(2));
    assert_eq!(talk(&mut client(options), "Hi.").await, ["Here I am."]);
}
