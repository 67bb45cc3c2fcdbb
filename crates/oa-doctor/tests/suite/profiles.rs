//! Profiles: written by the doctor, read by options.

use std::path::PathBuf;

use insta::assert_snapshot;
use oa_aggregate::ThinkTags;
use oa_chat::{Endpoint, Provider, ServerProfile, ToolMode};
use oa_client::{
    AgentOptions, AgentOptionsBuilder, Client, ErrorKind, ResponseFormat, query_for_format,
};
use oa_doctor::doctor;
use oa_testkit::{MemoryServer, Reply, Script};
use serde_json::Value;
use serde_json::json;

use crate::adder;
use crate::{MODEL, but, has_tools, is_plain, options};

/// A file next to the test.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let name = format!("open-agent-{}-{name}.json", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn holding(name: &str, text: &str) -> Self {
        let file = Self::new(name);
        std::fs::write(&file.0, text).expect("there is room for it");
        file
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A profile with every setting.
fn full() -> Value {
    json!({
        "open_agent_profile": 1,
        "base_url": "http://localhost:8001/v1",
        "model": MODEL,
        "provider": "vLLM",
        "token_limit": "max_completion_tokens",
        "ask_for_usage": false,
        "think_tags": "starts_in_thinking",
        "tools": true,
        "forced_calls": true,
        "parallel_calls": false,
        "schema": true,
        "context_tokens": 32768,
    })
}

fn profile(value: &Value) -> ServerProfile {
    ServerProfile::from_json(&value.to_string()).expect("a profile")
}

#[track_caller]
fn refused(builder: AgentOptionsBuilder) -> String {
    let error = builder.build().expect_err("these options cannot work");
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[tokio::test(start_paused = true)]
async fn learned_profile_is_read_back() {
    let thinks = but(|request| is_plain(request).then(|| Reply::text("<think>Hm.</think>one")));
    let report = doctor(&options(thinks)).await.unwrap();
    let file = File::new("round-trip");
    report.profile.write(&file.0).unwrap();
    assert_eq!(ServerProfile::read(&file.0).unwrap(), report.profile);
    assert_snapshot!(std::fs::read_to_string(&file.0).unwrap(), @r#"
    {
      "open_agent_profile": 1,
      "base_url": "http://localhost:11434/v1",
      "model": "qwen3:8b",
      "provider": "Ollama",
      "token_limit": "max_tokens",
      "ask_for_usage": true,
      "think_tags": "split",
      "tools": true,
      "forced_calls": true,
      "parallel_calls": true,
      "schema": true,
      "context_tokens": 40960
    }
    "#);

    let options = AgentOptions::builder().profile_file(&file.0).build().unwrap();
    assert_eq!(options.model(), MODEL);
    assert_eq!(options.base_url(), "http://localhost:11434/v1");
    assert_eq!(options.provider(), Some(Provider::Ollama));
    assert_eq!(options.think_tags(), ThinkTags::Split);
    assert_eq!(options.profile(), Some(&report.profile));
}

#[tokio::test]
async fn profile_affects_requests_and_answers() {
    let script = Script::new()
        .expect("what the profile says", |request| {
            let body = request.json();
            body["model"] == MODEL
                && body["max_completion_tokens"] == 5
                && body.get("max_tokens").is_none()
                && body.get("stream_options").is_none()
        })
        .reply(Reply::text("Hm.</think>Yes."));
    let server = MemoryServer::new(script);
    let options = AgentOptions::builder().profile(profile(&full())).max_tokens(5);
    let mut client = Client::new(options.transport(server.clone()).build().unwrap()).unwrap();
    assert_eq!(client.ask("Well?").await.unwrap().text, "Yes.");
    assert_eq!(client.options().base_url(), "http://localhost:8001/v1");
    server.verify();
}

#[tokio::test]
async fn profile_applies_to_its_model_only() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::text("Hm.</think>Yes.")));
    for first in [MODEL, "other"] {
        let options = AgentOptions::builder().profile(profile(&full())).model(first).max_tokens(5);
        let mut client = Client::new(options.transport(server.clone()).build().unwrap()).unwrap();
        for model in [first, "other", MODEL, "other"] {
            client.set_model(model).unwrap();
            let tags = client.options().think_tags();
            let text = client.ask("Well?").await.unwrap().text;
            let body = server.requests().last().unwrap().json().clone();
            let limits = (body.get("max_completion_tokens"), body.get("max_tokens"));
            let five = json!(5);
            if model == MODEL {
                assert_eq!((&*text, tags), ("Yes.", ThinkTags::StartsInThinking));
                assert_eq!(limits, (Some(&five), None));
            } else {
                // As for this provider.
                assert_eq!((&*text, tags), ("Hm.</think>Yes.", ThinkTags::Split));
                assert_eq!(limits, (None, Some(&five)));
            }
            assert!(body.get("stream_options").is_none(), "that is said of the server");
        }
    }
}

