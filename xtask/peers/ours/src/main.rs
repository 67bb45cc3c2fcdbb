//! `open-agent`, with its default features.

#[path = "../../shared/harness.rs"]
mod harness;

use open_agent::{AgentOptions, Client, ContentBlock, Value, query, tool};

#[derive(Clone)]
struct Ours {
    plain: AgentOptions,
    with_tool: AgentOptions,
}

impl harness::Peer for Ours {
    fn new(base_url: String) -> Self {
        let builder = || AgentOptions::builder().model("tiny").base_url(base_url.as_str());
        let read = tool("read", "Read a page").param("page", "integer");
        let read = read.build(|_| async { Ok(Value::from(harness::page())) });
        let with_tool = builder().tool(read).auto_execute_tools(true).max_tool_iterations(1_000);
        Self {
            plain: builder().build().expect("the options are valid"),
            with_tool: with_tool.build().expect("the options are valid"),
        }
    }

    fn another(&self) -> Self {
        self.clone()
    }

    async fn ask(&mut self, mut on_pieces: impl FnMut(usize)) {
        let mut answer = query(harness::PROMPT, &self.plain).await.expect("the server answers");
        while let Some(block) = answer.next().await {
            match block.expect("the answer is whole") {
                ContentBlock::Text(_) => on_pieces(1),
                ContentBlock::ToolUse(call) => {
                    on_pieces(harness::words(call.input["text"].as_str().unwrap_or_default()));
                }
                _ => {}
            }
        }
    }

    async fn converse(&mut self) -> usize {
        let mut client = Client::new(self.with_tool.clone()).expect("the options are valid");
        client.send("Read the book.").await.expect("the server answers");
        let mut results = 0;
        while let Some(block) = client.receive().await.expect("the answer is whole") {
            results += usize::from(matches!(block, ContentBlock::ToolResult(_)));
        }
        results
    }
}

fn main() {
    harness::main::<Ours>();
}
