//! `open-agent-sdk` 0.11.

#[path = "../../shared/harness.rs"]
mod harness;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use open_agent::{AgentOptions, Client, ContentBlock, tool};
use serde_json::Value;

struct Sdk {
    base_url: String,
    /// One client, whose connection is kept.
    client: Client,
    /// Created on first use, because a client takes a megabyte.
    agent: Option<Client>,
    calls: Arc<AtomicUsize>,
}

impl harness::Peer for Sdk {
    fn new(base_url: String) -> Self {
        let options = AgentOptions::builder().model("tiny").base_url(base_url.as_str()).build();
        let client = Client::new(options.expect("the options are valid"));
        let client = client.expect("the options are valid");
        Self { client, agent: None, base_url, calls: Arc::default() }
    }

    fn another(&self) -> Self {
        // Its clients share nothing.
        Self::new(self.base_url.clone())
    }

    async fn ask(&mut self, mut on_pieces: impl FnMut(usize)) {
        self.client.clear_history();
        self.client.send(harness::PROMPT).await.expect("the server answers");
        while let Some(block) = self.client.receive().await.expect("the answer is whole") {
            match block {
                ContentBlock::Text(_) => on_pieces(1),
                ContentBlock::ToolUse(call) => {
                    on_pieces(harness::words(call.input()["text"].as_str().unwrap_or_default()));
                }
                _ => {}
            }
        }
    }

    async fn converse(&mut self) -> usize {
        self.calls.store(0, Ordering::Relaxed);
        let (calls, base_url) = (Arc::clone(&self.calls), &self.base_url);
        let agent = self.agent.get_or_insert_with(|| {
            let read = tool("read", "Read a page").param("page", "integer").build(move |_| {
                calls.fetch_add(1, Ordering::Relaxed);
                async { Ok(Value::from(harness::page())) }
            });
            let options = AgentOptions::builder().model("tiny").base_url(base_url.as_str()).tool(read);
            let options = options.auto_execute_tools(true).max_tool_iterations(1_000).build();
            Client::new(options.expect("the options are valid")).expect("the options are valid")
        });
        agent.clear_history();
        agent.send("Read the book.").await.expect("the server answers");
        while agent.receive().await.expect("the answer is whole").is_some() {}
        self.calls.load(Ordering::Relaxed)
    }
}

fn main() {
    harness::main::<Sdk>();
}
