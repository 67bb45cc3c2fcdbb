use std::collections::VecDeque;

use oa_types::{Message, ToolSpec, Usage};
use serde_json::Value;

use crate::counter::{Costs, TokenCounter};

/// The ratio between token counts reported by a server and our estimates, learned from the server's reports.
///
/// It is the median of the last nine ratios, initially with two ratios of 1, so a single wrong report has no
/// effect, and of nine reports any four may be wrong. It stays between [`MIN`](Self::MIN) and
/// [`MAX`](Self::MAX). A calibration belongs to one model: create a new one when the model changes.
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
    /// Oldest first.
    ratios: VecDeque<f64>,
}

/// The effect of a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Observation {
    /// The server counted less than half of the estimate, so it probably truncated the prompt silently (QUIRKS
    /// row 101). The report was not used; warn the user.
    CutShort,
    /// The request was too short, or the report is not a valid number. It was not used.
    Ignored,
    /// The ratio takes the report into account.
    Learned,
}

impl Calibration {
    /// The smallest ratio; anything below means a truncated prompt.
    pub const MIN: f64 = 0.5;
    /// The largest ratio; small vocabularies encode some scripts byte by byte.
    pub const MAX: f64 = 4.0;

    /// Creates a calibration with a ratio of 1.
    #[must_use]
    pub fn new() -> Self {
        Self { ratios: VecDeque::from([1.0, 1.0]) }
    }

    /// Learns from one request: the uncorrected estimate, and the server's count.
    ///
    /// Requests of less than 50 tokens are ignored, because most of their tokens come from the chat template.
    pub fn observe(&mut self, estimated: usize, reported: u64) -> Observation {
        let Some(ratio) = ratio(estimated, reported) else { return Observation::Ignored };
        if ratio < Self::MIN {
            return Observation::CutShort;
        }
        if self.ratios.len() == MAX_RATIOS {
            self.ratios.pop_front();
        }
        self.ratios.push_back(ratio.min(Self::MAX));
        Observation::Learned
    }

    /// Returns true if [`observe`](Self::observe) would treat the report as that of a truncated prompt.
    pub(crate) fn is_cut_short(estimated: usize, reported: u64) -> bool {
        ratio(estimated, reported).is_some_and(|ratio| ratio < Self::MIN)
    }

    /// Returns the ratio; 1 until something was learned.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let mut sorted = [0.0; MAX_RATIOS];
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
        // Token counts are far below 2^53.
        (estimated as f64 * self.ratio()).round() as usize
    }
}

impl Default for Calibration {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the ratio of a report that can be used.
fn ratio(estimated: usize, reported: u64) -> Option<f64> {
    (estimated >= SHORTEST && reported != 0).then(|| reported as f64 / estimated as f64)
}

const MAX_RATIOS: usize = 9;
const SHORTEST: usize = 50;

/// A counter corrected by the server's reports.
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
/// usage.prompt_tokens = Some(2 * before as u64); // reported with the answer
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
    /// Wraps a counter, initially without a correction.
    #[must_use]
    pub fn new(counter: C) -> Self {
        Self { calibration: Calibration::new(), counter }
    }

    /// Returns the calibration.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Returns the wrapped counter.
    #[must_use]
    pub fn get_ref(&self) -> &C {
        &self.counter
    }
}

impl<C: TokenCounter> Corrected<C> {
    /// Learns from one request: its messages and tools, and the reported usage.
    ///
    /// Requests with images or audio teach little, because each model counts them differently: set [`Costs`] for them.
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
