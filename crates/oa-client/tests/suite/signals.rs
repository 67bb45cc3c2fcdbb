//! Signals of local servers: prompt progress, and caches that are lost.

use std::time::Duration;

use oa_chat::{Provider, RetryConfig};
use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client};
use oa_context::{CacheMiss, ChangedPart};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use oa_types::{ContentBlock, PromptProgress};
use serde_json::{Value, json};

/// A stream of llama.cpp's server with progress.
const STREAM: &str = include_str!("../../../../tests/fixtures/own/llamacpp-prompt-progress.sse");

fn server(replies: impl IntoIterator<Item = Reply>) -> MemoryServer {
    MemoryServer::new(replies.into_iter().fold(Script::new(), Script::reply))
}

fn agent(server: &MemoryServer) -> AgentOptionsBuilder {
    AgentOptions::builder().model("any").transport(server.clone()).provider(Provider::LlamaCpp)
}

/// All events up to the end of the turn, or to an error.
async fn events(client: &mut Client) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Ok(Some(event)) = client.next_event().await {
        events.push(event);
    }
    events
}

fn progress(events: &[AgentEvent]) -> Vec<PromptProgress> {
    let progress = events.iter().filter_map(|event| match event {
        AgentEvent::PromptProgress(progress) => Some(*progress),
        _ => None,
    });
    progress.collect()
}

#[tokio::test]
async fn progress_is_requested_from_llama_cpp_only() {
    let asked = async |options: AgentOptionsBuilder, server: &MemoryServer| -> Value {
        let mut client = Client::new(options.build().unwrap()).unwrap();
        client.ask("Hi.").await.unwrap();
        server.requests()[0].json()["return_progress"].clone()
    };
    let one = || server([Reply::text("Hello.")]);
    let server = one();
    assert_eq!(asked(agent(&server).prompt_progress(true), &server).await, json!(true));
    let server = one();
    assert_eq!(asked(agent(&server), &server).await, Value::Null, "nobody wants it");
    for provider in Provider::ALL.iter().filter(|it| **it != Provider::LlamaCpp) {
        let server = one();
        let options = agent(&server).provider(*provider).prompt_progress(true);
        let options = options.base_url("http://localhost:1/v1");
        assert_eq!(asked(options, &server).await, Value::Null, "{provider}");
    }
}

#[tokio::test]
async fn progress_precedes_the_answer() {
    let server = server([Reply::sse(STREAM)]);
    let mut client = Client::new(agent(&server).prompt_progress(true).build().unwrap()).unwrap();
    client.send("Tell me of herons.").await.unwrap();
    let events = events(&mut client).await;
    let told = [(384, 0), (2_432, 171), (4_480, 349), (5_127, 408)];
    let told = told.map(|(processed, millis)| {
        PromptProgress::new(5_127, 384, processed, Duration::from_millis(millis))
    });
    assert_eq!(progress(&events), told);
    let first_text = events.iter().position(|event| matches!(event, AgentEvent::Block(_)));
    let last = events.iter().rposition(|event| matches!(event, AgentEvent::PromptProgress(_)));
    assert!(last < first_text);
    assert!(client.history()[1].text().starts_with("Herons stand"));
}

/// If a stream breaks after progress alone, the request is retried, and in the end the prompt is taken back.
#[tokio::test(start_paused = true)]
async fn progress_does_not_begin_an_answer() {
    let broken = || Reply::sse(STREAM).close_after(1_000);
    let retry = RetryConfig::new(1);
    let server = server([broken(), Reply::sse(STREAM), broken(), broken()]);
    let options = agent(&server).prompt_progress(true).retry(retry);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.send("Tell me of herons.").await.unwrap();
    let first = events(&mut client).await;
    assert!((5..8).contains(&progress(&first).len()), "of both streams");
    assert_eq!((client.history().len(), server.requests().len()), (2, 2));

    client.send("And of eels.").await.unwrap();
    while let Ok(Some(event)) = client.next_event().await {
        assert!(!matches!(event, AgentEvent::Block(ContentBlock::Text(_))));
    }
    assert_eq!((client.history().len(), server.requests().len()), (2, 4), "the prompt is gone");
}

fn cached(cached: Option<u64>) -> Reply {
    let mut usage = json!({"prompt_tokens": 5_000, "completion_tokens": 2, "total_tokens": 5_002});
    if let Some(cached) = cached {
        usage["prompt_tokens_details"] = json!({"cached_tokens": cached});
    }
    Reply::new().without_usage().say("Yes.").event(json!({"choices": [], "usage": usage}))
}

