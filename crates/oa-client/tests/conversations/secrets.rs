//! A key appears only in its own header, whatever a server sends and whatever is printed.

use std::fmt::Debug;

use oa_chat::{ChatRequest, Endpoint, RetryConfig};
use oa_client::{AgentOptions, AgentOptionsBuilder, Client, Error, query};
use oa_testkit::{MemoryServer, Reply, Script, SocketServer};
use oa_tools::{ToolError, tool};
use serde_json::json;
use tower::Service;

use crate::log::Lines;
use suite::talk::models;

const KEY: &str = "sk-0123456789abcdef-top-secret";
const HEADER: &str = "Basic dXNlcjpzZWNyZXQgd29yZA==";

/// Everything that was shown.
#[derive(Default)]
struct Shown(String);

impl Shown {
    fn add(&mut self, shown: &dyn Debug) {
        self.0 += &format!("{shown:?}\n{shown:#?}\n");
    }

    fn add_error(&mut self, error: &Error) {
        self.add(error);
        let mut error: Option<&dyn std::error::Error> = Some(error);
        while let Some(cause) = error {
            self.0 += &format!("{cause}\n");
            error = cause.source();
        }
    }

    fn check(&self) {
        for secret in [KEY, HEADER, "dXNlcjpzZWNyZXQgd29yZA=="] {
            let at = self.0.find(secret);
            let around = at.map(|at| &self.0[at.saturating_sub(200)..at]);
            assert!(at.is_none(), "{secret} after {around:?}");
        }
    }
}

fn options() -> AgentOptionsBuilder {
    let look = tool("look", "Look").build(|_| async { Err(ToolError::new("it is dark")) });
    let options = AgentOptions::builder().model("any").api_key(KEY).header("x-proxy", HEADER);
    options.tool(look).auto_execute_tools(true).retry(RetryConfig::none())
}

/// Returns replies of servers that echo what they were sent.
fn echoes() -> Vec<Reply> {
    let words = format!("wrong key {KEY}, and {HEADER} does not help");
    let error = json!({"message": words, "code": KEY, "type": HEADER, KEY: [words]});
    let event = json!({ "error": error }).to_string();
    vec![
        Reply::error(401, error.clone()),
        Reply::error(403, words.clone()).header("x-request-id", KEY),
        Reply::body(502, "text/html", format!("<html><p>{words}</p></html>")),
        Reply::body(200, "text/html", format!("<html><p>{words}</p></html>")),
        Reply::body(200, "application/json", event.clone()),
        Reply::sse(format!("data: {event}\n\n")),
        Reply::sse(format!("data: {words}\n\ndata: [DONE]\n\n")),
        Reply::text("Some words.").event(json!({ "error": error })),
        Reply::text("Some words.").event(json!({ "error": words })),
        Reply::sse(format!(": {words}\n\ndata: {{\"choices\": [{words}\n\n")),
        Reply::hang_up(),
    ]
}

#[tokio::test]
async fn keys_echoed_by_servers_are_masked() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let mut shown = Shown::default();
    for reply in echoes() {
        let call = Reply::new().call("look", json!({}));
        let script = Script::from([call, reply.clone()]).otherwise(reply.clone());
        let server = MemoryServer::new(script.get("/v1/models", reply));
        let options = options().transport(server.clone());
        shown.add(&options);
        let options = options.build().unwrap();
        shown.add(&options);
        let mut client = Client::new(options.clone()).unwrap();
        shown.add(&client);
        client.send("Look.").await.unwrap();
        loop {
            match client.next_event().await {
                Ok(Some(event)) => shown.add(&event),
                Ok(None) => break,
                Err(error) => {
                    shown.add_error(&error);
                    break;
                }
            }
            shown.add(&client);
        }
        shown.add(&(client.history(), client.turn_metadata(), client.message()));
        match query("Look.", &options).await {
            Ok(mut answer) => {
                while let Some(block) = answer.next().await {
                    match block {
                        Ok(block) => shown.add(&block),
                        Err(error) => shown.add_error(&error),
                    }
                    shown.add(&answer);
                }
                shown.add(&answer);
            }
            Err(error) => shown.add_error(&error),
        }
        if let Err(error) = models(&options).await {
            shown.add_error(&error);
        }
        for request in server.requests().iter().skip(1) {
            assert_eq!(request.headers()["authorization"], format!("Bearer {KEY}"));
            assert_eq!(request.headers()["x-proxy"], HEADER);
        }
    }
    let log = (lines.take_spans(), lines.take_lines());
    assert!(log.0.len() > 20, "{log:#?}");
    shown.add(&log);
    shown.check();
}

