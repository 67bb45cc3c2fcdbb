//! Tools of a model whose answers are constrained by a schema.

use oa_chat::{ServerProfile, ToolMode};
use oa_client::{
    AgentEvent, AgentOptions, AgentOptionsBuilder, Client, ErrorKind, OutputMode, ResponseFormat,
};
use oa_testkit::{Cut, MemoryServer, Reply, Script};
use oa_tools::{FnTool, tool};
use oa_types::wire::ToolChoice;
use oa_types::{ContentBlock, FinishReason};
use serde_json::{Value, json};

const ADD: &str = r#"{"tool": "add", "arguments": {"a": 25, "b": 17}}"#;

fn add() -> FnTool {
    let number = |args: &Value, name: &str| args[name].as_f64().unwrap_or_default();
    tool("add", "Adds two numbers")
        .param("a", "number")
        .param("b", "number")
        .build(move |args| async move { Ok(json!(number(&args, "a") + number(&args, "b"))) })
}

fn options(server: &MemoryServer) -> AgentOptionsBuilder {
    let clock = tool("clock", "Tells the time").build(|_| async { Ok(json!("noon")) });
    AgentOptions::builder()
        .model("tiny")
        .base_url("http://gpu/v1")
        .transport(server.clone())
        .tool(add())
        .tool(clock)
        .auto_execute_tools(true)
        .tool_mode(ToolMode::Constrained)
}

async fn answers(client: &mut Client) -> (String, Vec<AgentEvent>) {
    let (mut text, mut events) = (String::new(), Vec::new());
    while let Some(event) = client.next_event().await.expect("no error") {
        if let AgentEvent::Block(ContentBlock::Text(block)) = &event {
            text.push_str(&block.text);
        }
        events.push(event);
    }
    (text, events)
}

/// Asks once, and returns the text.
async fn ask(options: AgentOptionsBuilder) -> (Client, String) {
    let mut client = Client::new(options.build().expect("options")).expect("a client");
    client.send("What is 25 + 17?").await.expect("an answer");
    let (text, _) = answers(&mut client).await;
    (client, text)
}

