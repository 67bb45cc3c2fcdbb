//! Metrics as an exporter receives them, from agents on paused time.

mod agents;
mod chat;
mod labels;
mod recorded;
mod tools;

use oa_chat::{Endpoint, RetryConfig};
use oa_client::{AgentOptions, AgentOptionsBuilder, Client};
use oa_testkit::{MemoryServer, Reply, Script};

use crate::recorded::{Lab, check};

const KEY: &str = "sk-live-0123456789abcdef";

fn server(script: impl Into<Script>) -> MemoryServer {
    MemoryServer::new(script)
}

fn endpoint(server: &MemoryServer) -> Endpoint {
    let endpoint = Endpoint::builder().base_url("http://gpu:8000/v1").api_key(KEY);
    endpoint.transport(server.clone()).build().unwrap_or_else(|error| panic!("{error}"))
}

/// Options of an agent whose server is measured.
fn options(lab: &Lab, server: &MemoryServer) -> AgentOptionsBuilder {
    let service = lab.metrics.endpoint(endpoint(server));
    AgentOptions::builder().model("qwen3:8b").retry(RetryConfig::none()).chat_service(service)
}

fn client(options: AgentOptionsBuilder) -> Client {
    let options = options.build().unwrap_or_else(|error| panic!("{error}"));
    Client::new(options).unwrap_or_else(|error| panic!("{error}"))
}

/// An answer of a model by this name.
fn named(model: &str, words: &str) -> Reply {
    let chunk =
        serde_json::json!({ "model": model, "choices": [{ "delta": { "content": words } }] });
    Reply::sse(format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

/// An answer with its tokens, of the model that was asked for.
fn answer(words: &str) -> Reply {
    Reply::text(words).usage(9, 5)
}
