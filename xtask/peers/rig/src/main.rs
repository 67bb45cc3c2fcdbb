//! `rig-core`. Its tool loop is in a separate crate, so this one is what users of `rig-core` write.

#[path = "../../shared/harness.rs"]
mod harness;

use futures::StreamExt;
use rig_core::completion::{CompletionRequest, CompletionResponse, Message, ToolDefinition};
use rig_core::providers::openai::{OpenAI, OpenAIConfig};
use rig_core::streaming::{Item, StreamEvent};
use serde_json::json;

#[derive(Clone)]
struct Rig {
    client: OpenAI,
}

impl Rig {
    async fn answer(
        &self,
        request: CompletionRequest,
        mut on_pieces: impl FnMut(usize),
    ) -> CompletionResponse {
        let mut stream = self.client.chat("tiny").stream(request).expect("the request is valid");
        while let Some(item) = stream.next().await {
            if let Item::Event(StreamEvent::Text { text, .. }) = item.expect("the answer is whole")
                && !text.is_empty()
            {
                on_pieces(1);
            }
        }
        stream.finish().await.expect("the answer is whole")
    }
}

impl harness::Peer for Rig {
    fn new(base_url: String) -> Self {
        Self { client: OpenAIConfig::new("none").with_base_url(base_url).client() }
    }

    fn another(&self) -> Self {
        self.clone()
    }

    async fn ask(&mut self, mut on_pieces: impl FnMut(usize)) {
        let response = self.answer(CompletionRequest::new(harness::PROMPT), &mut on_pieces).await;
        for call in response.tool_calls() {
            let text = call.function.arguments.get("text").and_then(|text| text.as_str());
            on_pieces(harness::words(text.unwrap_or_default()));
        }
    }

    async fn converse(&mut self) -> usize {
        let schema = json!({ "type": "object", "properties": { "page": { "type": "integer" } }, "required": ["page"] });
        let name = "read".to_owned().try_into().expect("a name is not empty");
        let read = ToolDefinition::new(name, "Read a page", schema);
        let mut messages = vec![Message::user("Read the book.")];
        let mut rounds = 0;
        loop {
            let (prompt, before) = messages.split_last().expect("there is a prompt");
            let request =
                CompletionRequest::new(prompt.clone()).messages(before.to_vec()).tool(read.clone());
            let response = self.answer(request, |_| ()).await;
            let calls: Vec<_> = response.tool_calls().cloned().collect();
            if calls.is_empty() {
                return rounds;
            }
            rounds += 1;
            messages.extend(response.message());
            for call in calls {
                messages.push(Message::tool_result(call.id, call.function.name, harness::page()));
            }
        }
    }
}

fn main() {
    harness::main::<Rig>();
}
