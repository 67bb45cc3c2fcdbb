//! Requests that every server accepts, and requests that some server rejects.

mod messages;

use insta::assert_snapshot;
use oa_testkit::{MemoryServer, Reply, Script, SocketServer, Strict};
use serde_json::{Value, json};

use crate::client::{Client, ask_memory, plain, post, streamed};

#[track_caller]
fn good(rules: &Strict, request: &Value) {
    if let Err(violations) = rules.check(request) {
        panic!("{violations}\nin {request:#}");
    }
    assert!(rules.check_bytes(request.to_string().as_bytes()).is_ok());
}

/// Checks for exactly this message, for bytes and for parsed JSON.
#[track_caller]
fn bad(rules: &Strict, request: &Value, lines: &[&str]) {
    let violations = rules.check(request).expect_err("something is wrong");
    let said: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(said, lines, "in {request:#}");
    assert_eq!(violations.to_string(), lines.join("\n"));
    assert_eq!(rules.check_bytes(request.to_string().as_bytes()), Err(violations));
}

/// Sets a value at a path of `request`, creating the last member if needed; a `null` is set too.
#[track_caller]
fn with(mut request: Value, path: &str, value: Value) -> Value {
    let (object, name) = path.rsplit_once('/').expect("a path");
    let object = request.pointer_mut(object).unwrap_or_else(|| panic!("nothing at {path}"));
    match name.parse::<usize>() {
        Ok(index) => object[index] = value,
        Err(_) => object[name] = value,
    }
    request
}

#[track_caller]
fn without(mut request: Value, path: &str) -> Value {
    let (object, name) = path.rsplit_once('/').expect("a path");
    let object = request.pointer_mut(object).and_then(Value::as_object_mut).expect("an object");
    object.remove(name).expect("a member");
    request
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    let function = json!({ "name": name, "arguments": arguments });
    json!({ "id": id, "type": "function", "function": function })
}

fn calls(calls: Value) -> Value {
    json!({ "role": "assistant", "content": "", "tool_calls": calls })
}

fn result(id: &str, name: &str) -> Value {
    json!({ "role": "tool", "content": "3", "tool_call_id": id, "name": name })
}

fn user() -> Value {
    json!({ "role": "user", "content": "What is 1 + 2?" })
}

fn assistant() -> Value {
    json!({ "role": "assistant", "content": "It is 3." })
}

fn system() -> Value {
    json!({ "role": "system", "content": "Be brief." })
}

fn conversation(messages: Value) -> Value {
    json!({ "model": "test", "messages": messages })
}

fn tool(name: &str) -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": ["number", "null"], "default": null } },
        "required": ["a"],
    });
    let function = json!({ "name": name, "description": "Adds", "parameters": schema });
    json!({ "type": "function", "function": function })
}

