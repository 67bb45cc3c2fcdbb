//! Provider-specific requests: a fake that rejects the same requests as the real provider accepts every
//! conversation.

use std::sync::LazyLock;

use oa_chat::{Provider, Thinking};
use oa_client::{AgentOptions, AgentOptionsBuilder, Client, ErrorKind};
use oa_testkit::{MemoryServer, Reply, Request, Script, Strict};
use oa_tools::tool;
use oa_types::wire::ThinkingReplay;
use oa_types::{Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use suite::talk::cases;

/// Returns a strict server with the rules of the real provider.
fn strict(provider: Provider) -> Strict {
    match provider {
        Provider::DeepSeek | Provider::LlamaCpp => {
            Strict::new().allow_member("messages[].reasoning_content")
        }
        Provider::Ollama | Provider::Vllm => Strict::new().allow_member("messages[].reasoning"),
        Provider::Mistral => Strict::new().refuse_user_after_tool().require_nine_letter_ids(),
        _ => Strict::new(),
    }
}

/// Returns true if the request follows the provider's rules that [`Strict`] cannot express.
fn is_as_wanted(provider: Provider, request: &Request) -> bool {
    let body = request.json();
    let is_answer = |message: &&Value| message["role"] == "assistant";
    let mut answers = request.messages().iter().filter(is_answer);
    match provider {
        Provider::Azure | Provider::OpenAi => {
            body["max_completion_tokens"] == 7 && body.get("max_tokens").is_none()
        }
        // Row 94: thinking is sent back with calls.
        Provider::DeepSeek | Provider::LlamaCpp => answers.all(|answer| {
            answer.get("tool_calls").is_none() || answer["reasoning_content"] == "Hm."
        }),
        Provider::Ollama | Provider::Vllm => {
            answers.all(|answer| answer.get("tool_calls").is_none() || answer["reasoning"] == "Hm.")
        }
        // Row 84: no empty text.
        Provider::LiteLlm | Provider::OpenRouter => answers.all(|answer| answer["content"] != ""),
        // Row 74.
        Provider::Mistral => body.get("stream_options").is_none() && body["max_tokens"] == 7,
        _ => body["stream_options"]["include_usage"] == true && body["max_tokens"] == 7,
    }
}

/// One exchange: the prompt, the number of calls, and whether the model finishes with text or was interrupted.
type Exchange = (Vec<String>, Vec<Vec<String>>, bool);

fn exchanges() -> impl Strategy<Value = Vec<Exchange>> {
    let id =
        prop_oneof!["[a-zA-Z0-9]{9}", "call_[a-f0-9]{24}", "functions\\.look:[0-9]{1,3}", "[0-9]",];
    let prompts = vec("[a-zäß?! \n]{1,12}[a-z]", 1..3);
    let rounds = vec(vec(id, 1..4), 0..3);
    vec((prompts, rounds, any::<bool>()), 0..5)
}

fn history(exchanges: &[Exchange]) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut number = 0;
    for (prompts, rounds, ends) in exchanges {
        messages.extend(prompts.iter().map(Message::user));
        for ids in rounds {
            number += 1;
            let calls: Vec<ToolUseBlock> = ids
                .iter()
                .enumerate()
                // Ids are per conversation, so that two answers never share one.
                .map(|(place, id)| {
                    let id = if id.len() == 9 && place == 0 {
                        id.clone()
                    } else {
                        format!("{id}{number}x{place}")
                    };
                    ToolUseBlock::new(id, "look", json!({ "at": place }))
                })
                .collect();
            let mut blocks = vec![ThinkingBlock::new("Hm.").into()];
            blocks.extend(calls.iter().cloned().map(Into::into));
            messages.push(Message::assistant(blocks));
            messages.extend(calls.iter().map(|call| {
                Message::tool(ToolResultBlock::new(&call.id, json!({ "seen": "a cat" })))
            }));
        }
        if *ends {
            messages.push(Message::assistant(vec![TextBlock::new("Done.").into()]));
        }
    }
    messages
}

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts")
});

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn every_provider_accepts_every_history(exchanges in exchanges(), system in any::<bool>()) {
        for &provider in Provider::ALL {
            let script = Script::new()
                .expect("what this provider wants", move |request| is_as_wanted(provider, request))
                .reply(Reply::text("Seen."))
                .strict_by(strict(provider));
            let server = MemoryServer::new(script);
            let look = tool("look", "Looks").param("at", "integer").build(|_| async { Ok(json!(1)) });
            let options = AgentOptions::builder()
                .provider(provider)
                .base_url("http://localhost:1/v1")
                .model("any")
                .system_prompt(if system { "Be brief." } else { "" })
                .max_tokens(7)
                .tool(look)
                .transport(server.clone());
            let mut client = Client::with_history(options.build().unwrap(), history(&exchanges)).unwrap();
            let reply = RUNTIME.block_on(client.ask("Look again."));
            prop_assert!(reply.is_ok(), "{:?}: {:?}", provider, reply);
            server.verify();
        }
    }
}

#[test]
fn azure_requires_a_base_url() {
    let error = AgentOptions::builder().provider(Provider::Azure).model("any").build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(error.to_string(), "Azure OpenAI has no default address: set base_url");
    for &provider in Provider::ALL {
        let builder = AgentOptions::builder().provider(provider).model("any");
        match provider.base_url() {
            Some(address) => assert_eq!(builder.build().unwrap().base_url(), address),
            None => assert_eq!(provider, Provider::Azure),
        }
    }
}

