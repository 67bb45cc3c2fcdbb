//! Token counts by servers.

use oa_chat::{Endpoint, Provider};
use oa_client::{AgentOptions, AgentOptionsBuilder, ErrorKind};
use oa_doctor::{count_text_tokens, count_tokens};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_types::Message;
use serde_json::json;

use crate::adder;

fn server(reply: &Reply) -> MemoryServer {
    let pages = ["/tokenize", "/apply-template"];
    MemoryServer::new(
        pages.iter().fold(Script::new(), |script, path| script.post(*path, reply.clone())),
    )
}

fn asking(server: &MemoryServer, provider: Provider) -> AgentOptionsBuilder {
    AgentOptions::builder().model("any").provider(provider).transport(server.clone())
}

/// Counts words, plus those of its template.
fn llama_cpp(request: &Request) -> Reply {
    let body = request.json();
    match request.path() {
        "/apply-template" => {
            let said = request.messages().iter().map(|message| {
                format!("<{}> {}", message["role"], message["content"].as_str().unwrap_or(""))
            });
            let tools = body["tools"].as_array().map_or(0, Vec::len);
            let said: Vec<String> = said.chain(vec!["<tool>".to_owned(); tools]).collect();
            Reply::json(200, json!({ "prompt": said.join(" ") }))
        }
        "/tokenize" => {
            let content = body["content"].as_str().expect("it is a text");
            let begin = usize::from(body["add_special"] == true);
            let tokens = begin + content.split_whitespace().count();
            Reply::json(200, json!({ "tokens": vec![7; tokens] }))
        }
        path => Reply::error(404, format!("no {path}")),
    }
}

fn vllm(request: &Request) -> Reply {
    assert_eq!(request.path(), "/tokenize");
    let body = request.json();
    assert_eq!(body["model"], "any");
    let count = match body["prompt"].as_str() {
        Some(prompt) => prompt.split_whitespace().count(),
        None => 100 * request.messages().len() + body["tools"].as_array().map_or(0, Vec::len),
    };
    Reply::json(200, json!({ "count": count, "max_model_len": 4096, "tokens": [] }))
}

#[tokio::test]
async fn llama_cpp_counts_text_and_templates() {
    let server = server(&Reply::by(llama_cpp));
    let options =
        asking(&server, Provider::LlamaCpp).system_prompt("Be brief.").tool(adder()).build();
    let options = options.unwrap();
    assert_eq!(count_text_tokens(&options, "one two three").await.unwrap(), 3);
    let messages = [Message::user("one two three")];
    // The start, three for the system prompt, four for the user's, and a tool.
    assert_eq!(count_tokens(&options, &messages).await.unwrap(), 1 + 3 + 4 + 1);
}

#[tokio::test]
async fn vllm_counts_text_and_templates() {
    let server = server(&Reply::by(vllm));
    let options = asking(&server, Provider::Vllm).system_prompt("Be brief.").tool(adder()).build();
    let options = options.unwrap();
    assert_eq!(count_text_tokens(&options, "one two three").await.unwrap(), 3);
    assert_eq!(count_tokens(&options, &[Message::user("one")]).await.unwrap(), 201);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn other_servers_are_not_asked_to_count() {
    let silent = MemoryServer::new(Script::new());
    let endpoint = Endpoint::builder().provider(Provider::Vllm).transport(silent.clone());
    for (options, why) in [
        (asking(&silent, Provider::Ollama), "Ollama cannot count tokens"),
        (
            AgentOptions::builder().model("any").transport(silent.clone()),
            "counting tokens requires a provider: each has its own endpoint",
        ),
        (
            AgentOptions::builder().model("any").chat_service(endpoint.build().unwrap()),
            "your own chat service cannot count tokens",
        ),
    ] {
        let options = options.build().unwrap();
        for error in [
            count_text_tokens(&options, "one").await.unwrap_err(),
            count_tokens(&options, &[Message::user("one")]).await.unwrap_err(),
        ] {
            assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::Config, why));
        }
    }
    assert!(silent.requests().is_empty());
}

#[tokio::test]
async fn response_without_count_is_an_error() {
    for provider in [Provider::LlamaCpp, Provider::Vllm] {
        for (reply, kind) in [
            (Reply::json(200, json!({ "hello": "you" })), ErrorKind::Stream),
            (Reply::json(200, json!({ "tokens": "many", "prompt": 3 })), ErrorKind::Stream),
            (Reply::body(200, "text/html", "<p>Hello</p>"), ErrorKind::Stream),
            (Reply::error(404, "File Not Found"), ErrorKind::Api),
        ] {
            let server = server(&reply);
            let options = asking(&server, provider).build().unwrap();
            let error = count_text_tokens(&options, "one").await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            let error = count_tokens(&options, &[Message::user("one")]).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
