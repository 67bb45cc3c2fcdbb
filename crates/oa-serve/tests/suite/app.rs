//! A served agent with a scripted model, and a client for its interface, in memory.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt;
use oa_client::{AgentOptions, AgentOptionsBuilder};
use oa_hooks::ToolRule;
use oa_serve::{AgentServer, Conversations};
use oa_sse::Parser;
use oa_testkit::{MemoryServer, Reply, Request as Asked, Script};
use oa_tools::tool;
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) struct App {
    pub(crate) router: Router,
    pub(crate) conversations: Conversations,
}

/// Answers by the words of the last user message, as the contract of the clients has it.
pub(crate) fn model() -> MemoryServer {
    MemoryServer::new(Script::new().otherwise(Reply::by(reply)))
}

fn reply(asked: &Asked) -> Reply {
    let messages = asked.messages();
    let prompt = messages.iter().rev().find(|message| message["role"] == "user");
    let prompt = prompt.and_then(|message| message["content"].as_str()).unwrap_or_default();
    let last = &messages[messages.len() - 1];
    let result = (last["role"] == "tool").then(|| last["content"].to_string());
    let rounds = messages.iter().rev().take_while(|message| message["role"] != "user");
    let rounds = rounds.filter(|message| message["role"] == "tool").count();
    // Prompts without an answer between them are sent as one.
    let word = prompt.lines().last().and_then(|line| line.split(' ').next());
    match (word.unwrap_or_default(), result) {
        ("[delete]", None) => Reply::new().call("delete_file", json!({"path": "notes.txt"})),
        ("[pick]", None) => Reply::new().call("pick_color", json!({"palette": "warm"})),
        ("[both]", None) => Reply::new()
            .call("delete_file", json!({"path": "notes.txt"}))
            .call("pick_color", json!({"palette": "warm"})),
        ("[delete]" | "[pick]" | "[both]", Some(result)) => {
            Reply::text(format!("Result: {result}"))
        }
        // A server that counts calls anew in each answer.
        ("[deletes]", _) if rounds < 2 => {
            let path = ["a.txt", "b.txt"][rounds];
            Reply::text("Next.").call_with_id("call_0", "delete_file", json!({"path": path}))
        }
        ("[picks]", _) if rounds < 2 => {
            let palette = ["warm", "cold"][rounds];
            Reply::text("Next.").call_with_id("call_0", "pick_color", json!({"palette": palette}))
        }
        ("[deletes]" | "[picks]", Some(result)) => Reply::text(format!("Result: {result}")),
        // What the model was sent.
        ("[body]", _) => Reply::text(String::from_utf8_lossy(asked.body())),
        ("[plan]", None) => Reply::new().call("add_step", json!({"step": "sow"})),
        ("[plans]", None) => Reply::new()
            .call("add_step", json!({"step": "sow"}))
            .call("add_step", json!({"step": "reap"})),
        ("[help]", None) => Reply::new().call("helper", json!({"prompt": "inner"})),
        ("[think]", _) => Reply::new().think("Let me think.").say("Thought done."),
        ("[wait]", None) => Reply::new().call("wait", json!({})),
        ("[slow]", _) => Reply::text("one two three four").delay(Duration::from_millis(50)),
        ("[long]", _) => Reply::text("tick ".repeat(2_000)).delay(Duration::from_millis(20)),
        ("[load]", _) => {
            let words: String = (0..40).map(|word| format!("{word} ")).collect();
            Reply::text(words).delay(Duration::from_millis(10))
        }
        ("[fail]", _) => Reply::error(400, "no such luck"),
        _ => Reply::text(format!("You said: {prompt}")),
    }
}

pub(crate) fn agent() -> AgentOptionsBuilder {
    let delete = tool("delete_file", "Deletes a file")
        .param("path", "string")
        .build(|args| async move { Ok(json!({"deleted": args["path"]})) });
    let wait = tool("wait", "Waits").build(|_| async {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        Ok(json!("done"))
    });
    let pick =
        tool("pick_color", "Lets the user pick a color").param("palette", "string").external();
    AgentOptions::builder()
        .model("scripted")
        .transport(model())
        .tool(delete)
        .tool(wait)
        .tool(pick)
        .tool_rule(ToolRule::ask("delete_file"))
        .auto_execute_tools(true)
}

impl App {
    pub(crate) fn new(change: impl FnOnce(AgentServer) -> AgentServer) -> Self {
        Self::of(agent(), change)
    }

    pub(crate) fn of(
        agent: AgentOptionsBuilder,
        change: impl FnOnce(AgentServer) -> AgentServer,
    ) -> Self {
        let agent = agent.build().expect("the options are valid");
        let (router, conversations) = change(AgentServer::new(agent)).into_parts();
        Self { router, conversations }
    }

    pub(crate) async fn request(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.expect("routers do not fail")
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Value,
    ) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        let request = request.body(Body::from(body.to_string())).expect("the request is valid");
        let response = self.request(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.expect("the body ends").to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.call(Method::GET, path, json!({})).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.call(Method::POST, path, body).await
    }

    /// Sends a request of a front end, and returns the data of the events; `[DONE]` is a string.
    pub(crate) async fn frames(&self, path: &str, body: &Value) -> Vec<Value> {
        let request = Request::builder().method(Method::POST).uri(path);
        let request = request.header("content-type", "application/json");
        let request = request.body(Body::from(body.to_string())).expect("the request is valid");
        let response = self.request(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.expect("the body ends").to_bytes();
        let body = String::from_utf8(body.into()).expect("it is text");
        assert_eq!(status, StatusCode::OK, "{body}");
        let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into())).collect()
    }

    /// Creates a conversation and returns its path.
    pub(crate) async fn create(&self) -> String {
        let (status, body) = self.post("/api/conversations", json!({})).await;
        assert_eq!(status, StatusCode::CREATED);
        format!("/api/conversations/{}", body["id"].as_str().expect("an id"))
    }

    pub(crate) async fn prompt(&self, path: &str, text: &str) {
        let (status, body) = self.post(&format!("{path}/prompt"), json!({"text": text})).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    }

    /// Opens the stream of events, after an event if there is one.
    pub(crate) async fn view(&self, path: &str, after: Option<&str>) -> Events {
        let mut request = Request::builder().uri(format!("{path}/events"));
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let request = request.body(Body::empty()).expect("the request is valid");
        Events::of(self.request(request).await)
    }
}

/// A stream of events.
pub(crate) struct Events {
    body: Body,
    parser: Parser,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

impl Events {
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), parser: Parser::new() }
    }

    /// Waits for the next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.parser.next_event().expect("the stream is valid") {
                return Some(Event {
                    id: event.last_event_id().to_owned(),
                    kind: event.event().into_owned(),
                    data: serde_json::from_str(&event.data()).expect("data is JSON"),
                });
            }
            let frame = self.body.frame().await?.expect("the body does not fail");
            if let Ok(bytes) = frame.into_data() {
                self.parser.push(bytes);
            }
        }
    }

    /// Reads up to the end of a run.
    pub(crate) async fn run(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            let is_end = event.kind == "run" && event.data["state"] != "started";
            events.push(event);
            if is_end {
                break;
            }
        }
        events
    }
}

/// Joins the text of events.
pub(crate) fn text(events: &[Event]) -> String {
    let blocks =
        events.iter().filter(|event| event.kind == "agent").map(|event| &event.data["data"]);
    blocks.filter(|data| data["type"] == "text").filter_map(|data| data["text"].as_str()).collect()
}
