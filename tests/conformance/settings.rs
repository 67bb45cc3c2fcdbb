//! Settings of single servers, settings of single requests, and warming up.

use std::collections::HashSet;

use open_agent::{AgentOptions, Client, FinishReason, json, query, tool};

use crate::answer::ask;
use crate::server::{Server, Wanted, check, check_alone};

const PROMPT: &str = "Tell me about herons.";

/// The texts of answers with the highest temperature and three seeds.
async fn texts(server: &Server, extra: open_agent::Value) -> HashSet<String> {
    let mut texts = HashSet::new();
    for seed in 1..=3 {
        let options = server.options().seed(seed).temperature(2.0).extra_body(extra.clone());
        let options = options.max_tokens(20).build().expect("options");
        texts.insert(ask(&options, PROMPT).await.expect("an answer").text());
    }
    texts
}

#[test]
fn extra_members_reach_the_sampler() {
    check(Wanted::Tiny, async |server| {
        assert!(texts(server, json!({ "top_k": 0 })).await.len() > 1);
        assert_eq!(texts(server, json!({ "top_k": 1 })).await.len(), 1);
    });
}

#[test]
fn a_step_limits_its_answer() {
    check(Wanted::Tiny, async |server| {
        let options = server
            .options()
            .seed(3)
            .before_step(|step| async move { step.max_tokens(2).temperature(0.0).thinking(false) });
        let options = options.provider(open_agent::Provider::LlamaCpp);
        let mut client = Client::new(options.build().unwrap()).unwrap();
        let reply = client.ask(PROMPT).await.unwrap();
        assert_eq!(reply.finish_reason, FinishReason::Length);
        assert_eq!(client.usage().unwrap().completion_tokens, Some(2));
    });
}

/// The program of the manual's page about settings.
#[test]
fn a_warm_up_fills_the_cache() {
    check_alone(Wanted::Tiny, async |server| {
        let look = tool("look", "Looks at a place, such as a lake. ".repeat(10));
        let options: AgentOptions = server
            .options()
            .seed(3)
            // The generated model is served without a cache, so that its answers depend on nothing else.
            .extra_body(json!({ "cache_prompt": true }))
            .system_prompt("You know all about birds, and answer briefly. ".repeat(10))
            .tool(look.build(|_| async { Ok(json!("A heron.")) }))
            .build()
            .unwrap();
        let first = options.with_parameters(|parameters| parameters.max_tokens = Some(1)).unwrap();
        query("Hi.", &first).await.unwrap().text().await.unwrap();
        let mut client = Client::new(options).unwrap();
        client.ask(PROMPT).await.unwrap();
        let usage = client.usage().unwrap();
        let (prompt, cached) = (usage.prompt_tokens.unwrap(), usage.cached_tokens.unwrap_or(0));
        println!("{cached} of {prompt} tokens of the first prompt were cached");
        assert!(cached * 10 > prompt * 9, "{cached} of {prompt}");
    });
}
