//! The doctor's findings for servers that each lack a feature, and their effect on options; questions to servers
//! beside those.

mod profiles;
mod secrets;
mod servers;
mod settings;
mod streams;
mod table;
mod tokenize;

use std::time::Duration;

use oa_client::AgentOptions;
use oa_doctor::{Doctor, Finding, Probe, Report, Verdict, doctor};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_tools::{FnTool, tool};
use serde_json::json;

/// The model of all fake servers.
const MODEL: &str = "qwen3:8b";
const WORD: Duration = Duration::from_millis(20);

/// A flawless model, by kind of request.
fn healthy(request: &Request) -> Reply {
    let body = request.json();
    let said = |place: usize| body["messages"][place]["content"].as_str().unwrap_or_default();
    if !body["messages"].is_array() {
        Reply::error(400, "messages must be a list")
    } else if body["model"] != MODEL {
        Reply::error(404, format!("model {} not found", body["model"]))
    } else if body["max_tokens"] == 16 {
        Reply::text("one, two, three, four, five").finish("length").usage(30, 16)
    } else if body["response_format"].is_object() {
        Reply::text(json!({ "city": "Paris", "millions": 2 }).to_string())
    } else if body["messages"].as_array().is_some_and(|messages| messages.len() > 1) {
        Reply::text("Clear, and 21 degrees.")
    } else if body["tools"].is_null() {
        let numbers = "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve";
        Reply::text(numbers).usage(24, 24).delay(WORD)
    } else if said(0).contains("both") {
        let call = |reply: Reply, city: &str| reply.call("get_weather", json!({ "city": city }));
        call(call(Reply::new(), "Paris"), "Rome")
    } else {
        Reply::new().call("get_weather", json!({ "city": "Paris" }))
    }
}

/// A server whose model answers by a rule.
fn server(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Script {
    let models = json!({ "object": "list", "data": [
        { "id": "other", "object": "model", "owned_by": "library" },
        { "id": MODEL, "object": "model", "owned_by": "library" },
    ]});
    let running = json!({ "models": [{ "name": MODEL, "context_length": 40960 }] });
    Script::new()
        .get("/v1/models", Reply::json(200, models))
        .get("/api/version", Reply::json(200, json!({ "version": "0.11.4" })))
        .get("/api/ps", Reply::json(200, running))
        .otherwise(Reply::by(rule))
}

/// A flawless server except for some requests.
fn but(change: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> Script {
    server(move |request| change(request).unwrap_or_else(|| healthy(request)))
}

fn options(script: impl Into<Script>) -> AgentOptions {
    let server = MemoryServer::new(script);
    let options = AgentOptions::builder().model(MODEL).base_url("http://localhost:11434/v1");
    options.transport(server).build().expect("these options can work")
}

async fn report(script: impl Into<Script>) -> Report {
    doctor(&options(script)).await.expect("there is a model")
}

/// Returns the finding of one probe.
async fn only(probe: Probe, script: impl Into<Script>) -> Finding {
    let doctor = Doctor::new(&options(script)).expect("there is a model");
    let report = doctor.only([probe]).examine().await;
    report.findings.into_iter().next().expect("it was made")
}

#[track_caller]
fn verdict(report: &Report, probe: Probe) -> Verdict {
    report.finding(probe).expect("it was made").verdict
}

fn has_tools(request: &Request) -> bool {
    request.json()["tools"].is_array()
}

/// The plain prompt.
fn is_plain(request: &Request) -> bool {
    let body = request.json();
    let is_special = ["tools", "response_format"].iter().any(|name| !body[name].is_null());
    body["stream"] == true && body["max_tokens"] != 16 && !is_special
}

/// A tool that adds two numbers.
fn adder() -> FnTool {
    tool("add", "Add two numbers").param("a", "number").param("b", "number").build(
        |args| async move {
            let number = |name: &str| args[name].as_f64().unwrap_or(0.0);
            Ok(json!(number("a") + number("b")))
        },
    )
}