#[tokio::test]
async fn profile_applies_over_any_transport() {
    let mut said = full();
    for member in ["tools", "forced_calls", "schema"] {
        said[member] = json!(false);
    }
    let options = AgentOptions::builder().profile(profile(&said)).tool(adder()).build().unwrap();
    let answer = Reply::text("</think>{\"n\": 1}");
    let server = MemoryServer::new(Script::new().otherwise(answer));
    let mut client = Client::with_transport(options, server.clone()).unwrap();
    client.ask("Well?").await.unwrap();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    client.send_for_format("Well?", ResponseFormat::new("number", schema)).await.unwrap();
    let [plain, formed] = &server.requests()[..] else { panic!("{}", server.story()) };
    assert!(plain.json().get("tools").is_none(), "{}", plain.json());
    assert!(plain.messages()[0].to_string().contains("<tool_call>"), "{}", plain.json());
    assert_ne!(formed.json()["response_format"]["type"], "json_schema");
}

#[test]
fn explicit_options_override_the_profile() {
    let builder = || AgentOptions::builder().profile(profile(&full()));
    let options = builder().base_url("http://other:1/v1").think_tags(ThinkTags::Off);
    let options = options.build().unwrap();
    assert_eq!(options.base_url(), "http://other:1/v1");
    assert_eq!(options.think_tags(), ThinkTags::Off);
    assert_eq!(options.model(), MODEL);

    // Findings about one model do not apply to another.
    let other = builder().model("other").provider(Provider::Vllm).build().unwrap();
    assert_eq!((other.model(), other.think_tags()), ("other", ThinkTags::Split));
    assert_eq!(other.base_url(), "http://localhost:8001/v1");

    let moved = builder().provider(Provider::LlamaCpp).base_url("http://other:1/v1");
    assert_eq!(moved.build().unwrap().provider(), Some(Provider::LlamaCpp));
}

#[test]
fn contradicting_options_are_errors() {
    let builder = || AgentOptions::builder().profile(profile(&full()));
    assert_snapshot!(refused(builder().provider(Provider::Ollama)), @"the provider is Ollama, but the profile is for vLLM: remove one of them, or set base_url");

    let endpoint = Endpoint::builder().base_url("http://localhost/v1").build().unwrap();
    let error = refused(builder().chat_service(endpoint));
    assert_eq!(error, "profile has no effect with chat_service");

    let mut toolless = full();
    for member in ["tools", "forced_calls"] {
        toolless[member] = json!(false);
    }
    let without = || AgentOptions::builder().profile(profile(&toolless));
    assert!(without().build().is_ok());
    assert!(without().model("other").tool(adder()).build().is_ok(), "it is about one model");
    assert!(without().tool(adder()).build().is_ok(), "calls are text then");
    assert_snapshot!(refused(without().tool(adder()).tool_mode(ToolMode::Native)), @"the profile says that qwen3:8b does not support tools here: remove them, change tool_mode, or run the doctor again");

    let mut empty = ServerProfile::new("http://localhost/v1", MODEL);
    empty.context_tokens = Some(0);
    assert_snapshot!(refused(AgentOptions::builder().profile(empty)), @"the profile has a context of 0 tokens");
}

#[tokio::test(start_paused = true)]
async fn profile_without_tools_uses_text_calls() {
    let script = but(|request| has_tools(request).then(|| Reply::error(400, "no tools here")));
    let report = doctor(&options(script)).await.unwrap();
    let native =
        AgentOptions::builder().profile(report.profile.clone()).tool_mode(ToolMode::Native);
    let error = refused(native.tool(adder()));
    assert!(error.contains("does not support tools"), "{error}");

    let call = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}</tool_call>";
    let server = MemoryServer::new([Reply::text(call), Reply::text("It is 3.")]);
    let options = AgentOptions::builder().profile(report.profile).transport(server.clone());
    let options = options.tool(adder()).auto_execute_tools(true).build().unwrap();
    let reply = Client::new(options).unwrap().ask("Add.").await.unwrap();
    assert_eq!(reply.text, "It is 3.");
    assert!(server.requests().iter().all(|request| request.json().get("tools").is_none()));
}

