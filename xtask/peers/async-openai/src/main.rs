//! `async-openai`. It has no tool loop, so this one is what its users write.

#[path = "../../shared/harness.rs"]
mod harness;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls,
    ChatCompletionRequestAssistantMessageArgs, ChatCompletionRequestMessage,
    ChatCompletionRequestToolMessageArgs, ChatCompletionRequestUserMessage,
    ChatCompletionStreamOptions, ChatCompletionTool, ChatCompletionTools,
    CreateChatCompletionRequest, CreateChatCompletionRequestArgs, FunctionCall, FunctionObjectArgs,
};
use futures::StreamExt;
use serde_json::{Value, json};

#[derive(Clone)]
struct AsyncOpenAi {
    client: Client<OpenAIConfig>,
}

impl AsyncOpenAi {
    fn request(
        &self,
        messages: Vec<ChatCompletionRequestMessage>,
        tools: bool,
    ) -> CreateChatCompletionRequest {
        let mut request = CreateChatCompletionRequestArgs::default();
        request.model("tiny").messages(messages).stream(true).stream_options(
            ChatCompletionStreamOptions { include_usage: Some(true), include_obfuscation: None },
        );
        if tools {
            let schema = json!({ "type": "object", "properties": { "page": { "type": "integer" } }, "required": ["page"] });
            let function = FunctionObjectArgs::default()
                .name("read")
                .description("Read a page")
                .parameters(schema)
                .build();
            let function = function.expect("the function is valid");
            request.tools(vec![ChatCompletionTools::Function(ChatCompletionTool { function })]);
        }
        request.build().expect("the request is valid")
    }

    /// Asks, and returns the calls of the answer.
    async fn answer(
        &self,
        request: CreateChatCompletionRequest,
        mut on_pieces: impl FnMut(usize),
    ) -> Vec<ChatCompletionMessageToolCall> {
        let mut stream =
            self.client.chat().create_stream(request).await.expect("the server answers");
        let mut calls: Vec<ChatCompletionMessageToolCall> = Vec::new();
        while let Some(chunk) = stream.next().await {
            for choice in chunk.expect("the answer is whole").choices {
                if choice.delta.content.is_some_and(|text| !text.is_empty()) {
                    on_pieces(1);
                }
                for piece in choice.delta.tool_calls.into_iter().flatten() {
                    let at = piece.index as usize;
                    if calls.len() <= at {
                        calls.push(ChatCompletionMessageToolCall {
                            id: piece.id.unwrap_or_default(),
                            function: FunctionCall {
                                name: String::new(),
                                arguments: String::new(),
                            },
                        });
                    }
                    if let Some(function) = piece.function {
                        calls[at].function.name.push_str(&function.name.unwrap_or_default());
                        calls[at]
                            .function
                            .arguments
                            .push_str(&function.arguments.unwrap_or_default());
                    }
                }
            }
        }
        calls
    }
}

impl harness::Peer for AsyncOpenAi {
    fn new(base_url: String) -> Self {
        let config = OpenAIConfig::new().with_api_base(base_url).with_api_key("none");
        Self { client: Client::with_config(config) }
    }

    fn another(&self) -> Self {
        self.clone()
    }

    async fn ask(&mut self, mut on_pieces: impl FnMut(usize)) {
        let prompt = ChatCompletionRequestUserMessage::from(harness::PROMPT).into();
        let request = self.request(vec![prompt], false);
        let calls = self.answer(request, &mut on_pieces).await;
        for call in calls {
            let input: Value =
                serde_json::from_str(&call.function.arguments).expect("the arguments are JSON");
            on_pieces(harness::words(input["text"].as_str().unwrap_or_default()));
        }
    }

    async fn converse(&mut self) -> usize {
        let mut messages = vec![ChatCompletionRequestUserMessage::from("Read the book.").into()];
        let mut rounds = 0;
        loop {
            let calls = self.answer(self.request(messages.clone(), true), |_| ()).await;
            if calls.is_empty() {
                return rounds;
            }
            rounds += 1;
            let shown: Vec<_> =
                calls.iter().cloned().map(ChatCompletionMessageToolCalls::Function).collect();
            let assistant =
                ChatCompletionRequestAssistantMessageArgs::default().tool_calls(shown).build();
            messages.push(assistant.expect("the message is valid").into());
            for call in calls {
                let _: Value =
                    serde_json::from_str(&call.function.arguments).expect("the arguments are JSON");
                let result = ChatCompletionRequestToolMessageArgs::default()
                    .content(harness::page())
                    .tool_call_id(call.id)
                    .build();
                messages.push(result.expect("the message is valid").into());
            }
        }
    }
}

fn main() {
    harness::main::<AsyncOpenAi>();
}
