use std::ops::Range;

use oa_types::Message;

use crate::counter::TokenCounter;
use crate::exchange::{Exchange, exchanges, leading_system};

/// Returns at most the last `keep` messages, in whole exchanges.
///
/// The result starts with a user prompt, no call loses its result, and a valid conversation stays valid. If the
/// last exchange alone has more than `keep` messages, its prompt is kept with its latest answers; the prompt
/// and the last answer with its results are always kept, unless `keep` is 0.
///
/// With `preserve_system`, leading system messages are kept and not counted. Otherwise they are dropped with
/// the first dropped message. [`Truncation`] can also limit tokens, or cut between any messages.
///
/// # Examples
///
/// ```
/// use oa_context::truncate_messages;
/// use oa_types::{Message, TextBlock, ToolResultBlock, ToolUseBlock};
/// use serde_json::json;
///
/// let messages = [
///     Message::system("You are a calculator."),
///     Message::user("What is 1 + 2?"),
///     Message::assistant(vec![ToolUseBlock::new("call_1", "add", json!({"a": 1, "b": 2})).into()]),
///     Message::tool(ToolResultBlock::new("call_1", json!(3))),
///     Message::assistant(vec![TextBlock::new("3").into()]),
///     Message::user("And with 4?"),
/// ];
/// // Four messages would start with a result.
/// let kept = truncate_messages(&messages, 4, true);
/// assert_eq!(kept, [messages[0].clone(), messages[5].clone()]);
/// ```
#[must_use]
pub fn truncate_messages(messages: &[Message], keep: usize, preserve_system: bool) -> Vec<Message> {
    let truncation = Truncation { preserve_system, unit: Unit::Exchange };
    truncation.last(messages, keep).apply(messages)
}

/// Truncation with more options than [`truncate_messages`].
///
/// # Examples
///
/// ```
/// use oa_context::{Estimator, TokenCounter, Truncation};
/// use oa_types::{Message, TextBlock};
///
/// let answer = || Message::assistant(vec![TextBlock::new("Yes. ".repeat(50)).into()]);
/// let ask = || Message::user("Is it so?");
/// let messages = [ask(), answer(), ask(), answer(), ask()];
/// let counter = Estimator::new();
/// let cut = Truncation::new().within(&messages, 150, &counter);
/// assert_eq!(cut.dropped(), [0..2]);
/// assert!(counter.count_messages(&cut.apply(&messages)) <= 150);
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "it does nothing until it is asked"]
pub struct Truncation {
    preserve_system: bool,
    unit: Unit,
}

/// The unit that is kept or dropped as a whole.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unit {
    /// A prompt and everything that followed from it.
    #[default]
    Exchange,
    /// Single messages. This may separate calls from results, which servers reject.
    Message,
}

impl Truncation {
    /// Creates a truncation that keeps whole exchanges and the leading system messages.
    pub fn new() -> Self {
        Self { preserve_system: true, unit: Unit::default() }
    }

    /// Treats leading system messages like others.
    pub fn without_system(mut self) -> Self {
        self.preserve_system = false;
        self
    }

    /// Sets the unit that is kept or dropped as a whole.
    pub fn with_unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// Keeps at most the last `keep` messages; see [`truncate_messages`].
    #[must_use]
    pub fn last(&self, messages: &[Message], keep: usize) -> Truncated {
        let system = self.system(messages);
        if keep == 0 {
            return Truncated::new([0..system, 0..0], messages.len());
        }
        let mut weights = vec![1; messages.len()];
        weights[..system].fill(0);
        self.cut(messages, &weights, keep)
    }

    /// Keeps as much as fits into `tokens`, by this counter.
    ///
    /// Preserved system messages count. They, the last prompt and the last answer with its results are always
    /// kept, even if they exceed the limit.
    #[must_use]
    pub fn within<C>(&self, messages: &[Message], tokens: usize, counter: &C) -> Truncated
    where
        C: TokenCounter + ?Sized,
    {
        let weights: Vec<usize> =
            messages.iter().map(|message| counter.count_message(message)).collect();
        self.cut(messages, &weights, tokens.saturating_sub(counter.costs().reply))
    }

    fn system(&self, messages: &[Message]) -> usize {
        if self.preserve_system { leading_system(messages) } else { 0 }
    }

