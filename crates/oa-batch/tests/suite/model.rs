//! A model that repeats its prompt and counts its requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use oa_batch::RunningBatch;
use oa_chat::RetryConfig;
use oa_client::{AgentOptions, Error, Reply as Answer, Result};
use oa_testkit::{MemoryServer, Reply, Request, Script};

/// The number of requests for each prompt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked(Arc<Mutex<HashMap<String, u32>>>);

impl Asked {
    /// Counts a prompt and returns how often it was asked.
    pub(crate) fn count(&self, prompt: &str) -> u32 {
        let mut counts = self.0.lock().expect("no test panics here");
        let count = counts.entry(prompt.to_owned()).or_default();
        *count += 1;
        *count
    }

    pub(crate) fn times(&self, prompt: &str) -> u32 {
        self.0.lock().expect("no test panics here").get(prompt).copied().unwrap_or_default()
    }

    pub(crate) fn total(&self) -> u32 {
        self.0.lock().expect("no test panics here").values().sum()
    }
}

pub(crate) fn prompt(request: &Request) -> &str {
    request.messages().last().and_then(|last| last["content"].as_str()).unwrap_or("?")
}

/// A server that repeats the prompt; `reply` may say something else, told how often this prompt was asked.
pub(crate) fn server(
    asked: &Asked,
    reply: impl Fn(&str, u32) -> Option<Reply> + Send + Sync + 'static,
) -> MemoryServer {
    let asked = asked.clone();
    let answer = move |request: &Request| {
        let prompt = prompt(request);
        let times = asked.count(prompt);
        reply(prompt, times).unwrap_or_else(|| Reply::text(echo(prompt)).usage(5, 2))
    };
    MemoryServer::new(Script::new().strict().otherwise(Reply::by(answer)))
}

pub(crate) fn echo(prompt: &str) -> String {
    format!("{prompt}, you say?")
}

/// An agent without retries of its own.
pub(crate) fn agent(server: MemoryServer) -> AgentOptions {
    let options = AgentOptions::builder().model("any").transport(server);
    options.retry(RetryConfig::none()).build().expect("the options are valid")
}

pub(crate) fn prompts(count: usize) -> impl Iterator<Item = String> + Send {
    (0..count).map(|number| format!("prompt {number}"))
}

/// Returns all outcomes, in the order in which they were yielded.
pub(crate) async fn all(mut batch: RunningBatch<'_>) -> Vec<(usize, Result<Answer, Error>)> {
    let mut outcomes = Vec::new();
    while let Some(outcome) = batch.next().await {
        outcomes.push(outcome);
    }
    assert!(batch.next().await.is_none(), "it stays at its end");
    outcomes
}
