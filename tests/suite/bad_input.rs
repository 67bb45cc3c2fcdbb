//! Failures between a prompt and its answer. Each gives a clear error of its own kind that names the cause and
//! the amount received, within bounded memory.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use insta::assert_snapshot;
use oa_chat::{Limits, RetryConfig};
use oa_client::{AgentOptions, Error, ErrorKind, query};
use oa_testkit::{Cut, Framing, MemoryServer, Reply, Script, SocketServer};
use oa_types::ContentBlock;
use open_agent::list_models;
use serde_json::json;
use tower::service_fn;

/// The text before the error, and the error on one line.
async fn outcome(options: &AgentOptions) -> (String, Option<Error>) {
    let mut text = String::new();
    let mut answer = match query("Go on.", options).await {
        Ok(answer) => answer,
        Err(error) => return (text, Some(error)),
    };
    let mut failure = None;
    while let Some(block) = answer.next().await {
        match block {
            Ok(ContentBlock::Text(block)) => text.push_str(&block.text),
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
    }
    (text, failure)
}

fn line(text: &str, error: Option<&Error>) -> String {
    let Some(error) = error else { return format!("{text:?}, no error") };
    let mut line = format!("{text:?}, {:?}: {error}", error.kind());
    for (name, value) in [
        ("status", error.status().map(|status| status.to_string())),
        ("code", error.api_code().map(str::to_owned)),
        ("received", error.received().map(|received| received.to_string())),
        ("retry after", error.retry_after().map(|wait| format!("{wait:?}"))),
        ("timeout", error.timeout().map(|timeout| format!("{timeout:?}"))),
    ] {
        if let Some(value) = value {
            line += &format!(" [{name}: {value}]");
        }
    }
    if error.is_retryable() { line + " [retryable]" } else { line }
}

/// Returns the outcome of a request to a socket server with this reply, as a line.
async fn served(reply: Reply) -> String {
    let server = SocketServer::start(reply).await.expect("loopback sockets are there");
    let options = AgentOptions::builder().model("any").base_url(server.base_url());
    let options = options.retry(RetryConfig::none()).build();
    let (text, error) = outcome(&options.expect("the address is one")).await;
    line(&text, error.as_ref()).replace(&server.address().port().to_string(), "PORT")
}

fn refused(build: oa_client::Result<AgentOptions>) -> String {
    let error = build.expect_err("this cannot work");
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[test]
fn invalid_options_are_rejected_by_build() {
    let builder = || AgentOptions::builder().model("any");
    let url = |url: &str| refused(builder().base_url(url).build());
    assert_snapshot!(url("localhost:1234"), @r#"the base URL must begin with http:// or https://: "localhost:1234""#);
    assert_snapshot!(url("ftp://host/v1"), @r#"the base URL must begin with http:// or https://: "ftp://host/v1""#);
    assert_snapshot!(url("http:///v1"), @r#"the base URL has no host: "http:///v1""#);
    assert_snapshot!(url("http://host:port/v1"), @r#"the base URL has an invalid port (must be 0 to 65535): "http://host:port/v1""#);
    assert_snapshot!(url("http://me:secret@host/v1"), @r#"the base URL contains a user name or password (use api_key or header instead): "****@host/v1""#);
    assert_snapshot!(url("http://host/v1?key=1"), @r#"the base URL must not have a query or fragment: "http://host/v1?****""#);
    assert_snapshot!(url("http://host/v1\r\nx: y"), @r#"the base URL contains whitespace or control characters: "http://host/v1\r\nx: y""#);
    assert_snapshot!(refused(AgentOptions::builder().model(" ").build()), @"the model name is empty");
    assert_snapshot!(refused(AgentOptions::builder().model("a\nb").build()), @"the model name contains control characters");
    assert_snapshot!(refused(builder().temperature(2.5).build()), @"temperature must be from 0 to 2, not 2.5");
    assert_snapshot!(refused(builder().temperature(f32::NAN).build()), @"temperature must be from 0 to 2, not NaN");
    assert_snapshot!(refused(builder().top_p(0.0).build()), @"top_p must be above 0 and at most 1, not 0");
    assert_snapshot!(refused(builder().stop("").build()), @"a stop text must not be empty");
    assert_snapshot!(refused(builder().header("bad name", "x").build()), @r#"invalid header name: "bad name""#);
    assert_snapshot!(refused(builder().header("x-a", "b\r\nc: d").build()), @"the value of header x-a has invalid characters");
    assert_snapshot!(refused(builder().extra_body(json!([1])).build()), @"extra_body must be a JSON object");
    assert_snapshot!(refused(builder().extra_body(json!({"messages": []})).build()), @r#"extra_body may not set "messages""#);
    let own = MemoryServer::new(Script::new());
    assert_snapshot!(refused(builder().transport(own).connect_timeout(1).build()), @"connect_timeout has no effect on your own transport");
}

#[tokio::test]
async fn an_empty_prompt_is_not_sent() {
    let options = AgentOptions::builder().model("any").build().unwrap();
    for prompt in ["", "  \n"] {
        let error = query(prompt, &options).await.unwrap_err();
        assert_eq!(
            (error.kind(), &*error.to_string()),
            (ErrorKind::InvalidInput, "the prompt is empty")
        );
    }
}

#[tokio::test]
async fn unreachable_servers_are_named() {
    let server = SocketServer::start(Script::new()).await.unwrap();
    let base_url = server.base_url();
    let port = server.address().port().to_string();
    server.stop().await;
    let options = AgentOptions::builder().model("any").base_url(base_url).build().unwrap();
    let (text, error) = outcome(&options).await;
    let line = line(&text, error.as_ref()).replace(&port, "PORT");
    assert_snapshot!(line, @r#""", Connect: cannot connect to 127.0.0.1:PORT: connection refused [received: 0] [retryable]"#);
}

#[tokio::test]
async fn error_statuses_quote_the_server() {
    let error = |status, body: serde_json::Value| served(Reply::json(status, body));
    assert_snapshot!(error(401, json!({"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}})).await, @r#""", Api: the server answered 401 Unauthorized: Invalid API Key [status: 401] [code: authentication_error]"#);
    assert_snapshot!(error(404, json!({"error": "model \"x\" not found, pull it first"})).await, @r#""", Api: the server answered 404 Not Found: model "x" not found, pull it first [status: 404]"#);
    assert_snapshot!(error(422, json!({"detail": [{"loc": ["body"], "msg": "field required"}]})).await, @r#""", Api: the server answered 422 Unprocessable Entity: field required [status: 422]"#);
    assert_snapshot!(served(Reply::error(503, "Loading model").header("retry-after", "2")).await, @r#""", Api: the server answered 503 Service Unavailable: Loading model [status: 503] [code: server_error] [retry after: 2s] [retryable]"#);
    assert_snapshot!(served(Reply::error(429, "slow down").header("retry-after-ms", "1500")).await, @r#""", Api: the server answered 429 Too Many Requests: slow down [status: 429] [code: invalid_request_error] [retry after: 1.5s] [retryable]"#);
    assert_snapshot!(served(Reply::error(429, "slow down").header("retry-after-ms", "soon").header("retry-after", "3")).await, @r#""", Api: the server answered 429 Too Many Requests: slow down [status: 429] [code: invalid_request_error] [retry after: 3s] [retryable]"#);
    assert_snapshot!(served(Reply::error(429, "slow down").header("retry-after", "99999999999999999999999")).await, @r#""", Api: the server answered 429 Too Many Requests: slow down [status: 429] [code: invalid_request_error] [retry after: 18446744073709551615.999999999s] [retryable]"#);
    assert_snapshot!(served(Reply::body(200, "text/event-stream", "\u{1f}\u{8b}").header("content-encoding", "gzip")).await, @r#""", Stream: the answer uses gzip compression, which was not requested: check for a proxy that compresses, or decompress in your own transport [received: 0]"#);
    assert_snapshot!(served(Reply::body(502, "text/html", "\u{1f}\u{8b}").header("content-encoding", "Br")).await, @r#""", Api: the server answered 502 Bad Gateway (its body uses br compression, which was not requested) [status: 502] [retryable]"#);
    assert_snapshot!(served(Reply::text("Hello").header("content-encoding", "identity")).await, @r#""Hello", no error"#);
    let gzip = |status| {
        Reply::raw(format!(
            "HTTP/1.1 {status}\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\n\u{1f}\u{8b}\r\n0\r\n\r\n"
        ))
    };
    assert_snapshot!(served(gzip("200 OK")).await, @r#""", Stream: the response from 127.0.0.1:PORT has a transfer coding that was not requested: gzip (check for a proxy that compresses) [received: 0]"#);
    assert_snapshot!(served(gzip("502 Bad Gateway")).await, @r#""", Api: the server answered 502 Bad Gateway (its body uses gzip compression, which was not requested) [status: 502] [retryable]"#);
    assert_snapshot!(error(500, json!({"error": {"message": "Jinja Exception: roles must alternate"}})).await, @r#""", Api: the server answered 500 Internal Server Error: Jinja Exception: roles must alternate [status: 500]"#);
    let overflow = json!({"error": {"code": 400, "message": "request (19185 tokens) exceeds the available context size (16384 tokens)", "type": "exceed_context_size_error", "n_prompt_tokens": 19185, "n_ctx": 16384}});
    assert_snapshot!(error(400, overflow).await, @r#""", ContextOverflow: the server answered 400 Bad Request: request (19185 tokens) exceeds the available context size (16384 tokens) [status: 400] [code: exceed_context_size_error]"#);
    let page = "<html><head><title>502 Bad Gateway</title><script>let x = '<p>';</script></head><body><h1>502 Bad Gateway</h1></body></html>";
    assert_snapshot!(served(Reply::body(502, "text/html", page)).await, @r#""", Api: the server answered 502 Bad Gateway: 502 Bad Gateway 502 Bad Gateway [status: 502] [retryable]"#);
    assert_snapshot!(served(Reply::body(302, "text/plain", "").header("location", "http://elsewhere/")).await, @r#""", Api: the server answered 302 Found, and redirects are not followed: set base_url to the final address (it redirects to http://elsewhere/) [status: 302]"#);
}

#[tokio::test]
async fn missing_v1_is_suggested_on_unknown_paths() {
    let unknown = r#"{"error": "Unexpected endpoint or method. (POST /chat/completions)"}"#;
    let page = "<html><body>Welcome to Open WebUI</body></html>";
    let mut lines = Vec::new();
    for (status, content_type, body) in [
        (404, "application/json", r#"{"detail": "Not Found"}"#),
        (405, "text/plain", ""),
        (200, "text/html", page),
        (200, "application/json", unknown),
        // The address is not mentioned.
        (200, "text/event-stream", ""),
        (401, "text/plain", "who are you"),
    ] {
        let service = service_fn(move |_| async move {
            let response = Response::builder().status(status).header("content-type", content_type);
            response.body(Full::new(Bytes::from(body)))
        });
        for base_url in ["http://gpu:8080", "http://gpu:8080/v1"] {
            let options = AgentOptions::builder().model("any").base_url(base_url);
            let options = options.transport(service).retry(RetryConfig::none()).build().unwrap();
            let (text, error) = outcome(&options).await;
            lines.push(line(&text, error.as_ref()));
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    "", Api: the server answered 404 Not Found: Not Found (base_url is http://gpu:8080; most servers need /v1 at the end) [status: 404]
    "", Api: the server answered 404 Not Found: Not Found [status: 404]
    "", Api: the server answered 405 Method Not Allowed (base_url is http://gpu:8080; most servers need /v1 at the end) [status: 405]
    "", Api: the server answered 405 Method Not Allowed [status: 405]
    "", Stream: expected an event stream, got 47 bytes of text/html: Welcome to Open WebUI (base_url is http://gpu:8080; most servers need /v1 at the end) [received: 47]
    "", Stream: expected an event stream, got 47 bytes of text/html: Welcome to Open WebUI [received: 47]
    "", Api: the server reported an error: Unexpected endpoint or method. (POST /chat/completions) (base_url is http://gpu:8080; most servers need /v1 at the end) [received: 68]
    "", Api: the server reported an error: Unexpected endpoint or method. (POST /chat/completions) [received: 68]
    "", Stream: the server answered with a success status and an empty body [received: 0]
    "", Stream: the server answered with a success status and an empty body [received: 0]
    "", Api: the server answered 401 Unauthorized: who are you [status: 401]
    "", Api: the server answered 401 Unauthorized: who are you [status: 401]
    "#);
}

#[tokio::test]
async fn a_success_without_an_answer_is_an_error() {
    assert_snapshot!(served(Reply::body(200, "text/html", "<html><body><p>Log in to <b>Wifi</b></p></body></html>")).await, @r#""", Stream: expected an event stream, got 54 bytes of text/html: Log in to Wifi [received: 54]"#);
    assert_snapshot!(served(Reply::body(200, "text/event-stream", "")).await, @r#""", Stream: the server answered with a success status and an empty body [received: 0]"#);
    assert_snapshot!(served(Reply::body(200, "text/event-stream", "data: [DONE]\n\n")).await, @r#""", Stream: the stream ended without an answer after 14 bytes [received: 14]"#);
    // Not the error's own form, as an exception in a web framework has it.
    assert_snapshot!(served(Reply::body(200, "text/event-stream; charset=utf-8", ": hi\n\ndata: {\"detail\": \"the model crashed\"}\n\ndata: [DONE]\n\n")).await, @r#""", Api: the server reported an error: the model crashed [received: 59]"#);
    let begun = r#"{"choices": [{"delta": {"role": "assistant"}}]}"#;
    assert_snapshot!(served(Reply::body(200, "text/event-stream", format!("data: {begun}\n\ndata: {{\"status\": \"worker lost\"}}\n\n"))).await, @r#""", Stream: the stream ended without an answer after 88 bytes: worker lost [received: 88]"#);
    assert_snapshot!(served(Reply::body(200, "text/event-stream", "data: oops\n\n")).await, @r#""", Stream: no part of the answer could be read: not JSON at byte 0: "oops" [received: 12]"#);
    assert_snapshot!(served(Reply::body(200, "application/json", "{\"choices\": [{\"mess")).await, @r#""", Stream: no part of the answer could be read: not JSON at byte 14: "{\"choices\": [{\"mess" [received: 19]"#);
}

#[tokio::test]
async fn json_answers_need_no_content_type() {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}).to_string();
    for content_type in ["application/json", "text/event-stream", "text/plain"] {
        let reply = Reply::body(200, content_type, body.clone()).cut(Cut::Every(3));
        assert_eq!(served(reply).await, r#""Hello", no error"#, "{content_type}");
    }
}

#[tokio::test]
async fn stream_errors_follow_earlier_text() {
    let error = json!({"error": {"code": 500, "message": "out of memory", "type": "server_error"}});
    let reply = Reply::new().say("Half an").event(error).without_finish().without_done();
    assert_snapshot!(served(reply).await, @r#""Half an", Api: the server reported an error: out of memory [code: server_error] [received: 768]"#);
}

#[tokio::test]
async fn broken_answers_report_received_bytes() {
    let text = "word ".repeat(100);
    let shorter = |line: String| line.replacen("word ", "", 1).replace("word ", "");
    assert_snapshot!(shorter(served(Reply::text(&text).close_after(3000)).await), @r#""word", Stream: the response from 127.0.0.1:PORT broke off after 3000 bytes: connection closed before the end [received: 3000]"#);
    assert_snapshot!(shorter(served(Reply::text(&text).reset_after(3000)).await), @r#""word", Stream: the response from 127.0.0.1:PORT broke off after 3000 bytes: connection reset [received: 3000]"#);
    assert_snapshot!(served(Reply::text(&text).framing(Framing::Length).close_after(0)).await, @r#""", Stream: the response from 127.0.0.1:PORT broke off after 0 bytes: connection closed, 17491 bytes expected [received: 0] [retryable]"#);
    assert_snapshot!(served(Reply::hang_up()).await, @r#""", Stream: 127.0.0.1:PORT closed the connection before responding [received: 0] [retryable]"#);
    assert_snapshot!(served(Reply::raw("SSH-2.0-OpenSSH_9.6\r\n")).await, @r#""", Stream: the response from 127.0.0.1:PORT is not HTTP/1.1 [received: 0]"#);
}

#[tokio::test]
async fn streams_without_any_end_are_unspecified() {
    let server =
        SocketServer::start(Reply::text("Hello").without_finish().without_done()).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url()).build().unwrap();
    let mut answer = query("Go on.", &options).await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "Hello");
    assert_eq!(answer.finish_reason().unwrap().as_str(), "unspecified");
}

#[test]
fn a_huge_line_stays_within_memory() {
    let body = Bytes::from([b"data: ".to_vec(), vec![b'x'; 100 << 20]].concat());
    let server = MemoryServer::new(Reply::sse(body).cut(Cut::Every(64 << 10)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let options = AgentOptions::builder().model("any").transport(server).build().unwrap();
    let mut seen = String::new();
    let memory = allocation_counter::measure(|| {
        let (text, error) = runtime.block_on(outcome(&options));
        seen = line(&text, error.as_ref());
    });
    assert_snapshot!(seen, @r#""", Limit: an event is larger than the limit of 8388608 bytes; 8404992 bytes arrived [received: 8404992]"#);
    // The limit, twice while the buffer grows, and a little more.
    assert!(memory.bytes_max < 3 * (8 << 20), "{} bytes", memory.bytes_max);
}

#[tokio::test]
async fn exceeded_limits_are_named() {
    let mut limits = Limits::default();
    limits.answer.text_bytes = 40;
    limits.answer.calls = 1;
    limits.answer.argument_bytes = 30;
    let ask = async |reply: Reply| {
        let server = MemoryServer::new(reply);
        let options =
            AgentOptions::builder().model("any").limits(limits).transport(server).build().unwrap();
        let (text, error) = outcome(&options).await;
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Limit);
        format!("{text:?}: {}", error.to_string().split(';').next().unwrap_or_default())
    };
    assert_snapshot!(ask(Reply::text("one two three four five six seven eight nine ten")).await, @r#""one two three four five six seven eight": the text of the answer is longer than the limit of 40 bytes"#);
    assert_snapshot!(ask(Reply::new().call("a", json!({})).call("b", json!({}))).await, @r#""": the answer has more tool calls than the limit of 1"#);
    assert_snapshot!(ask(Reply::new().call("a", json!({"text": "x".repeat(40)}))).await, @r#""": the arguments of a tool call are longer than the limit of 30 bytes"#);
}

#[tokio::test(start_paused = true)]
async fn timeouts_name_their_kind() {
    let ask = async |reply: Reply| {
        let options = AgentOptions::builder().model("any").transport(MemoryServer::new(reply));
        let options =
            options.timeout(10).content_timeout(20).first_token_timeout(30).total_timeout(60);
        let (text, error) = outcome(&options.build().unwrap()).await;
        line(&text, error.as_ref())
    };
    let second = Duration::from_secs(1);
    assert_snapshot!(ask(Reply::silence()).await, @r#""", Timeout: the answer did not begin within 30s [received: 0] [timeout: FirstToken]"#);
    assert_snapshot!(ask(Reply::text("a b").delay_head(31 * second)).await, @r#""", Timeout: the answer did not begin within 30s [received: 0] [timeout: FirstToken]"#);
    assert_snapshot!(ask(Reply::text("a b").stall_after(0)).await, @r#""", Timeout: the answer did not begin within 30s [received: 0] [timeout: FirstToken]"#);
    assert_snapshot!(ask(Reply::text("a b c d").stall_after(400)).await, @r#""a", Timeout: the answer stalled for 10s after 400 bytes [received: 400] [timeout: Idle]"#);
    assert_snapshot!(ask(Reply::text("a b c d e f g h i j k l m n o p").delay(9 * second)).await, @r#""a b c d e", Timeout: the answer did not end within 60s; 1006 bytes arrived [received: 1006] [timeout: Total]"#);
    // Empty chunks end a silence but are not content.
    let empty = || json!({"choices": []});
    let quiet = Reply::text("a b").event(empty()).event(empty()).event(empty());
    let quiet = ask(quiet.delay_first(5 * second).delay(9 * second)).await;
    assert!(quiet.starts_with(r#""a b", Timeout: no content arrived for 20s"#), "{quiet}");
    assert!(quiet.ends_with("[timeout: Content]"), "{quiet}");
}

#[tokio::test]
async fn a_missing_model_list_is_an_error() {
    let server = SocketServer::start(Script::new()).await.unwrap();
    let base_url = server.base_url().replace("/v1", "/nothing");
    let options = AgentOptions::builder().model("any").base_url(base_url).build().unwrap();
    let error = list_models(&options).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(404)));
    let options = AgentOptions::builder().model("any").base_url(server.base_url()).build().unwrap();
    assert_eq!(list_models(&options).await.unwrap(), ["test-model"]);
}