/// A request with every member.
fn full() -> Value {
    let picture = json!([
        { "type": "text", "text": "And this?" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA", "detail": "low" } },
        { "type": "image_url", "image_url": { "url": "https://example.com/a.png" } },
    ]);
    let (one, two) = (call("a", "add", "{\"a\": 1}"), call("b", "sub", "{}"));
    json!({
        "model": "test",
        "messages": [
            system(),
            user(),
            calls(json!([one, two])),
            result("a", "add"),
            result("b", "sub"),
            { "role": "assistant", "content": null, "tool_calls": [call("c", "add", " {} ")] },
            result("c", "add"),
            assistant(),
            { "role": "user", "content": picture },
            { "role": "assistant", "tool_calls": [call("d", "add", "{}")] },
            { "role": "tool", "content": "", "tool_call_id": "d", "name": "add" },
        ],
        "stream": true,
        "stream_options": { "include_usage": true },
        "tools": [tool("add"), tool("sub")],
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "max_tokens": 100,
        "temperature": 0.7,
        "top_p": 1,
        "frequency_penalty": -2,
        "presence_penalty": 2.0,
        "n": 1,
        "seed": 7,
        "stop": ["a", "b"],
        "logprobs": true,
        "top_logprobs": 2,
        "logit_bias": { "50256": -100 },
        "user": "somebody",
        "response_format": { "type": "json_schema", "json_schema": { "name": "x", "schema": {} } },
    })
}

#[test]
fn good_requests_pass() {
    let strict = Strict::new();
    good(&strict, &plain());
    good(&strict, &streamed());
    good(&strict, &full());
    good(&strict, &without(with(full(), "/max_completion_tokens", json!(5)), "/max_tokens"));
    good(&strict, &with(full(), "/stop", json!("a")));
    good(&strict, &with(full(), "/response_format", json!({ "type": "json_object" })));
    // After results, the user may speak.
    let open = json!([user(), calls(json!([call("a", "add", "{}")])), result("a", "add"), user()]);
    good(&strict, &conversation(open));
}

#[test]
fn nonportable_members_are_rejected() {
    let strict = Strict::new();
    for (path, value, line) in [
        ("/model", json!(""), "model is empty"),
        ("/model", json!(7), "model is not a string"),
        ("/messages", json!({}), "messages is not a list"),
        ("/messages", json!([]), "messages is empty"),
        ("/top_k", json!(5), "top_k is not known to every server"),
        ("/seed", json!(null), "seed is null"),
        ("/seed", json!(-1), "seed is not a whole number from 0 to 9223372036854775807"),
        ("/seed", json!(u64::MAX), "seed is not a whole number from 0 to 9223372036854775807"),
        ("/max_tokens", json!(0), "max_tokens is not a whole number from 1 to 9223372036854775807"),
        (
            "/max_tokens",
            json!(1.5),
            "max_tokens is not a whole number from 1 to 9223372036854775807",
        ),
        ("/n", json!(0), "n is not a whole number from 1 to 128"),
        ("/top_logprobs", json!(21), "top_logprobs is not a whole number from 0 to 20"),
        ("/logprobs", json!(false), "top_logprobs requires logprobs"),
        ("/temperature", json!(2.1), "temperature is not a number from 0 to 2"),
        ("/temperature", json!("1"), "temperature is not a number from 0 to 2"),
        ("/top_p", json!(0), "top_p is not a number above 0 and up to 1"),
        ("/frequency_penalty", json!(3), "frequency_penalty is not a number from -2 to 2"),
        ("/presence_penalty", json!(-3), "presence_penalty is not a number from -2 to 2"),
        (
            "/max_completion_tokens",
            json!(5),
            "max_tokens cannot be combined with max_completion_tokens",
        ),
        ("/stop", json!(""), "stop is empty"),
        ("/stop", json!([]), "stop is empty"),
        ("/stop", json!(["a", ""]), "stop[1] is empty"),
        ("/stop", json!(["a", "b", "c", "d", "e"]), "stop has more than 4 entries"),
        ("/stop", json!(7), "stop is not a string"),
        ("/user", json!(7), "user is not a string"),
        ("/logit_bias", json!([]), "logit_bias is not an object"),
        ("/logit_bias", json!({ "1": 101 }), "logit_bias.1 is not a number from -100 to 100"),
        ("/parallel_tool_calls", json!(1), "parallel_tool_calls is not a boolean"),
        ("/stream", json!(false), "stream_options requires stream"),
        ("/stream_options", json!(true), "stream_options is not an object"),
        ("/stream_options", json!({}), "stream_options is empty"),
        (
            "/stream_options/include_usage",
            json!("yes"),
            "stream_options.include_usage is not a boolean",
        ),
        (
            "/stream_options/chunk_size",
            json!(7),
            "stream_options.chunk_size is not known to every server",
        ),
        ("/response_format", json!("json"), "response_format is not an object"),
        ("/response_format", json!({}), "response_format has no type"),
        (
            "/response_format/type",
            json!("xml"),
            "response_format.type is \"xml\": json_object, json_schema, text",
        ),
        (
            "/response_format",
            json!({ "type": "json_schema" }),
            "response_format has no json_schema",
        ),
        (
            "/response_format/json_schema",
            json!({ "name": "x" }),
            "response_format.json_schema has no schema",
        ),
        (
            "/response_format/json_schema",
            json!({ "schema": {} }),
            "response_format.json_schema has no name",
        ),
    ] {
        let lines: &[&str] = match line {
            // A wrong type also makes its schema wrong.
            _ if line.contains("xml") => &[line, "response_format has a schema but another type"],
            _ => &[line],
        };
        bad(&strict, &with(full(), path, value), lines);
    }
    bad(&strict, &json!([]), &["the request is not an object"]);
    bad(&strict, &json!({}), &["the request has no model", "the request has no messages"]);
    bad(&strict, &without(full(), "/stream"), &["stream_options requires stream"]);
}

#[test]
fn nonportable_tools_are_rejected() {
    let strict = Strict::new();
    let name = "tools[0].function.name";
    for (path, value, line) in [
        ("/tools", json!([]), "tools is empty"),
        ("/tools", json!({}), "tools is not a list"),
        ("/tools/0", json!("add"), "tools[0] is not an object"),
        ("/tools/0/type", json!("retrieval"), "tools[0].type is \"retrieval\": function"),
        ("/tools/0/name", json!("add"), "tools[0].name is not known to every server"),
        (
            "/tools/1/function/name",
            json!("add"),
            "tools[1].function.name is also the name of an earlier tool",
        ),
        (
            "/tools/0/function/name",
            json!(""),
            &*format!("{name} is \"\": 1 to 64 letters, digits, _ and -"),
        ),
        (
            "/tools/0/function/name",
            json!("a.b"),
            &*format!("{name} is \"a.b\": 1 to 64 letters, digits, _ and -"),
        ),
        (
            "/tools/0/function/description",
            json!(7),
            "tools[0].function.description is not a string",
        ),
        ("/tools/0/function/strict", json!(1), "tools[0].function.strict is not a boolean"),
        (
            "/tools/0/function/parameters",
            json!({}),
            "tools[0].function.parameters is not the schema of an object",
        ),
        (
            "/tools/0/function/parameters",
            json!({ "type": "object", "properties": [] }),
            "tools[0].function.parameters.properties is not an object",
        ),
        (
            "/tools/0/function/parameters/required",
            json!("a"),
            "tools[0].function.parameters.required is not a list",
        ),
        (
            "/tools/0/function/parameters/required",
            json!(["a", "b"]),
            "tools[0].function.parameters.required[1] is not the name of a property",
        ),
        ("/tool_choice", json!("any"), "tool_choice is \"any\": auto, none or required"),
        ("/tool_choice", json!({ "type": "function" }), "tool_choice is not a string"),
    ] {
        bad(&strict, &with(full(), path, value), &[line]);
    }
    bad(&strict, &without(full(), "/tools/0/function/name"), &["tools[0].function has no name"]);
    bad(&strict, &without(full(), "/tools/0/function"), &["tools[0] has no function"]);
    bad(&strict, &without(full(), "/tools/0/type"), &["tools[0] has no type"]);
    let path = "/tools/0/function/parameters";
    bad(&strict, &without(full(), path), &["tools[0].function has no parameters"]);
    let lines = ["tool_choice requires tools", "parallel_tool_calls requires tools"];
    bad(&strict, &without(full(), "/tools"), &lines);

    let named = Strict::new().allow_named_tool_choice();
    let choice = |name| json!({ "type": "function", "function": { "name": name } });
    good(&named, &with(full(), "/tool_choice", choice("add")));
    let line = "tool_choice.function.name is not the name of a tool";
    bad(&named, &with(full(), "/tool_choice", choice("mul")), &[line]);
    bad(&named, &with(full(), "/tool_choice", json!(7)), &["tool_choice is not an object"]);
}

#[test]
fn members_can_be_let_in() {
    let request = with(full(), "/top_k", json!(5));
    let request = with(request, "/messages/7/reasoning_content", json!("hm"));
    let request = with(request, "/messages/2/tool_calls/1/extra_content", json!({ "a": null }));
    let lines = [
        "top_k is not known to every server",
        "messages[2].tool_calls[1].extra_content is not known to every server",
        "messages[7].reasoning_content is not known to every server",
    ];
    bad(&Strict::new(), &request, &lines);
    let rules = Strict::new()
        .allow_member("top_k")
        .allow_member("messages[].reasoning_content")
        .allow_member("messages[].tool_calls[].extra_content");
    good(&rules, &request);
    bad(&rules, &with(request, "/top_k", json!(null)), &["top_k is null"]);
}

#[test]
fn bytes_are_read_more_strictly() {
    #[track_caller]
    fn check(body: &[u8], lines: &[&str]) {
        let violations = Strict::new().check_bytes(body).expect_err("something is wrong");
        let said: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(said, lines);
    }
    check(b"{\"model\": \"\xff\"}", &["the request is not UTF-8 from byte 11"]);
    check(b"", &["the request is not JSON: EOF while parsing a value at line 1 column 0"]);
    check(b"{} {}", &["the request is not JSON: trailing characters at line 1 column 4"]);
    check(b"\xef\xbb\xbf{}", &["the request is not JSON: expected value at line 1 column 1"]);
    check(
        br#"{"model": "{\"a\", \\", "mod\u0065l": "x", "messages": [
            {"role": "user", "content": "a\\\",\"b"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "x", "name": "x", "arguments": "{}"}}
            ]},
            {"role": "tool", "content": "3", "tool_call_id": "a", "name": "x", "content": "{"}
        ]}"#,
        &[
            "model appears twice",
            "messages[1].tool_calls[0].function.name appears twice",
            "messages[2].content appears twice",
        ],
    );
    let violations = Strict::new().check_bytes(b"{").expect_err("half");
    assert_eq!(violations[0].path(), "");
}

