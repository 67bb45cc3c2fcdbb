//! Running counts of a conversation.

use oa_types::{ContentBlock, Message, MessageRole};

use crate::counter::TokenCounter;

/// The tokens of a conversation up to each of its messages, each message counted once.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningCounts {
    /// Up to and including each message.
    totals: Vec<Total>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Total {
    tokens: usize,
    /// The images, and recordings by their size.
    media: usize,
    /// The number of messages up to and including the last answer; 0 if there is none.
    answered: usize,
}

/// The tokens of a conversation, by their place relative to its last answer. Without an answer, all count as after it.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) before_answer: usize,
    pub(super) answer: usize,
    pub(super) since_answer: usize,
    pub(super) media_before_answer: usize,
    pub(super) media_from_answer: usize,
}

impl RunningCounts {
    /// Counts the messages that are new.
    pub(super) fn follow(&mut self, counter: &impl TokenCounter, messages: &[Message]) {
        let mut total = self.totals.last().copied().unwrap_or_default();
        for message in messages.iter().skip(self.totals.len()) {
            let media = |block: &ContentBlock| match block {
                // However it is compressed, that is about a minute at most, which takes fewer tokens than an image may.
                ContentBlock::Audio(audio) => audio.size().div_ceil(64 << 10),
                ContentBlock::Image(_) => 1,
                ContentBlock::ToolResult(result) => result.images.len(),
                _ => 0,
            };
            total.tokens += counter.count_message(message);
            total.media += message.content.iter().map(media).sum::<usize>();
            if message.role == MessageRole::Assistant {
                total.answered = self.totals.len() + 1;
            }
            self.totals.push(total);
        }
    }

    /// Forgets all but the first messages.
    pub(super) fn truncate(&mut self, count: usize) {
        self.totals.truncate(count);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.totals.len()
    }

    pub(super) fn parts(&self) -> Parts {
        // For the messages user, assistant, tool, `answered` is 2: the first is before the answer, the second
        // is the answer, and the third is what followed.
        let total = self.up_to(self.totals.len());
        let with_answer = self.up_to(total.answered);
        let before_answer = self.up_to(total.answered.saturating_sub(1));
        Parts {
            before_answer: before_answer.tokens,
            answer: with_answer.tokens - before_answer.tokens,
            since_answer: total.tokens - with_answer.tokens,
            media_before_answer: before_answer.media,
            media_from_answer: total.media - before_answer.media,
        }
    }

    /// Returns the total of the first messages.
    fn up_to(&self, count: usize) -> Total {
        let last = count.checked_sub(1).and_then(|place| self.totals.get(place));
        last.copied().unwrap_or_default()
    }
}

impl Parts {
    pub(super) fn tokens(&self) -> usize {
        self.before_answer + self.answer + self.since_answer
    }

    pub(super) fn media(&self) -> usize {
        self.media_before_answer + self.media_from_answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use oa_types::{ImageBlock, TextBlock, ToolResultBlock, ToolUseBlock};
    use serde_json::json;

    use super::*;
    use crate::counter::counter_fn;
    use crate::estimate::Estimator;

    fn round(number: usize) -> [Message; 2] {
        let id = format!("call_{number}");
        let call = ToolUseBlock::new(&*id, "read", json!({ "line": number }));
        let result = ToolResultBlock::new(&*id, "words of a file ".repeat(64).into());
        [Message::assistant(vec![call.into()]), Message::tool(result)]
    }

    fn counted(counter: &impl TokenCounter, messages: &[Message]) -> Parts {
        let mut counts = RunningCounts::default();
        counts.follow(counter, messages);
        counts.parts()
    }

    #[test]
    fn each_message_is_counted_once() {
        let looked_at = AtomicUsize::new(0);
        let counter = counter_fn(|text: &str| {
            looked_at.fetch_add(text.len(), Ordering::Relaxed);
            text.len() / 4
        });
        let mut counts = RunningCounts::default();
        let mut history = vec![Message::user("Read it.")];
        let mut by_round = Vec::new();
        for number in 0..200 {
            history.extend(round(number));
            let before = looked_at.load(Ordering::Relaxed);
            counts.follow(&counter, &history);
            by_round.push(looked_at.load(Ordering::Relaxed) - before);
            let once = counted(&counter_fn(|text: &str| text.len() / 4), &history);
            assert_eq!(counts.parts().tokens(), once.tokens());
        }
        let (first, last) = (by_round[1], by_round[199]);
        assert!(last <= first + 8, "{first} bytes in the second round, {last} in the last");
        // What has gone is forgotten, and nothing else.
        let before = looked_at.load(Ordering::Relaxed);
        counts.truncate(399);
        counts.follow(&counter, &history);
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
        let parts = counted(&counter, &history);
        assert_eq!(
            (parts.before_answer, parts.answer, parts.since_answer),
            (count(0), count(1), count(2))
        );
        assert_eq!((parts.media_before_answer, parts.media_from_answer), (1, 1));
        let parts = counted(&counter, &history[..1]);
        assert_eq!((parts.before_answer, parts.answer, parts.since_answer), (0, 0, count(0)));
    }
}
