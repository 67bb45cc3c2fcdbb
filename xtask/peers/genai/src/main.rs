//! `genai`. It has no tool loop, so this one is what its users write.

#[path = "../../shared/harness.rs"]
mod harness;

use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, Tool, ToolCall, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};
use serde_json::json;

#[derive(Clone)]
struct GenAi {
    client: Client,
    options: ChatOptions,
}

impl GenAi {
    async fn answer(
        &self,
        request: ChatRequest,
        mut on_pieces: impl FnMut(usize),
    ) -> Vec<ToolCall> {
        let answer = self.client.exec_chat_stream("tiny", request, Some(&self.options)).await;
        let mut stream = answer.expect("the server answers").stream;
        let mut calls = Vec::new();
        while let Some(event) = stream.next().await {
            match event.expect("the answer is whole") {
                ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => on_pieces(1),
                ChatStreamEvent::End(end) => {
                    calls = end.captured_into_tool_calls().unwrap_or_default();
                }
                _ => {}
            }
        }
        calls
    }
}

impl harness::Peer for GenAi {
    fn new(base_url: String) -> Self {
        let resolver = ServiceTargetResolver::from_resolver_fn(
            move |target: ServiceTarget| -> Result<ServiceTarget, genai::resolver::Error> {
                Ok(ServiceTarget {
                    endpoint: Endpoint::from_owned(format!("{base_url}/")),
                    auth: AuthData::from_single("none"),
                    model: ModelIden::new(AdapterKind::OpenAI, target.model.model_name),
                })
            },
        );
        let client = Client::builder().with_service_target_resolver(resolver).build();
        let options = ChatOptions::default().with_capture_usage(true).with_capture_tool_calls(true);
        Self { client: client.expect("a client can be made"), options }
    }

    fn another(&self) -> Self {
        self.clone()
    }

    async fn ask(&mut self, mut on_pieces: impl FnMut(usize)) {
        let request = ChatRequest::from_user(harness::PROMPT);
        for call in self.answer(request, &mut on_pieces).await {
            on_pieces(harness::words(call.fn_arguments["text"].as_str().unwrap_or_default()));
        }
    }

    async fn converse(&mut self) -> usize {
        let schema = json!({ "type": "object", "properties": { "page": { "type": "integer" } }, "required": ["page"] });
        let read = Tool::new("read").with_description("Read a page").with_schema(schema);
        let mut request =
            ChatRequest::new(vec![ChatMessage::user("Read the book.")]).with_tools([read]);
        let mut rounds = 0;
        loop {
            let calls = self.answer(request.clone(), |_| ()).await;
            if calls.is_empty() {
                return rounds;
            }
            rounds += 1;
            let results: Vec<ToolResponse> = calls
                .iter()
                .map(|call| ToolResponse::new(call.call_id.clone(), harness::page()))
                .collect();
            request = request.append_message(calls);
            for result in results {
                request = request.append_message(result);
            }
        }
    }
}

fn main() {
    harness::main::<GenAi>();
}
