use std::collections::VecDeque;
use std::mem;

use oa_types::{
    AssistantMessage, ContentBlock, Cost, Extra, FinishReason, Message, TextBlock, ThinkingBlock,
    ToolUseBlock, ToolUseError, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::options::Mode;
use crate::repair::has_text;
use crate::round::Piece;

/// The model's answer to a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Answer {
    /// Text, thinking and calls, in order.
    pub blocks: Vec<ContentBlock>,
    /// The finish reason, as the server reported it.
    #[serde(default)]
    pub finish_reason: FinishReason,
    /// Server-specific members of the message that the server expects back.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
    /// The number of tokens used; 0 if unknown.
    #[serde(default)]
    pub tokens: u64,
    /// The size in tokens of a conversation that ends with this answer: the tokens of the request, and of the answer
    /// without thinking; 0 if unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub context_tokens: u64,
    /// The cost in money; zero if unknown.
    #[serde(default)]
    pub cost: Cost,
}

impl Answer {
    /// Creates an answer with these blocks and defaults for everything else.
    #[must_use]
    pub fn new(blocks: Vec<ContentBlock>) -> Self {
        Self {
            blocks,
            finish_reason: FinishReason::Unspecified,
            extra: Extra::default(),
            tokens: 0,
            context_tokens: 0,
            cost: Cost::ZERO,
        }
    }
}

impl From<&AssistantMessage> for Answer {
    fn from(message: &AssistantMessage) -> Self {
        Self {
            blocks: message.content.clone(),
            finish_reason: message.finish_reason.clone(),
            extra: message.extra.clone(),
            tokens: message.usage.and_then(|usage| usage.total()).unwrap_or_default(),
            context_tokens: message.usage.as_ref().map_or(0, context_tokens),
            cost: message.usage.and_then(|usage| usage.cost).unwrap_or_default(),
        }
    }
}

/// Returns the tokens of a request and its answer without thinking; 0 unless both are reported.
fn context_tokens(usage: &Usage) -> u64 {
    let thinking = usage.reasoning_tokens.unwrap_or_default();
    let both = usage.prompt_tokens.filter(|tokens| *tokens > 0).zip(usage.completion_tokens);
    both.map_or(0, |(prompt, answer)| prompt.saturating_add(answer.saturating_sub(thinking)))
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The blocks of an answer, sorted by their use.
pub(crate) struct Recorded {
    /// The blocks that go into history.
    pub(crate) blocks: Vec<ContentBlock>,
    /// The calls and errors to show after the text.
    pub(crate) pieces: VecDeque<Piece>,
    /// The malformed calls that go into history, by their index among the calls.
    pub(crate) malformed: Vec<(usize, ToolUseError)>,
}

pub(crate) fn recorded(blocks: Vec<ContentBlock>, mode: Mode) -> Recorded {
    if is_plain(&blocks) {
        return Recorded { blocks, pieces: VecDeque::new(), malformed: Vec::new() };
    }
    let mut malformed = Vec::new();
    let mut pieces = VecDeque::new();
    let mut kept: Vec<ContentBlock> = Vec::with_capacity(blocks.len());
    // One id for each call in history, so the length is the index of the next call.
    let mut ids: Vec<String> = Vec::new();
    for block in blocks {
        match block {
            // Servers reject such a call.
            ContentBlock::ToolUse(call) if call.id.is_empty() || call.name.is_empty() => {
                let raw = call.input.to_string();
                pieces.push_back(Piece::Error(ToolUseError::new(NAMELESS, raw)));
            }
            ContentBlock::ToolUse(call) if !ids.contains(&call.id) => {
                pieces.push_back(Piece::Call(ids.len()));
                ids.push(call.id.clone());
                add(&mut kept, call.into());
            }
            ContentBlock::ToolUseError(error) => {
                // In auto mode the model reads the error as a result; without a name there is no call to answer.
                if let (Mode::Auto, Some(name), Some(id)) = (mode, &error.name, &error.id)
                    && !ids.contains(id)
                    && !id.is_empty()
                    && !name.is_empty()
                {
                    let call = ToolUseBlock::new(id, name, Value::Object(Map::new()));
                    malformed.push((ids.len(), error.clone()));
                    ids.push(id.clone());
                    add(&mut kept, call.into());
                }
                pieces.push_back(Piece::Error(error));
            }
            ContentBlock::Text(_) | ContentBlock::Thinking(_) => add(&mut kept, block),
            // Also a call whose id another call of the answer has: its result could not be told apart.
            _ => {}
        }
    }
    Recorded { blocks: kept, pieces, malformed }
}

/// The error of a call that cannot be answered.
const NAMELESS: &str = "the call has no id or no tool name";

/// Returns true if all blocks are text or thinking, already merged as by [`add`].
fn is_plain(blocks: &[ContentBlock]) -> bool {
    let has_words = |block: &ContentBlock| match block {
        ContentBlock::Text(block) => !block.text.is_empty(),
        ContentBlock::Thinking(block) => !block.thinking.is_empty(),
        _ => false,
    };
    let differ = |pair: &[ContentBlock]| mem::discriminant(&pair[0]) != mem::discriminant(&pair[1]);
    blocks.iter().all(has_words) && blocks.windows(2).all(differ)
}

/// Returns the message for an unfinished answer: its text and thinking, if any.
pub(crate) fn unfinished(partial: Vec<ContentBlock>) -> Option<Message> {
    let is_words =
        |block: &ContentBlock| matches!(block, ContentBlock::Text(_) | ContentBlock::Thinking(_));
    let words = partial.into_iter().filter(is_words).collect();
    let mut message = Message::assistant(merged(words));
    message.interrupted = true;
    has_text(&message).then_some(message)
}

/// Merges adjacent blocks of text, or of thinking, and drops empty ones.
fn merged(blocks: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let mut merged = Vec::with_capacity(blocks.len());
    for block in blocks {
        add(&mut merged, block);
    }
    merged
}

fn add(merged: &mut Vec<ContentBlock>, block: ContentBlock) {
    match (merged.last_mut(), block) {
        (_, ContentBlock::Text(TextBlock { text, .. })) if text.is_empty() => {}
        (_, ContentBlock::Thinking(ThinkingBlock { thinking, .. })) if thinking.is_empty() => {}
        (Some(ContentBlock::Text(last)), ContentBlock::Text(next)) => {
            last.text.push_str(&next.text);
        }
        (Some(ContentBlock::Thinking(last)), ContentBlock::Thinking(next)) => {
            last.thinking.push_str(&next.thinking);
        }
        (_, block) => merged.push(block),
    }
}

/// Returns the error of a call without a name, if the model finished with calls, or with one that the server could not
/// read (QUIRKS row 128).
pub(crate) fn lost_call(blocks: &[ContentBlock], reason: &FinishReason) -> Option<String> {
    if !reason.is_malformed_call() && !reason.is_tool_calls() {
        return None;
    }
    blocks.iter().find_map(|block| match block {
        ContentBlock::ToolUseError(error) if error.name.is_none() => Some(error.error.clone()),
        _ => None,
    })
}
