//! The points at which a conversation may be cut.

use std::ops::Range;

use oa_types::{ContentBlock, Message, MessageRole};

/// A prompt, possibly of several messages, and everything that followed from it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exchange {
    /// The user's messages; empty if the conversation has none.
    pub(crate) prompt: Range<usize>,
    /// Answers, calls and results, up to the next prompt.
    pub(crate) rest: Range<usize>,
}

impl Exchange {
    pub(crate) fn range(&self) -> Range<usize> {
        self.prompt.start..self.rest.end
    }

    /// Returns the rounds: each answer with the results of its calls.
    pub(crate) fn rounds(&self, messages: &[Message]) -> Vec<Range<usize>> {
        let is_answer = |place: &usize| messages[*place].role == MessageRole::Assistant;
        let mut starts: Vec<usize> = self.rest.clone().filter(is_answer).collect();
        // Anything before the first answer belongs to its round, so that rounds have no gaps.
        if let Some(first) = starts.first_mut() {
            *first = self.rest.start;
        }
        let ends = starts.iter().copied().skip(1).chain([self.rest.end]);
        starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
    }
}

/// Returns the number of leading system messages.
pub(crate) fn leading_system(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.role == MessageRole::System).count()
}

/// Returns all exchanges. Messages before the first prompt belong to none.
pub(crate) fn exchanges(messages: &[Message]) -> Vec<Exchange> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut place = 0;
    while place < messages.len() {
        let is_prompt = |message: &&Message| is_prompt(message);
        let length = messages[place..].iter().take_while(is_prompt).count();
        if length > 0 {
            let prompt = place..place + length;
            place = prompt.end;
            exchanges.push(Exchange { rest: place..place, prompt });
        } else {
            place += 1;
            if let Some(last) = exchanges.last_mut() {
                last.rest.end = place;
            }
        }
    }
    exchanges
}

/// Returns true for a user message that is sent as one, which excludes tool results and empty messages.
pub(crate) fn is_prompt(message: &Message) -> bool {
    let says_something = |block: &ContentBlock| match block {
        ContentBlock::Text(block) => !block.text.is_empty(),
        block => block.is_media(),
    };
    message.role == MessageRole::User && message.content.iter().any(says_something)
}

#[cfg(test)]
mod tests {
    use oa_types::{TextBlock, ToolResultBlock, ToolUseBlock};
    use serde_json::json;

    use super::*;

    fn answer(calls: usize) -> Message {
        let call = |number| ToolUseBlock::new(format!("call_{number}"), "add", json!({})).into();
        let mut content: Vec<ContentBlock> = (0..calls).map(call).collect();
        content.push(TextBlock::new("Well.").into());
        Message::assistant(content)
    }

    fn result(number: usize) -> Message {
        Message::tool(ToolResultBlock::new(format!("call_{number}"), json!(1)))
    }

    #[test]
    fn exchanges_start_at_prompts() {
        let messages = [
            Message::system("Be brief."),
            Message::user("a"),
            answer(2),
            result(0),
            result(1),
            answer(0),
            Message::user("b"),
            Message::user("c"),
            answer(0),
        ];
        assert_eq!(leading_system(&messages), 1);
        let exchanges = exchanges(&messages);
        assert_eq!(
            exchanges,
            [Exchange { prompt: 1..2, rest: 2..6 }, Exchange { prompt: 6..8, rest: 8..9 }]
        );
        assert_eq!(exchanges[0].rounds(&messages), [2..5, 5..6]);
        assert_eq!(exchanges[1].rounds(&messages).len(), 1);
    }

    #[test]
    fn empty_messages_begin_no_exchange() {
        let empty = Message::user("");
        let mut results = result(0);
        results.role = MessageRole::User;
        assert_eq!(exchanges(&[answer(0), empty, results]), []);
    }
}
