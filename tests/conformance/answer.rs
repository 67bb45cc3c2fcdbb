//! An answer, read to its end.

use open_agent::{
    AgentOptions, AssistantMessage, BlockStream, ContentBlock, Error, FinishReason, Result,
    ToolUseBlock, ToolUseError, query,
};

/// Everything that came out of a stream.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The blocks, in order of arrival.
    pub(crate) blocks: Vec<ContentBlock>,
    /// The error that ended the stream early.
    pub(crate) error: Option<Error>,
    /// The complete message.
    pub(crate) message: AssistantMessage,
}

/// Asks, and reads the answer to its end or to an error.
pub(crate) async fn ask(options: &AgentOptions, prompt: &str) -> Result<Answer> {
    let mut answer = Answer::read(query(prompt, options).await?).await;
    answer.error.take().map_or(Ok(answer), Err)
}

impl Answer {
    /// Reads to the end and checks the laws of every answer: the message equals the blocks, nothing follows an
    /// error, calls come last.
    pub(crate) async fn read(mut stream: BlockStream) -> Self {
        let (mut blocks, mut error) = (Vec::new(), None);
        while let Some(block) = stream.next().await {
            match block {
                Ok(block) => blocks.push(block),
                Err(failure) => error = Some(failure),
            }
            if error.is_some() {
                assert!(stream.next().await.is_none(), "something comes after {error:?}");
            }
        }
        assert!(stream.next().await.is_none(), "an ended stream goes on");
        let message = stream.message().expect("an ended answer has a message").clone();
        assert_eq!(stream.finish_reason(), Some(&message.finish_reason));
        assert_eq!(stream.usage(), message.usage);

        let answer = Self { blocks, error, message };
        assert_eq!(answer.text(), answer.message.text());
        assert_eq!(answer.thinking(), thinking(&answer.message.content));
        if answer.error.is_none() {
            let calls = calls(&answer.message.content).cloned().collect::<Vec<_>>();
            assert_eq!(answer.calls(), calls);
        }
        let order = answer.order();
        let first_call = order.iter().position(|kind| *kind == "call");
        assert!(first_call.is_none_or(|at| at == order.len() - 1), "calls are not last: {order:?}");
        answer
    }

    pub(crate) fn text(&self) -> String {
        self.blocks.iter().filter_map(ContentBlock::as_text).collect()
    }

    pub(crate) fn thinking(&self) -> String {
        thinking(&self.blocks)
    }

    /// The valid calls.
    pub(crate) fn calls(&self) -> Vec<ToolUseBlock> {
        calls(&self.blocks).cloned().collect()
    }

    /// The broken calls.
    pub(crate) fn broken_calls(&self) -> Vec<&ToolUseError> {
        let blocks = self.blocks.iter();
        let broken = blocks.filter_map(|block| match block {
            ContentBlock::ToolUseError(error) => Some(error),
            _ => None,
        });
        broken.collect()
    }

    pub(crate) fn finish(&self) -> &FinishReason {
        &self.message.finish_reason
    }

    /// Returns the number of text blocks.
    pub(crate) fn pieces(&self) -> usize {
        self.blocks.iter().filter(|block| block.as_text().is_some()).count()
    }

    /// Returns the kinds of blocks in order of arrival, with runs collapsed.
    pub(crate) fn order(&self) -> Vec<&'static str> {
        let mut order: Vec<_> = self.blocks.iter().map(kind).collect();
        order.dedup();
        order
    }
}

fn kind(block: &ContentBlock) -> &'static str {
    match block {
        ContentBlock::Text(_) => "text",
        ContentBlock::Thinking(_) => "thinking",
        ContentBlock::ToolUse(_) | ContentBlock::ToolUseError(_) => "call",
        other => panic!("no model says this: {other:?}"),
    }
}

fn thinking(blocks: &[ContentBlock]) -> String {
    let thinking = blocks.iter().filter_map(|block| match block {
        ContentBlock::Thinking(block) => Some(&*block.thinking),
        _ => None,
    });
    thinking.collect()
}

fn calls(blocks: &[ContentBlock]) -> impl Iterator<Item = &ToolUseBlock> {
    blocks.iter().filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(call),
        _ => None,
    })
}
