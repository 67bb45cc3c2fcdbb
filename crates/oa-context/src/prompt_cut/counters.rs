//! The counters for detecting truncated prompts. Both ignore images and audio, because their token counts differ by
//! model.

use serde_json::Value;

use crate::counter::{Costs, TokenCounter};
use crate::estimate::Estimator;

pub(super) fn estimator() -> Estimator {
    Estimator::new().with_costs(costs())
}

/// Counts any text as four bytes per token, which is much cheaper than an estimate.
pub(super) struct LengthCounter;

impl TokenCounter for LengthCounter {
    fn count_text(&self, text: &str) -> usize {
        text.len().div_ceil(4)
    }

    fn count_json(&self, value: &Value) -> usize {
        match value {
            Value::Array(list) => list.iter().map(|value| 1 + self.count_json(value)).sum(),
            Value::Object(members) => {
                let sums = members.iter();
                sums.map(|(name, value)| 1 + self.count_text(name) + self.count_json(value)).sum()
            }
            Value::String(text) => self.count_text(text),
            Value::Bool(_) | Value::Null | Value::Number(_) => 1,
        }
    }

    fn costs(&self) -> Costs {
        costs()
    }
}

fn costs() -> Costs {
    let mut costs = Costs::default();
    (costs.image_low, costs.image_auto, costs.image_high, costs.audio) = (0, 0, 0, 0);
    costs
}