#[tokio::test]
async fn a_strict_server_refuses_and_tells() {
    let script = Script::from(Reply::text("It is late.")).strict();
    let server = MemoryServer::new(script);
    let request = with(streamed(), "/tools", json!([]));
    let request = with(request, "/messages/0/content", json!(""));
    let (status, _, body) = ask_memory(&server, &request).await.expect("an answer");
    assert_eq!(status, 400);
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(
        body,
        json!({ "error": {
            "message": "messages[0].content is empty\ntools is empty",
            "type": "invalid_request_error",
            "param": "messages[0].content",
            "code": 400,
        } })
    );

    // The reply waits for a valid request.
    let (status, ..) = ask_memory(&server, &streamed()).await.expect("an answer");
    assert_eq!(status, 200);
    std::panic::catch_unwind(|| server.verify()).expect_err("a problem");
    assert_snapshot!(server.story(), @r#"
    scripted:
      1. text "It is late." -> request 2
    asked:
      1. POST /v1/chat/completions, model "test", streamed, 1 message (user ""), 0 tools, authorization: Bearer **** -> status 400
      2. POST /v1/chat/completions, model "test", streamed, 1 message (user "What is the time?"), authorization: Bearer **** -> reply 1
    wrong:
      - request 1 is refused:
        messages[0].content is empty
        tools is empty
    "#);
}

#[tokio::test]
async fn strict_socket_server_takes_custom_rules() {
    let rules = Strict::new().allow_member("top_k");
    let script = Script::new().otherwise(Reply::text("It is late.")).strict_by(rules);
    let server = SocketServer::start(script).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    client.send(&post(&with(plain(), "/top_k", json!(5)))).await;
    assert_eq!(client.answer().await.expect("an answer").0, 200);
    server.verify();
    client.send(&post(&with(plain(), "/top_j", json!(5)))).await;
    assert_eq!(client.answer().await.expect("an answer").0, 400);
    std::panic::catch_unwind(|| server.verify()).expect_err("a problem");
}