#[test]
fn the_caller_decides_what_is_read_again() {
    let sent = |options: AgentOptionsBuilder| {
        let server = MemoryServer::new(Reply::text("Seen."));
        let options =
            options.model("any").base_url("http://localhost:1/v1").transport(server.clone());
        let history = history(&[(vec!["Look.".into()], vec![vec!["call_0001".into()]], true)]);
        let mut client = Client::with_history(options.build().unwrap(), history).unwrap();
        RUNTIME.block_on(client.ask("Look again.")).unwrap();
        let answer = server.requests()[0].messages()[1].clone();
        ["reasoning", "reasoning_content"].map(|name| answer.get(name).is_some())
    };
    let unknown = AgentOptions::builder;
    assert_eq!(sent(unknown()), [false, false]);
    assert_eq!(sent(unknown().thinking_replay(ThinkingReplay::ReasoningContent)), [false, true]);
    assert_eq!(sent(unknown().provider(Provider::LmStudio)), [false, false]);
    let vllm = || unknown().provider(Provider::Vllm);
    assert_eq!(sent(vllm()), [true, false]);
    assert_eq!(sent(vllm().thinking_replay(ThinkingReplay::ReasoningContent)), [false, true]);
    assert_eq!(sent(vllm().thinking_replay(ThinkingReplay::Drop)), [false, false]);
}

#[test]
fn think_tags_default_by_provider() {
    use oa_aggregate::ThinkTags;
    let build = |provider| AgentOptions::builder().provider(provider).model("any");
    assert_eq!(build(Provider::LmStudio).build().unwrap().think_tags(), ThinkTags::Split);
    assert_eq!(build(Provider::Ollama).build().unwrap().think_tags(), ThinkTags::Off);
    let off = build(Provider::LmStudio).think_tags(ThinkTags::Off).build().unwrap();
    assert_eq!(off.think_tags(), ThinkTags::Off);
}

#[test]
fn each_provider_has_its_thinking_parameter() {
    let said = |provider, thinking: Thinking, extra: Value| {
        let server = MemoryServer::new(Reply::text("Hm."));
        let options = AgentOptions::builder().provider(provider).base_url("http://localhost:1/v1");
        let options =
            options.model("any").thinking(thinking).extra_body(extra).transport(server.clone());
        RUNTIME.block_on(async {
            oa_client::query("Go.", &options.build()?).await?.text().await?;
            Ok::<_, oa_client::Error>(server.requests()[0].json().clone())
        })
    };
    for (provider, thinking, name, expected) in [
        (Provider::Ollama, false.into(), "reasoning_effort", json!("none")),
        (Provider::Ollama, "low".into(), "reasoning_effort", json!("low")),
        (Provider::LmStudio, true.into(), "reasoning_effort", json!("medium")),
        (Provider::Mistral, true.into(), "reasoning_effort", json!("high")),
        (Provider::Groq, false.into(), "reasoning_effort", json!("none")),
        (Provider::Groq, true.into(), "reasoning_effort", json!(null)),
        (Provider::TextGenerationWebui, false.into(), "enable_thinking", json!(false)),
        (Provider::TextGenerationWebui, "low".into(), "enable_thinking", json!(true)),
        (Provider::TextGenerationWebui, "low".into(), "reasoning_effort", json!("low")),
        (Provider::OpenRouter, false.into(), "reasoning", json!({"enabled": false})),
        (Provider::OpenRouter, "high".into(), "reasoning", json!({"effort": "high"})),
        (
            Provider::LlamaCpp,
            false.into(),
            "chat_template_kwargs",
            json!({"enable_thinking": false, "thinking": false}),
        ),
        (Provider::LlamaCpp, false.into(), "reasoning_effort", json!(null)),
        (
            Provider::Vllm,
            "low".into(),
            "chat_template_kwargs",
            json!({"enable_thinking": true, "thinking": true, "reasoning_effort": "low"}),
        ),
        // Without a template: gpt-oss.
        (Provider::Vllm, "low".into(), "reasoning_effort", json!("low")),
        // Older versions refuse this word.
        (Provider::Vllm, "xhigh".into(), "reasoning_effort", json!(null)),
        (Provider::DeepSeek, true.into(), "thinking", json!({"type": "enabled"})),
        (Provider::DeepSeek, "max".into(), "thinking", json!({"type": "enabled"})),
        (Provider::DeepSeek, "max".into(), "reasoning_effort", json!("max")),
        (Provider::DeepSeek, false.into(), "reasoning_effort", json!(null)),
    ] {
        assert_eq!(said(provider, thinking, json!({})).unwrap()[name], expected, "{provider:?}");
    }
    // Explicit settings are kept and take precedence.
    let extra = json!({"chat_template_kwargs": {"language": "de"}});
    let body = said(Provider::LlamaCpp, false.into(), extra).unwrap();
    assert_eq!(
        body["chat_template_kwargs"],
        json!({"enable_thinking": false, "language": "de", "thinking": false})
    );
    let body = said(Provider::Ollama, false.into(), json!({"reasoning_effort": "low"})).unwrap();
    assert_eq!(body["reasoning_effort"], "low");
    // Each provider has a member for it.
    for provider in Provider::ALL {
        let options = AgentOptions::builder().provider(*provider).model("any").thinking("low");
        assert!(options.base_url("http://localhost:1/v1").build().is_ok(), "{provider:?}");
    }
}
