//! The model's thinking before its answer.

use open_agent::{ContentBlock, FinishReason, json};
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