#[tokio::test]
async fn profile_without_schema_uses_json_object() {
    let mut profile = ServerProfile::new("http://localhost/v1", MODEL);
    profile.schema = Some(false);
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for (model, form) in [(MODEL, "json_object"), ("other", "json_schema")] {
        let server = MemoryServer::new(Reply::text("{\"n\": 1}"));
        let options = AgentOptions::builder().profile(profile.clone()).model(model);
        let options = options.transport(server.clone()).build().unwrap();
        let format = ResponseFormat::new("number", schema.clone());
        let answer = query_for_format("A number?", &options, format).await.unwrap();
        assert_eq!(answer.value, json!({"n": 1}));
        let request = server.requests()[0].json().clone();
        assert_eq!(request["response_format"]["type"], form);
        let told = request["messages"].to_string().contains("JSON Schema");
        assert_eq!(told, form == "json_object", "{request}");
    }
}

#[test]
fn invalid_profile_files_name_the_cause() {
    let with = |member: &str, value: Value| {
        let mut profile = full();
        profile[member] = value;
        profile.to_string()
    };
    let mut without = full();
    without.as_object_mut().unwrap().remove("model");
    let cases = [
        with("open_agent_profile", json!(2)),
        with("open_agent_profile", json!("1")),
        with("ask_for_usages", json!(true)),
        with("provider", json!("llama")),
        with("think_tags", json!("maybe")),
        with("tools", json!("yes")),
        with("tools", json!(false)),
        with("base_url", json!("http://me:secret@localhost/v1")),
        with("model", json!("")),
        without.to_string(),
        "[1, 2]".to_owned(),
        "{\"open_agent_profile\": 1,".to_owned(),
        String::new(),
    ];
    let mut errors = String::new();
    for (place, text) in cases.iter().enumerate() {
        let file = File::holding(&format!("bad-{place}"), text);
        let error = refused(AgentOptions::builder().profile_file(&file.0));
        let path = file.0.display().to_string();
        errors += &format!("{}\n", error.replace(&path, "FILE"));
    }
    assert_snapshot!(errors, @r#"
    FILE: the profile has version 2, but this program supports only 1: update it, or let the doctor write a new profile
    FILE: the profile is invalid: "open_agent_profile": 1 is missing
    FILE: the profile cannot be used: unknown field `ask_for_usages`, expected one of `open_agent_profile`, `base_url`, `model`, `provider`, `token_limit`, `ask_for_usage`, `think_tags`, `tools`, `forced_calls`, `parallel_calls`, `schema`, `context_tokens` at line 1 column 302
    FILE: the profile cannot be used: unknown provider "llama": use one of Azure OpenAI, DeepSeek, Gemini, Groq, LiteLLM, llama.cpp, LM Studio, Mistral, Ollama, OpenAI, OpenRouter, text-generation-webui, vLLM at line 1 column 99
    FILE: the profile cannot be used: unknown variant `maybe`, expected one of `off`, `split`, `starts_in_thinking` at line 1 column 179
    FILE: the profile cannot be used: invalid type: string "yes", expected a boolean at line 1 column 206
    FILE: the profile contradicts itself: no tools, but forced_calls
    FILE: the profile has no usable base_url: the base URL contains a user name or password (use api_key or header instead): "****@localhost/v1"
    FILE: the profile has no usable model: the model name is empty
    FILE: the profile cannot be used: missing field `model` at line 1 column 267
    FILE: the profile is invalid: "open_agent_profile": 1 is missing
    FILE: the profile is not JSON: EOF while parsing a value at line 1 column 25
    FILE: the profile is not JSON: EOF while parsing a value at line 1 column 0
    "#);

    let missing = File::new("missing");
    let error = refused(AgentOptions::builder().model("any").profile_file(&missing.0));
    assert!(error.starts_with(&missing.0.display().to_string()), "{error}");
    let large = File::holding("large", &" ".repeat(70_000));
    assert!(refused(AgentOptions::builder().profile_file(&large.0)).contains("too large"));
}
