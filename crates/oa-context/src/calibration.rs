use std::collections::VecDeque;

use oa_types::{Message, ToolSpec, Usage};
use serde_json::Value;

use crate::counter::{Costs, TokenCounter};

/// The ratio between what a server reports and what was estimated, learnt from its reports.
///
/// It is the median of the last nine ratios, of which two are 1 at first: one report alone, however wrong,
/// changes nothing, and of nine any four may be wrong. It stays between [`LEAST`](Self::LEAST)
/// and [`MOST`](Self::MOST). One calibration belongs to one model: after a change of the model begin
/// anew.
///
/// # Examples
///
/// ```
/// use oa_context::Calibration;
///
/// let mut calibration = Calibration::new();
/// for reported in [1_290, 1_310, 1_300, 9_999, 1_300] {
///     calibration.observe(1_000, reported);
/// }
/// assert_eq!(calibration.correct(2_000), 2_600);
/// ```
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The oldest first.
    ratios: VecDeque<f64>,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Observation {
    /// The server counted less than half of the estimate: it seems to have cut the prompt without saying so
    /// (QUIRKS row 101). Nothing is learnt from that; tell the user.
    CutShort,
    /// Too short, or no number at all: nothing is learnt.
    Ignored,
    /// The ratio takes it into account.
    Learnt,
}

impl Calibration {
    /// The smallest ratio; below it a prompt was cut.
    pub const LEAST: f64 = 0.5;
    /// The largest ratio; small vocabularies spell some scripts in bytes.
    pub const MOST: f64 = 4.0;

    /// Creates a calibration that changes nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { ratios: VecDeque::from([1.0, 1.0]) }
    }

    /// Learns from one request: what was estimated, uncorrected, and what the server says it read.
    ///
    /// Requests of less than 50 tokens teach nothing: their tokens are mostly the chat template's.
    pub fn observe(&mut self, estimated: usize, reported: u64) -> Observation {
        if estimated < SHORTEST || reported == 0 {
            return Observation::Ignored;
        }
        let ratio = reported as f64 / estimated as f64;
        if ratio < Self::LEAST {
            return Observation::CutShort;
        }
        if self.ratios.len() == MOST_RATIOS {
            self.ratios.pop_front();
        }
        self.ratios.push_back(ratio.min(Self::MOST));
        Observation::Learnt
    }

    /// Returns the ratio, 1 as long as nothing is known.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let mut sorted = [0.0; MOST_RATIOS];
        let sorted = &mut sorted[..self.ratios.len()];
        for (place, ratio) in sorted.iter_mut().zip(&self.ratios) {
            *place = *ratio;
        }
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        }
    }

    /// Corrects an estimate.
    #[must_use]
    pub fn correct(&self, estimated: usize) -> usize {
        // Tokens are far from 2^53.
        (estimated as f64 * self.ratio()).round() as usize
    }
}

impl Default for Calibration {
    fn default() -> Self {
        Self::new()
    }
}

const MOST_RATIOS: usize = 9;
const SHORTEST: usize = 50;

/// A counter that is corrected by what a server reports.
///
/// # Examples
///
/// ```
/// use oa_context::{Corrected, Estimator, TokenCounter};
/// use oa_types::{Message, Usage};
///
/// let mut counter = Corrected::new(Estimator::new());
/// let messages = [Message::user("Tell me about bees. ".repeat(20))];
/// let before = counter.count_messages(&messages);
///
/// let mut usage = Usage::default();
/// usage.prompt_tokens = Some(2 * before as u64); // what came with the answer
/// for _ in 0..3 {
///     counter.observe(&messages, &[], &usage);
/// }
/// assert_eq!(counter.count_messages(&messages), 2 * before);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Corrected<C> {
    calibration: Calibration,
    counter: C,
}

impl<C> Corrected<C> {
    /// Corrects a counter, not yet by anything.
    #[must_use]
    pub fn new(counter: C) -> Self {
        Self { calibration: Calibration::new(), counter }
    }

    /// Returns what was learnt so far.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Returns the counter that is corrected.
    #[must_use]
    pub fn get_ref(&self) -> &C {
        &self.counter
    }
}

impl<C: TokenCounter> Corrected<C> {
    /// Learns from one request: what was sent, and the usage that came with the answer.
    ///
    /// Images teach little, because each model counts them in its own way: set [`Costs`] for them.
    pub fn observe(
        &mut self,
        messages: &[Message],
        tools: &[ToolSpec],
        usage: &Usage,
    ) -> Observation {
        let messages = self.counter.count_messages(messages);
        let estimated = messages.saturating_add(self.counter.count_tools(tools));
        self.calibration.observe(estimated, usage.prompt_tokens.unwrap_or_default())
    }
}

impl<C: TokenCounter> TokenCounter for Corrected<C> {
    fn count_text(&self, text: &str) -> usize {
        self.calibration.correct(self.counter.count_text(text))
    }

    fn count_json(&self, value: &Value) -> usize {
        self.calibration.correct(self.counter.count_json(value))
    }

    fn costs(&self) -> Costs {
        self.counter.costs()
    }

    fn count_message(&self, message: &Message) -> usize {
        self.calibration.correct(self.counter.count_message(message))
    }

    fn count_messages(&self, messages: &[Message]) -> usize {
        self.calibration.correct(self.counter.count_messages(messages))
    }

    fn count_tools(&self, tools: &[ToolSpec]) -> usize {
        self.calibration.correct(self.counter.count_tools(tools))
    }
}
