use oa_context::TokenCounter;
use oa_types::{ContentBlock, Message, MessageRole};

/// The tokens of a conversation, each message estimated once.
#[derive(Debug, Default)]
pub(super) struct Estimates {
    /// Sums up to and including each message.
    sums: Vec<Sum>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    tokens: usize,
    /// Images, which have no tokens here.
    images: usize,
    /// The index of the last answer plus one; 0 if there is none.
    answer: usize,
}

/// The estimated tokens of a conversation.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) before_answer: usize,
    pub(super) answer: usize,
    pub(super) since: usize,
    /// Images before the last answer and from it on.
    pub(super) images: [usize; 2],
}

impl Estimates {
    /// Forgets all messages from this index on.
    pub(super) fn truncate(&mut self, place: usize) {
        self.sums.truncate(place);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Returns the tokens of the conversation, whose messages are known up to where they were estimated last.
    pub(super) fn parts(&mut self, counter: &impl TokenCounter, history: &[Message]) -> Parts {
        let mut sum = self.sums.last().copied().unwrap_or_default();
        for (place, message) in history.iter().enumerate().skip(self.sums.len()) {
            let is_image = |block: &&ContentBlock| matches!(block, ContentBlock::Image(_));
            sum.tokens += counter.count_message(message);
            sum.images += message.content.iter().filter(is_image).count();
            if message.role == MessageRole::Assistant {
                sum.answer = place + 1;
            }
            self.sums.push(sum);
        }
        let up_to = |count: usize| {
            count.checked_sub(1).and_then(|place| self.sums.get(place)).copied().unwrap_or_default()
        };
        // Without an answer all is new.
        let (before, with) = (up_to(sum.answer.saturating_sub(1)), up_to(sum.answer));
        Parts {
            before_answer: before.tokens,
            answer: with.tokens - before.tokens,
            since: sum.tokens - with.tokens,
            images: [before.images, sum.images - before.images],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use oa_context::{Estimator, counter_fn};
    use oa_types::{ImageBlock, TextBlock, ToolResultBlock, ToolUseBlock};
    use serde_json::json;

    use super::*;

    fn round(number: usize) -> [Message; 2] {
        let id = format!("call_{number}");
        let call = ToolUseBlock::new(&*id, "read", json!({ "line": number }));
        let result = ToolResultBlock::new(&*id, "words of a file ".repeat(64).into());
        [Message::assistant(vec![call.into()]), Message::tool(result)]
    }

    #[test]
    fn each_message_is_looked_at_once() {
        let looked_at = AtomicUsize::new(0);
        let counter = counter_fn(|text: &str| {
            looked_at.fetch_add(text.len(), Ordering::Relaxed);
            text.len() / 4
        });
        let mut estimates = Estimates::default();
        let mut history = vec![Message::user("Read it.")];
        let mut by_round = Vec::new();
        for number in 0..200 {
            history.extend(round(number));
            let before = looked_at.load(Ordering::Relaxed);
            let parts = estimates.parts(&counter, &history);
            by_round.push(looked_at.load(Ordering::Relaxed) - before);
            let once =
                Estimates::default().parts(&counter_fn(|text: &str| text.len() / 4), &history);
            assert_eq!(parts.tokens(), once.tokens());
        }
        let (first, last) = (by_round[1], by_round[199]);
        assert!(last <= first + 8, "{first} bytes in the second round, {last} in the last");
        // What has gone is forgotten, and nothing else.
        let before = looked_at.load(Ordering::Relaxed);
        estimates.truncate(399);
        estimates.parts(&counter, &history);
        assert_eq!(looked_at.load(Ordering::Relaxed) - before, last);
    }

    #[test]
    fn parts_are_told_apart_by_the_last_answer() {
        let image = || ImageBlock::from_url("https://host/a.png").expect("an address");
        let history = [
            Message::user_with_image("What is it?", image()),
            Message::assistant(vec![TextBlock::new("A cat.").into()]),
            Message::user_with_image("And this?", image()),
        ];
        let counter = Estimator::new();
        let count = |place: usize| counter.count_message(&history[place]);
        let parts = Estimates::default().parts(&counter, &history);
        assert_eq!(
            (parts.before_answer, parts.answer, parts.since),
            (count(0), count(1), count(2))
        );
        assert_eq!(parts.images, [1, 1]);
        let parts = Estimates::default().parts(&counter, &history[..1]);
        assert_eq!((parts.before_answer, parts.answer, parts.since), (0, 0, count(0)));
    }
}