#[tokio::test]
async fn keys_are_masked_with_or_without_a_scheme() {
    let said = |set: fn(AgentOptionsBuilder) -> AgentOptionsBuilder| {
        let words = "wrong: Bearer sk-12345, sk-12345, short, dXNlcjpwYXNz, client-0123456789, a plain word";
        let server = MemoryServer::new(Script::new().otherwise(Reply::error(401, words)));
        let options = AgentOptions::builder().model("any").transport(server);
        let options = set(options).build().expect("these can work");
        async move { query("Hi.", &options).await.expect_err("401").to_string() }
    };
    let mut errors = Vec::new();
    for asked in [
        said(|options| options),
        said(|options| options.api_key("sk-12345")),
        said(|options| options.header("Authorization", "Bearer sk-12345")),
        said(|options| options.header("authorization", "Basic dXNlcjpwYXNz")),
        said(|options| options.header("api-key", "sk-12345")),
        said(|options| options.header("x-proxy", "Id client-0123456789")),
        // Indistinguishable from words.
        said(|options| options.api_key("short").header("x-proxy", "sk-12345")),
    ] {
        errors.push(asked.await.replace("the server answered 401 Unauthorized: wrong: ", ""));
    }
    insta::assert_snapshot!(errors.join("\n"), @r"
    Bearer sk-12345, sk-12345, short, dXNlcjpwYXNz, client-0123456789, a plain word
    Bearer ****, ****, short, dXNlcjpwYXNz, client-0123456789, a plain word
    ****, ****, short, dXNlcjpwYXNz, client-0123456789, a plain word
    Bearer sk-12345, sk-12345, short, ****, client-0123456789, a plain word
    Bearer ****, ****, short, dXNlcjpwYXNz, client-0123456789, a plain word
    Bearer sk-12345, sk-12345, short, dXNlcjpwYXNz, ****, a plain word
    Bearer sk-12345, sk-12345, short, dXNlcjpwYXNz, client-0123456789, a plain word
    ");
}

#[tokio::test]
async fn connection_errors_mask_keys() {
    let mut shown = Shown::default();
    let nobody = AgentOptions::builder().model("any").base_url("http://127.0.0.1:9/v1");
    let nobody = nobody.api_key(KEY).header("x-proxy", HEADER).retry(RetryConfig::none());
    shown.add_error(&query("Hi.", &nobody.build().unwrap()).await.unwrap_err());
    for reply in [
        Reply::reset(),
        Reply::raw(format!("HTTP/1.1 200 OK\r\n{KEY}\r\n\r\n")),
        Reply::text("Half.").reset_after(20),
    ] {
        let server = SocketServer::start(Script::new().otherwise(reply)).await.unwrap();
        let options = options().base_url(server.base_url()).build().unwrap();
        let error = match query("Hi.", &options).await {
            Ok(mut answer) => answer.text().await.unwrap_err(),
            Err(error) => error,
        };
        shown.add_error(&error);
    }
    shown.check();
}

#[test]
fn validation_errors_mask_keys() {
    let mut shown = Shown::default();
    let builder = || AgentOptions::builder().model("any");
    for refused in [
        builder().api_key(format!("{KEY}\r\nx: y")),
        builder().api_key(format!("{KEY} {KEY}")),
        builder().header("x-key", format!("{KEY}\n")),
        builder().base_url(format!("http://user:{KEY}@host/v1")),
        builder().base_url(format!("http://host/v1?key={KEY}")),
        builder().base_url(format!("host/{KEY}@/v1?key={KEY}")),
    ] {
        shown.add_error(&refused.build().unwrap_err());
    }
    let endpoint = Endpoint::builder().base_url("http://host/v1").api_key(KEY);
    let endpoint = endpoint.header("x-proxy", HEADER);
    shown.add(&endpoint);
    shown.add(&endpoint.build().unwrap());
    shown.check();
}

/// A chat service chooses the server, so only the answer knows whose keys may be repeated.
#[tokio::test]
async fn keys_behind_a_chat_service_are_masked() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let call = json!({"index": 0, "id": KEY, "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let choice = json!({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null});
    let chunk = json!({"id": KEY, "model": KEY, "choices": [choice]});
    let end = json!({"id": KEY, "choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": KEY}]});
    let replies = [
        Reply::sse(format!("data: {chunk}\n\ndata: [DONE]\n\n")),
        Reply::sse(format!("data: {end}\n\ndata: [DONE]\n\n")),
    ];
    let endpoint = Endpoint::builder().transport(MemoryServer::new(replies));
    let endpoint = endpoint.base_url("http://host/v1").api_key(KEY).build().unwrap();
    let service = tower::service_fn(move |request: ChatRequest| endpoint.clone().call(request));
    let look = tool("look", "Look").build(|_| async { Ok(json!("a cat")) });
    let options = AgentOptions::builder().model("any").chat_service(service).tool(look);
    let mut client = Client::new(options.auto_execute_tools(true).build().unwrap()).unwrap();
    client.ask("Look.").await.unwrap();
    let mut shown = Shown::default();
    shown.add(&(lines.take_spans(), lines.take_lines()));
    assert!(shown.0.contains("execute_tool"), "{}", shown.0);
    shown.check();
}
