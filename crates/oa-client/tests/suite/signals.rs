//! Signals of local servers: prompt progress, and caches that are lost.

use std::time::Duration;

use oa_chat::{Provider, RetryConfig};
use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client};
use oa_context::{CacheMiss, ChangedPart};
use oa_testkit::{MemoryServer, Reply, Script};
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
async fn progress_is_asked_for_where_the_server_knows_it() {
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
async fn progress_is_told_before_the_answer() {
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

/// A stream that breaks after progress has said nothing of its answer: it is asked for again, and a prompt is taken back.
#[tokio::test(start_paused = true)]
async fn progress_is_no_beginning_of_an_answer() {
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
async fn a_cache_that_collapsed_is_told_with_what_has_changed() {
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