    fn cut(&self, messages: &[Message], weights: &[usize], budget: usize) -> Truncated {
        let (system, end) = (self.system(messages), messages.len());
        let mut budget = Budget { left: budget, weights };
        if budget.weight(0..end) <= budget.left {
            return Truncated::new([0..system, system..end], end);
        }
        budget.spend(0..system);
        if self.unit == Unit::Message {
            let kept =
                (system..end).rev().take_while(|place| budget.takes(*place..place + 1)).last();
            return Truncated::new([0..system, kept.unwrap_or(end)..end], end);
        }
        let exchanges = exchanges(messages);
        let kept = exchanges.iter().rev().take_while(|exchange| budget.takes(exchange.range()));
        if let Some(exchange) = kept.last() {
            // Messages before the first prompt belong to no exchange and go first.
            return Truncated::new([0..system, exchange.range().start..end], end);
        }
        // Not even the last exchange fits. A conversation without prompts is one exchange.
        let whole = Exchange { prompt: system..system, rest: system..end };
        let (prompt, rest) = budget.within(exchanges.last().unwrap_or(&whole), messages);
        Truncated::new([0..system, prompt, rest], end)
    }
}

impl Default for Truncation {
    fn default() -> Self {
        Self::new()
    }
}

/// The remaining budget.
struct Budget<'a> {
    left: usize,
    weights: &'a [usize],
}

impl Budget<'_> {
    /// Returns the prompt of an exchange and its latest rounds, always including the last.
    fn within(
        &mut self,
        exchange: &Exchange,
        messages: &[Message],
    ) -> (Range<usize>, Range<usize>) {
        let Exchange { prompt, rest } = exchange;
        let mut rounds = exchange.rounds(messages).into_iter().rev();
        let newest = rounds.next().unwrap_or_else(|| rest.clone());
        let said_last = prompt.end.saturating_sub(1).max(prompt.start);
        // In order of importance. The last round and the last message of the prompt are kept at any price.
        // Earlier messages of the prompt are kept only if all rounds are.
        self.spend(newest.clone());
        self.spend(said_last..prompt.end);
        let round = rounds.take_while(|round| self.takes(round.clone())).last();
        let from = round.map_or(newest.start, |round| round.start);
        let is_whole = from == rest.start;
        let earlier = (prompt.start..said_last).rev().filter(|_| is_whole);
        let said = earlier.take_while(|place| self.takes(*place..place + 1)).last();
        (said.unwrap_or(said_last)..prompt.end, from..rest.end)
    }

    /// Spends the cost of these messages, if the budget allows.
    fn takes(&mut self, range: Range<usize>) -> bool {
        let rest = self.left.checked_sub(self.weight(range));
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }

    /// Spends the cost of these messages, as far as the budget allows.
    fn spend(&mut self, range: Range<usize>) {
        self.left = self.left.saturating_sub(self.weight(range));
    }

    fn weight(&self, range: Range<usize>) -> usize {
        self.weights[range].iter().copied().fold(0, usize::saturating_add)
    }
}

/// The kept and dropped messages of a conversation, as index ranges.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Truncated {
    kept: Vec<Range<usize>>,
    /// The number of messages in the conversation.
    length: usize,
}

impl Truncated {
    fn new<const N: usize>(ranges: [Range<usize>; N], length: usize) -> Self {
        Self::of(ranges.into(), length)
    }

    /// The ranges must be in order, and may be empty or adjacent.
    pub(crate) fn of(ranges: Vec<Range<usize>>, length: usize) -> Self {
        let mut kept: Vec<Range<usize>> = Vec::new();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            match kept.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => kept.push(range),
            }
        }
        Self { kept, length }
    }

    /// Returns the kept ranges, in order.
    #[must_use]
    pub fn kept(&self) -> &[Range<usize>] {
        &self.kept
    }

    /// Returns the dropped ranges, in order.
    #[must_use]
    pub fn dropped(&self) -> Vec<Range<usize>> {
        let ends = self.kept.iter().map(|range| range.end);
        let starts = self.kept.iter().map(|range| range.start).chain([self.length]);
        let gaps = [0].into_iter().chain(ends).zip(starts).map(|(end, start)| end..start);
        gaps.filter(|gap| !gap.is_empty()).collect()
    }

    /// Returns true if everything is kept.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.dropped().is_empty()
    }

    /// Returns copies of the kept messages. Ranges beyond the end of a shorter conversation are ignored.
    #[must_use]
    pub fn apply(&self, messages: &[Message]) -> Vec<Message> {
        let within = |place: usize| place.min(messages.len());
        let kept = self.kept.iter().map(|range| &messages[within(range.start)..within(range.end)]);
        kept.flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_and_dropped_ranges_complement() {
        let cut = Truncated::new([0..0, 2..3, 3..4, 6..6, 7..9], 10);
        assert_eq!(cut.kept(), [2..4, 7..9]);
        assert_eq!(cut.dropped(), [0..2, 4..7, 9..10]);
        assert!(!cut.is_whole());
        assert!(Truncated::new([0..2, 2..3], 3).is_whole());
        assert_eq!(Truncated::new([0..2, 2..5], 5).apply(&[Message::user("a")]).len(), 1);
    }
}