fn misses(events: &[AgentEvent]) -> Vec<CacheMiss> {
    let misses = events.iter().filter_map(|event| match event {
        AgentEvent::CacheMiss(miss) => Some(*miss),
        _ => None,
    });
    misses.collect()
}

#[tokio::test]
async fn cache_misses_name_the_changed_part() {
    let numbers = [
        None,
        Some(0),
        Some(3_000),
        Some(4_000),
        Some(10),
        Some(4_000),
        Some(10),
        Some(4_000),
        Some(10),
    ];
    let server = server(numbers.map(cached));
    let options = agent(&server).system_prompt("You are kind.");
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let mut told = Vec::new();
    for step in 0..numbers.len() {
        match step {
            4 => client.history_mut()[2] = oa_types::Message::user("Hm."),
            6 => client.set_system_prompt("You are brief.").unwrap(),
            _ => {}
        }
        client.send("Go on.").await.unwrap();
        let events = events(&mut client).await;
        let misses = misses(&events);
        assert_eq!(misses.is_empty(), ![4, 6, 8].contains(&step), "{step}");
        told.extend(misses.iter().map(|miss| miss.first_changed));
        let place = |wanted: fn(&AgentEvent) -> bool| events.iter().position(wanted);
        let ended = place(|event| matches!(event, AgentEvent::AnswerEnd(_)));
        let miss = place(|event| matches!(event, AgentEvent::CacheMiss(_)));
        assert!(miss.is_none() || ended < miss);
    }
    let changed = [Some(ChangedPart::Message(2)), Some(ChangedPart::BeforeMessages), None];
    assert_eq!(told, changed);
}

/// A step that offers fewer tools sends a shorter prompt, which is not a cut one.
#[tokio::test]
async fn fewer_tools_are_not_a_cut_prompt() {
    let tools = || {
        (0..40).map(|number| {
            let words = "Looks for what the user has asked about, wherever that may be. ".repeat(8);
            tool(format!("search_{number}"), words).build(|_| async { Ok(json!("found")) })
        })
    };
    let prompt = "Say what you think of herons in the rain. ".repeat(20);
    for (offered, is_cut) in [(0, false), (1, false), (40, true)] {
        // A server that counts cached tokens, so that what it reports is all that it has read.
        let usage = json!({
            "prompt_tokens": 400,
            "completion_tokens": 2,
            "prompt_tokens_details": { "cached_tokens": 1 },
        });
        let reply = Reply::new().without_usage().say("Yes.");
        let server = server([reply.event(json!({ "choices": [], "usage": usage }))]);
        let options = agent(&server).tools(tools()).auto_execute_tools(true);
        let options = options.before_step(move |step| async move {
            step.only_tools((0..offered).map(|number| format!("search_{number}")))
        });
        let mut client = Client::new(options.build().unwrap()).unwrap();
        client.send(&prompt).await.unwrap();
        let events = events(&mut client).await;
        let cuts = events.iter().filter(|event| matches!(event, AgentEvent::PromptCut(_)));
        assert_eq!(cuts.count(), usize::from(is_cut), "{offered} tools");
    }
}

/// The cache may be lost between any two requests of a turn: because of a message, a plan, or the server.
#[tokio::test]
async fn cache_misses_within_a_turn_are_reported() {
    let asks = |hit: u64| {
        let usage = json!({
            "prompt_tokens": 5_000,
            "completion_tokens": 2,
            "prompt_tokens_details": { "cached_tokens": hit },
        });
        let reply = Reply::new().without_usage().call("look", json!({ "at": hit }));
        reply.event(json!({ "choices": [], "usage": usage }))
    };
    let numbers = [0, 4_000, 10, 4_000, 11, 4_000, 12, 4_000];
    let server = server(numbers.map(asks).into_iter().chain([cached(Some(13))]));
    let look = tool("look", "Looks").param("at", "integer").build(|_| async { Ok(json!("seen")) });
    let other = tool("other", "Does else").build(|_| async { Ok(json!("done")) });
    let options = agent(&server).tool(look).tool(other).auto_execute_tools(true);
    let options = options.max_tool_iterations(9).before_step(|step| async move {
        match step.number() {
            // The instructions stand before all messages.
            3 => drop(step.instructions("Hurry.")),
            7 => drop(step.only_tools(["look"])),
            // Some templates write it there, too.
            9 => drop(step.thinking(false)),
            _ => {}
        }
    });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.send("Go on.").await.unwrap();
    let told: Vec<_> = misses(&events(&mut client).await)
        .iter()
        .map(|miss| (miss.cached_now, miss.first_changed))
        .collect();
    let before = Some(ChangedPart::BeforeMessages);
    assert_eq!(told, [(10, before), (11, None), (12, before), (13, before)]);
}
