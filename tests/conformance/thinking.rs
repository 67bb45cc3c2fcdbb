//! The model's thinking before its answer.

use open_agent::{Client, ContentBlock, FinishReason, Provider, Thinking, ThinkingReplay, json};
use serde_json::Value;

use crate::answer::ask;
use crate::server::{Wanted, check};

const PROMPT: &str = "What is 17 times 3?";

/// The request member of llama.cpp and vLLM; other servers ignore it.
fn on() -> Value {
    json!({ "chat_template_kwargs": { "enable_thinking": true } })
}

#[test]
fn thinking_precedes_the_text() {
    check(Wanted::Any, async |server| {
        let options = server.options().seed(3).extra_body(on()).build().unwrap();
        let answer = ask(&options, PROMPT).await;
        let Some(answer) = server.unless_lacking("thinking", answer) else {
            return;
        };
        if answer.thinking().is_empty() {
            return server.lacks("thinking in a field of its own", &answer);
        }
        assert_eq!(answer.order(), ["thinking", "text"]);
        let is_thinking = |block: &&ContentBlock| matches!(block, ContentBlock::Thinking(_));
        assert!(answer.blocks.iter().filter(is_thinking).count() > 1);
        // In the message it is a single block, the first.
        assert_eq!(answer.message.content.iter().filter(is_thinking).count(), 1);
        assert!(is_thinking(&&answer.message.content[0]));
        assert!(!answer.text().contains("<think>") && !answer.text().contains("</think>"));
    });
}

#[test]
fn thinking_must_be_requested() {
    check(Wanted::Tiny, async |server| {
        let answer = ask(&server.options().seed(3).build().unwrap(), PROMPT).await.unwrap();
        assert_eq!(answer.order(), ["text"]);
    });
}

#[test]
fn thinking_cut_by_max_tokens_has_no_text() {
    check(Wanted::Any, async |server| {
        let options = server.options().seed(3).max_tokens(4).extra_body(on()).build().unwrap();
        let answer = ask(&options, PROMPT).await;
        let Some(answer) = server.unless_lacking("thinking", answer) else {
            return;
        };
        if answer.thinking().is_empty() {
            return server.lacks("thinking in a field of its own", &answer);
        }
        assert_eq!(answer.order(), ["thinking"]);
        assert_eq!(*answer.finish(), FinishReason::Length);
    });
}

#[test]
fn the_option_turns_thinking_on_and_off() {
    check(Wanted::Tiny, async |server| {
        let order = async |thinking: Thinking| {
            let options = server.options().provider(Provider::LlamaCpp).base_url(&server.base_url);
            let options = options.seed(3).thinking(thinking).build().unwrap();
            ask(&options, PROMPT).await.unwrap().order()
        };
        assert_eq!(order(true.into()).await, ["thinking", "text"]);
        assert_eq!(order("low".into()).await, ["thinking", "text"]);
        assert_eq!(order(false.into()).await, ["text"]);
    });
}

#[test]
fn the_model_reads_its_thinking_again() {
    check(Wanted::Tiny, async |server| {
        let read = async |replay: Option<ThinkingReplay>| {
            let options = server.options().provider(Provider::LlamaCpp).base_url(&server.base_url);
            let mut options = options.seed(3).max_tokens(200).thinking(true);
            if let Some(replay) = replay {
                options = options.thinking_replay(replay);
            }
            let mut client = Client::new(options.build().unwrap()).unwrap();
            client.ask(PROMPT).await.unwrap();
            let is_thinking = |block: &ContentBlock| matches!(block, ContentBlock::Thinking(_));
            assert!(client.history()[1].content.iter().any(is_thinking));
            client.ask("And 18 times 3?").await.unwrap();
            client.usage().and_then(|usage| usage.prompt_tokens).expect("it tells its usage")
        };
        let (with, without) = (read(None).await, read(Some(ThinkingReplay::Drop)).await);
        println!("{with} tokens with the thinking, {without} without");
        assert!(with > without);
    });
}