/// Returns the alternatives of the answer to a request: the tools, and `answer`.
fn alternatives(request: &Value) -> Vec<String> {
    let schema = &request["response_format"]["json_schema"]["schema"];
    let all = schema["anyOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
    let name =
        |one: &Value| one["properties"]["tool"]["const"].as_str().unwrap_or("answer").to_owned();
    all.iter().map(name).collect()
}

#[tokio::test]
async fn calls_run_and_answers_stream_as_text() {
    let said = "It is 42, \"voil\u{e0}\" \u{1f642}.";
    let answer = r#"{"answer": "It is 42, \"voil\u00e0\" \ud83d\ude42."}"#;
    let server = MemoryServer::new([Reply::text(ADD), Reply::text(answer)]);
    let (client, text) = ask(options(&server)).await;
    assert_eq!(text, said);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));

    let history = client.history();
    assert_eq!(history.len(), 4);
    let ContentBlock::ToolUse(call) = &history[1].content[0] else { panic!("{history:?}") };
    assert_eq!((&*call.name, &call.input), ("add", &json!({"a": 25, "b": 17})));
    assert_eq!(history[3].text(), said);

    let requests = server.requests();
    for request in &requests {
        assert_eq!(alternatives(request.json()), ["add", "clock", "answer"]);
        assert!(request.json().get("tools").is_none());
    }
    let texts: Vec<&Value> = requests[1].messages().iter().map(|one| &one["content"]).collect();
    assert!(texts[0].as_str().is_some_and(|prompt| prompt.contains("add(a, b): Adds two numbers")));
    assert_eq!(texts[2], r#"{"tool": "add", "arguments": {"a":25,"b":17}}"#);
    assert_eq!(texts[3], r#"{"tool": "add", "result": 42.0}"#);
}

#[tokio::test]
async fn text_streams_for_any_cut() {
    let mut reply = Reply::new();
    for piece in ["{\"ans", "wer\": \"", "one ", "tw", "o\\ud8", "3d\\ude", "42", "\"}"] {
        reply = reply.say(piece);
    }
    for size in [1, 7, 1000] {
        let server = MemoryServer::new(reply.clone().cut(Cut::Every(size)));
        let mut client = Client::new(options(&server).build().unwrap()).unwrap();
        client.send("Say it.").await.unwrap();
        let mut pieces = Vec::new();
        while let Some(block) = client.receive().await.unwrap() {
            pieces.extend(block.as_text().map(str::to_owned));
        }
        assert_eq!(pieces.concat(), "one two\u{1f642}", "{size}");
        assert!(pieces.len() >= 3, "{size}: {pieces:?}");
    }
}

#[tokio::test]
async fn a_steps_tool_choice_narrows_the_schema() {
    let clock = r#"{"tool": "clock", "arguments": {}}"#;
    let replies = [ADD, clock, ADD, r#"{"answer": "42"}"#, "plain"].map(Reply::text);
    let server = MemoryServer::new(replies);
    let options = options(&server).before_step(|step| async move {
        match step.number() {
            1 => step.tool_choice("required"),
            2 => step.tool_choice("clock"),
            3 => step.only_tools(["add"]),
            4 => step.tool_choice("none"),
            _ => step,
        }
    });
    let (mut client, text) = ask(options).await;
    assert_eq!(text, "42");
    client.send_message(oa_types::Message::user("Go on.")).await.unwrap();
    assert_eq!(answers(&mut client).await.0, "plain", "prose is an answer");
    let seen: Vec<Vec<String>> =
        server.requests().iter().map(|request| alternatives(request.json())).collect();
    assert_eq!(
        seen,
        [
            vec!["add", "clock"],
            vec!["clock"],
            vec!["add", "answer"],
            vec!["answer"],
            vec!["add", "clock"]
        ]
    );
}

#[tokio::test]
async fn parallel_calls_are_an_array() {
    let both = r#"{"calls": [{"tool": "clock", "arguments": {}}, {"tool": "add", "arguments": {"a": 1, "b": 2}}]}"#;
    let server = MemoryServer::new([Reply::text(both), Reply::text(r#"{"answer": "Done."}"#)]);
    let options = options(&server).tool_choice(ToolChoice::Auto).parallel_tool_calls(true);
    let (client, text) = ask(options).await;
    assert_eq!(text, "Done.");
    assert_eq!(client.history().len(), 5, "two calls, two results");
    let request = &server.requests()[0];
    let schema = &request.json()["response_format"]["json_schema"]["schema"];
    assert_eq!(schema["anyOf"][0]["properties"]["calls"]["type"], "array");
}

#[tokio::test]
async fn without_tools_the_answer_is_plain_text() {
    let server = MemoryServer::new([Reply::text("Hello."), Reply::text(r#"{"answer": "Hi."}"#)]);
    let options = AgentOptions::builder()
        .model("tiny")
        .base_url("http://gpu/v1")
        .transport(server.clone())
        .tool_mode(ToolMode::Constrained);
    let (mut client, text) = ask(options).await;
    assert_eq!(text, "Hello.");
    client.send("And?").await.unwrap();
    assert_eq!(answers(&mut client).await.0, "Hi.", "as its own history shows it");
    assert!(server.requests().iter().all(|one| one.json().get("response_format").is_none()));
}

#[tokio::test]
async fn rejected_formats_fall_back() {
    let refusal = || Reply::error(400, json!({"message": "response_format is not supported"}));
    let replies = [
        refusal(),
        refusal(),
        Reply::text(format!("I will add.\n{ADD}")),
        Reply::text("It is 42."),
    ];
    let server = MemoryServer::new(replies);
    let mut client = Client::new(options(&server).build().unwrap()).unwrap();
    client.send("What is 25 + 17?").await.unwrap();
    let (text, events) = answers(&mut client).await;
    assert_eq!(text, "I will add.It is 42.");
    let refused = |event: &&AgentEvent| matches!(event, AgentEvent::FormatRefused(_));
    assert_eq!(events.iter().filter(refused).count(), 1, "{events:?}");
    let requests = server.requests();
    let kinds = requests.iter().map(|request| request.json()["response_format"]["type"].clone());
    let null = Value::Null;
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        [json!("json_schema"), json!("json_object"), null.clone(), null],
        "what worked is remembered",
    );
}

#[tokio::test]
async fn invalid_calls_are_reported_to_the_model() {
    let replies = [
        r#"{"tool": "add", "arguments": {"a": 1, "b": }}"#,
        r#"{"tool": "multiply", "arguments": {}}"#,
        r#"{"answer": "I cannot."}"#,
    ];
    let server = MemoryServer::new(replies.map(Reply::text));
    let (client, text) = ask(options(&server)).await;
    assert_eq!(text, "I cannot.");
    let last = server.requests()[2].messages().to_vec();
    let said = |at: usize| last[at]["content"].as_str().unwrap_or_default().to_owned();
    assert!(said(3).contains("not valid JSON") && said(3).contains("\"error\""), "{}", said(3));
    assert!(said(5).contains("multiply") && said(5).contains("clock"), "{}", said(5));
    assert_eq!(client.history().len(), 6);
}

#[tokio::test]
async fn the_profile_decides_the_fallback_dialect() {
    for (schema, constrained) in [(Some(true), true), (None, false), (Some(false), false)] {
        let refusal = Reply::error(400, json!({"message": "tiny does not support tools"}));
        let answer = if constrained { ADD.to_owned() } else { tagged() };
        let script = Script::from([refusal, Reply::text(answer), Reply::text("It is 42.")]);
        let server = MemoryServer::new(script);
        let mut profile = ServerProfile::new("http://gpu/v1", "tiny");
        profile.schema = schema;
        let options = options(&server).tool_mode(ToolMode::Auto).profile(profile);
        let (client, text) = ask(options).await;
        assert_eq!(text, "It is 42.");
        assert_eq!(client.history().len(), 4);
        let requests = server.requests();
        assert!(requests[0].json().get("tools").is_some());
        assert_eq!(requests[1].json().get("response_format").is_some(), constrained);
    }
}

fn tagged() -> String {
    r#"<tool_call>{"name": "add", "arguments": {"a": 25, "b": 17}}</tool_call>"#.to_owned()
}

#[tokio::test]
async fn structured_output_is_an_alternative() {
    let format = || {
        ResponseFormat::new(
            "sum",
            json!({
                "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
            }),
        )
    };
    let server = MemoryServer::new([
        Reply::text(ADD),
        Reply::text(r#"{"answer": {"n": "many"}}"#),
        Reply::text(r#"{"answer": {"n": 42}}"#),
        Reply::text(r#"{"n": 43}"#),
    ]);
    let mut client = Client::new(options(&server).build().unwrap()).unwrap();
    let answer = client.send_for_format("What is 25 + 17?", format()).await.unwrap();
    assert_eq!((answer.value, answer.tries), (json!({"n": 42}), 2));
    let requests = server.requests();
    for request in &requests {
        assert_eq!(alternatives(request.json()), ["add", "clock", "answer"]);
        let schema = &request.json()["response_format"]["json_schema"]["schema"];
        assert_eq!(
            schema["anyOf"][2]["properties"]["answer"]["properties"]["n"]["type"],
            "integer"
        );
    }
    assert_eq!(client.history().last().map(|last| last.text()).as_deref(), Some(r#"{"n": 42}"#));

    // A model that is not held may leave out the name.
    let answer = client.send_for_format("And one more?", format()).await.unwrap();
    assert_eq!(answer.value, json!({"n": 43}));
}

/// Otherwise nothing would constrain the calls.
#[tokio::test]
async fn prompt_mode_is_rejected_with_tools() {
    let server = MemoryServer::new([Reply::text(r#"{"n": 3}"#)]);
    let count = || {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        ResponseFormat::new("count", schema)
    };
    let mut client = Client::new(options(&server).build().unwrap()).unwrap();
    let error = client.send_for_format("How many?", count()).mode(OutputMode::Prompt).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().ends_with("use OutputMode::Auto"), "{error}");
    assert!(server.requests().is_empty() && client.history().is_empty());
    // Without tools there are no calls.
    client.set_tools(Vec::<FnTool>::new()).unwrap();
    let count = client.send_for_format("How many?", count()).mode(OutputMode::Prompt).await;
    assert_eq!(count.unwrap().value, json!({ "n": 3 }));
    let requests = server.requests();
    let request = requests[0].json();
    assert!(request.get("response_format").is_none() && request.get("tools").is_none());
}
